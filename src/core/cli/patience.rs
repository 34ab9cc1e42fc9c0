//! Other programs, waited for with patience that ends: a broken driver can hang whoever asks it.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How a program ended, and all it said.
#[derive(Debug)]
pub struct Said {
    /// `None`: it was stopped, for it took too long.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

/// Runs a program without input, for at most `patience`.
pub fn run(command: &mut Command, patience: Duration) -> io::Result<Said> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    // Read while it runs: a full pipe would stop it.
    let (stdout, stderr) = (read(child.stdout.take()), read(child.stderr.take()));
    let status = wait(&mut child, patience)?;
    let text = |reader: thread::JoinHandle<String>| reader.join().unwrap_or_default();
    Ok(Said { status, stdout: text(stdout), stderr: text(stderr) })
}

fn read(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read until an error is still told.
        let _ = pipe.map(|mut pipe| pipe.read_to_end(&mut bytes));
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

fn wait(child: &mut Child, patience: Duration) -> io::Result<Option<ExitStatus>> {
    let begin = Instant::now();
    while begin.elapsed() < patience {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK_EVERY);
    }
    child.kill()?;
    child.wait()?;
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    #[test]
    fn what_a_program_says_is_kept_also_when_it_is_long() {
        let said = run(&mut shell("seq 100000; echo no >&2; exit 3"), Duration::from_secs(60)).unwrap();
        assert_eq!(said.status.unwrap().code(), Some(3));
        assert!(said.stdout.ends_with("100000\n") && said.stdout.len() > 1 << 17);
        assert_eq!(said.stderr, "no\n");
    }

    #[test]
    fn a_program_that_hangs_is_stopped() {
        let said = run(&mut shell("echo begun; exec sleep 1000"), Duration::from_millis(200)).unwrap();
        assert!(said.status.is_none());
    }
}
