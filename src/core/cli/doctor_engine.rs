//! What `doctor` learns about the engine: where it is, and what it says when it is asked.

use std::cell::Cell;
use std::env;
use std::process::Command;
use std::time::{Duration, Instant};

use super::doctor_answers::{Heard, Listener, Looking};
use super::launch::find;
use super::patience::{Said, at_most, run};
use crate::report::Check;

/// Loading libtorch from a cold disk and starting the driver of many GPUs may each take this long.
const PATIENCE_EACH: Duration = Duration::from_secs(60);
const PATIENCE_IN_ALL: Duration = Duration::from_secs(180);

/// How tools say where the library is that listens to NVTX ranges.
pub const NVTX_VARIABLE: &str = "NVTX_INJECTION64_PATH";
/// The check of that library, which is loaded into each run.
pub const NVTX_TOOL: &str = "NVTX tool";

/// The engine itself, and what it has looked at, as long as `patient` holds.
pub fn checks(patient: impl Fn() -> bool) -> Vec<Check> {
    let path = match find() {
        Ok(path) => path.display().to_string(),
        Err(error) => {
            let way_out = "build it (`cargo build --release`), and keep it beside the program";
            return vec![Check::fails("engine", format!("{error:#}"), way_out).needed()];
        }
    };
    let in_all = at_most(PATIENCE_IN_ALL);
    match everything(|ended| ask(ended, || patient() && in_all())) {
        Ok(found) => {
            let mut checks = vec![Check::works("engine", path).needed()];
            checks.extend(found);
            checks
        }
        Err(why) => vec![Check::fails("engine", why.clone(), way_out(&why)).needed()],
    }
}

/// What a process of the engine has told, and how it ended.
#[derive(Debug)]
struct Asked {
    heard: Heard,
    end: String,
}

/// Has the engine look at everything. Where looking at something is the end of its process, that is what was found of it,
/// and a further process looks at what comes behind; `ask` is given the names of all such things.
fn everything(ask: impl Fn(&[String]) -> Result<Asked, String>) -> Result<Vec<Check>, String> {
    let (mut checks, mut fatal) = (Vec::new(), Vec::new());
    // What `run` needs is looked at first: behind something that it can do without nothing of that is left.
    let mut needed = true;
    loop {
        let Asked { heard, end } = ask(&fatal)?;
        checks.extend(heard.checks);
        match heard.looking {
            _ if heard.done => return Ok(checks),
            Some(looking) if !fatal.contains(&looking.name) => {
                fatal.push(looking.name.clone());
                needed = looking.needed;
                checks.push(ended(looking, &end));
            }
            _ if checks.is_empty() => return Err(end),
            _ => {
                checks.push(Check { needed, ..Check::not_run("all else", end) });
                return Ok(checks);
            }
        }
    }
}

/// What is found of something that ended the process which looked at it.
fn ended(Looking { name, needed, way_out }: Looking, end: &str) -> Check {
    Check { needed, ..Check::fails(&name, format!("while it was looked at: {end}"), way_out) }
}

/// Has the engine look at what comes behind those things, in a process of its own.
fn ask(fatal: &[String], patient: impl Fn() -> bool) -> Result<Asked, String> {
    let program =
        env::current_exe().map_err(|error| format!("this program's own path is not known: {error}"))?;
    let unasked = |error| format!("it cannot be asked: {error}");
    let listener = Listener::new().map_err(unasked)?;
    let mut command = Command::new(program);
    command.args(["doctor", "--engine", &listener.number().to_string()]);
    command.args(fatal.iter().flat_map(|name| ["--fatal", name]));
    if fatal.iter().any(|name| name == NVTX_TOOL) {
        // It is loaded with the first range, whatever is looked at then.
        command.env_remove(NVTX_VARIABLE);
    }
    let between_lines = between_lines(&listener);
    let said = run(&mut command, || patient() && between_lines()).map_err(unasked)?;
    Ok(Asked { heard: Heard::of(listener.lines().map_err(unasked)?), end: end(&said) })
}

/// Patience that begins anew with each line.
fn between_lines(listener: &Listener) -> impl Fn() -> bool {
    let last = Cell::new((0, Instant::now()));
    move || {
        let bytes = listener.bytes();
        if bytes > last.get().0 {
            last.set((bytes, Instant::now()));
        }
        last.get().1.elapsed() < PATIENCE_EACH
    }
}

/// How a process ended that was not done.
fn end(said: &Said) -> String {
    let complaint = said.stderr.trim().lines().last().unwrap_or_default();
    let complaint = complaint.strip_prefix("stepledger: ").unwrap_or(complaint);
    match said.status {
        None => format!("nothing came of it within {} s", PATIENCE_EACH.as_secs()),
        Some(status) if complaint.is_empty() => format!("the process ended with {status} and said nothing"),
        Some(status) if status.code().is_some_and(|code| code != 0) => complaint.to_owned(),
        Some(status) => format!("the process ended with {status}: {complaint}"),
    }
}

