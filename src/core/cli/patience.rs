//! Other programs, waited for with patience that ends: a broken driver can hang whoever asks it.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

const LOOK_EVERY: Duration = Duration::from_millis(20);
/// What a program that is over may take until its pipes are closed, and one that was killed until it is gone: one that
/// hangs in the kernel never is.
const GRACE: Duration = Duration::from_secs(2);

/// How a program ended, and all it said.
#[derive(Debug)]
pub struct Said {
    /// `None`: it was stopped, for it took too long.
    pub status: Option<ExitStatus>,
    pub stdout: String,
    pub stderr: String,
}

/// Patience that ends after so long.
pub fn at_most(time: Duration) -> impl Fn() -> bool {
    let begin = Instant::now();
    move || begin.elapsed() < time
}

/// Runs a program without input as long as `patient` holds, then kills it and what it has started. It has a process group
/// of its own, so that these can be found, and Ctrl-C does not reach it: `patient` has to hear of that.
pub fn run(command: &mut Command, patient: impl Fn() -> bool) -> io::Result<Said> {
    let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let mut child = command.spawn()?;
    // Read while it runs: a full pipe would stop it.
    let (stdout, stderr) = (Pipe::read(child.stdout.take()), Pipe::read(child.stderr.take()));
    let status = wait(&mut child, patient)?;
    let until = Instant::now() + GRACE;
    let (stdout, stderr) = (stdout.text(until), stderr.text(until));
    if status.is_some() && !(stdout.closed && stderr.closed) {
        // It has left somebody behind, who has nothing to say to us.
        kill_group(&child);
    }
    Ok(Said { status, stdout: stdout.text, stderr: stderr.text })
}

/// What comes out of a program, read by a thread of its own: whoever the program has started may keep the pipe open for
/// longer than anyone waits.
struct Pipe(Receiver<Vec<u8>>);

/// What came until then, and whether that was all.
struct Text {
    text: String,
    closed: bool,
}

impl Pipe {
    fn read(pipe: Option<impl Read + Send + 'static>) -> Pipe {
        let (sender, receiver) = channel();
        thread::spawn(move || {
            let Some(mut pipe) = pipe else { return };
            let mut part = [0; 4096];
            // What was read until an error is still told.
            while let Ok(bytes @ 1..) = pipe.read(&mut part) {
                if sender.send(part[..bytes].to_vec()).is_err() {
                    return;
                }
            }
        });
        Pipe(receiver)
    }

    fn text(self, until: Instant) -> Text {
        let mut bytes = Vec::new();
        let end = loop {
            match self.0.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(part) => bytes.extend(part),
                Err(end) => break end,
            }
        };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        Text { text, closed: end == RecvTimeoutError::Disconnected }
    }
}

fn wait(child: &mut Child, patient: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    let status = wait_while(child, patient)?;
    if status.is_none() {
        kill_group(child);
        wait_while(child, at_most(GRACE))?;
    }
    Ok(status)
}

fn wait_while(child: &mut Child, patient: impl Fn() -> bool) -> io::Result<Option<ExitStatus>> {
    while patient() {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        thread::sleep(LOOK_EVERY);
    }
    Ok(None)
}

/// The program and all that it has started, but for what has left its group.
fn kill_group(child: &Child) {
    // A group that is gone already need not be killed.
    let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// A process that has ended has no entry, or one that says that it is a zombie.
    fn is_gone(process: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        stat.rsplit(')').next().is_none_or(|rest| rest.trim().is_empty() || rest.trim().starts_with('Z'))
    }

    #[test]
    fn what_a_program_says_is_kept_also_when_it_is_long() {
        let long = at_most(Duration::from_secs(60));
        let said = run(&mut shell("seq 100000; echo no >&2; exit 3"), long).unwrap();
        assert_eq!(said.status.unwrap().code(), Some(3));
        assert!(said.stdout.ends_with("100000\n") && said.stdout.len() > 1 << 17);
        assert_eq!(said.stderr, "no\n");
    }

    #[test]
    fn a_program_that_hangs_is_stopped_with_what_it_has_started() {
        let script = "sleep 1000 & echo $!; sleep 1000";
        let said = run(&mut shell(script), at_most(Duration::from_millis(500))).unwrap();
        assert!(said.status.is_none());
        let started = said.stdout.trim();
        assert!(started.parse::<u32>().is_ok(), "{said:?}");
        let soon = at_most(Duration::from_secs(60));
        while !is_gone(started) {
            assert!(soon(), "{started} goes on");
            thread::sleep(LOOK_EVERY);
        }
    }

    #[test]
    fn what_a_program_leaves_behind_is_not_waited_for() {
        let said = run(&mut shell("sleep 1000 & echo said"), at_most(Duration::from_secs(60))).unwrap();
        assert_eq!((said.status.unwrap().success(), &*said.stdout), (true, "said\n"));
    }
}