fn way_out(why: &str) -> &'static str {
    if why.contains("cannot open shared object file") {
        "put the folder of the library named here (libtorch's `lib`) into LD_LIBRARY_PATH, or build again with LIBTORCH set"
    } else if why.contains("undefined symbol") {
        "this libtorch is not the one it was built for: build again with LIBTORCH set to the one in use"
    } else if why.contains("without libtorch") {
        "build it with the feature `torch`, which is on by default"
    } else {
        "build program and engine again, together (`cargo build --release`)"
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    use super::*;
    use crate::report::{Checkup, Standing};

    fn looking(name: &str, needed: bool) -> Option<Looking> {
        Some(Looking { name: name.to_owned(), needed, way_out: "do without it".to_owned() })
    }

    fn found(names: &[&str]) -> Vec<Check> {
        names.iter().map(|name| Check::works(name, "there").needed()).collect()
    }

    /// What processes tell, one after the other, the last one first.
    fn told(mut processes: Vec<Heard>) -> (Result<Vec<Check>, String>, Vec<Vec<String>>) {
        let (told, asked) = (RefCell::new(&mut processes), RefCell::new(Vec::new()));
        let checks = everything(|fatal| {
            asked.borrow_mut().push(fatal.to_vec());
            Ok(Asked { heard: told.borrow_mut().pop().unwrap(), end: "signal: 11".to_owned() })
        });
        (checks, asked.into_inner())
    }

    #[test]
    fn what_ends_the_process_is_named_and_the_others_keep_their_results() {
        let first = Heard { checks: found(&["libtorch"]), looking: looking("CUPTI", false), done: false };
        let rest = Heard { checks: found(&["kernel cache"]), looking: None, done: true };
        let (checks, asked) = told(vec![rest, first]);
        let checks = checks.unwrap();
        assert_eq!(asked, [vec![], vec!["CUPTI".to_owned()]]);
        let names: Vec<_> = checks.iter().map(|check| (&*check.name, check.standing)).collect();
        let (works, fails) = (Standing::Works, Standing::Fails);
        assert_eq!(names, [("libtorch", works), ("CUPTI", fails), ("kernel cache", works)]);
        assert!(checks[1].found.contains("signal: 11") && checks[1].way_out.is_some(), "{checks:?}");
        assert!(Checkup::new("0.1.0", checks).run_works, "run does without CUPTI");
    }

    #[test]
    fn what_is_needed_and_ends_the_process_is_the_one_that_run_lacks() {
        let first = Heard { looking: looking("allocator hook", true), ..Heard::default() };
        let rest = Heard { checks: found(&["CUPTI"]), done: true, looking: None };
        let checkup = Checkup::new("0.1.0", told(vec![rest, first]).0.unwrap());
        assert!(!checkup.run_works && checkup.checks[0].name == "allocator hook", "{checkup:?}");
    }

    #[test]
    fn an_engine_that_goes_on_ending_is_not_asked_for_ever() {
        for needed in [true, false] {
            let heard = || Heard { looking: looking("CUPTI", needed), ..Heard::default() };
            let (checks, asked) = told(vec![heard(), heard()]);
            let all_else = &checks.unwrap()[1];
            assert_eq!((asked.len(), &*all_else.name, all_else.needed), (2, "all else", needed));
        }
    }

    #[test]
    fn an_engine_that_tells_nothing_is_a_finding() {
        assert_eq!(told(vec![Heard::default()]).0, Err("signal: 11".to_owned()));
    }

    #[test]
    fn how_a_process_ended_is_told_in_a_line() {
        let said = |raw: Option<i32>, stderr: &str| Said {
            status: raw.map(ExitStatus::from_raw),
            stdout: "a tool that talks".to_owned(),
            stderr: stderr.to_owned(),
        };
        // A raw status below 256 is the number of the signal that ended it.
        for (raw, stderr, words) in [
            (None, "", "within 60 s"),
            (Some(11), "", "signal: 11"),
            (Some(6), "a tool that talks\nterminate called", "(SIGABRT): terminate called"),
            (Some(0), "", "exit status: 0 and said nothing"),
            (
                Some(1 << 8),
                "a tool that talks\nstepledger: libtorch_cpu.so: cannot open",
                "libtorch_cpu.so: cannot open",
            ),
        ] {
            let end = end(&said(raw, stderr));
            assert!(end.contains(words) && !end.contains("stepledger:") && !end.contains("talks"), "{end}");
        }
    }

    #[test]
    fn the_way_out_fits_the_failure() {
        for (why, words) in [
            ("libtorch_cpu.so: cannot open shared object file: No such file", "LD_LIBRARY_PATH"),
            ("/a/libstepledger.so: undefined symbol: _ZN2at3addE", "LIBTORCH set to the one in use"),
            ("/a/libstepledger.so was built without libtorch and cannot train", "feature `torch`"),
            ("it ended with signal: 11", "again, together"),
        ] {
            assert!(way_out(why).contains(words), "{why}");
        }
    }
}
