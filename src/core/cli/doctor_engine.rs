//! What `doctor` learns about the engine: where it is, and what it says when it is asked.

use super::doctor_answers::Looking;
use super::doctor_ask::{Asked, Ended, UNSET_NVTX_TOOL, asking};
use super::launch::find;
use crate::report::Check;

/// The engine itself, and what it has looked at, as long as `patient` holds.
pub fn checks(patient: impl Fn() -> bool) -> Vec<Check> {
    let path = match find() {
        Ok(path) => path.display().to_string(),
        Err(error) => {
            let way_out = "build it (`cargo build --release`), and keep it beside the program";
            return vec![Check::fails("engine", format!("{error:#}"), way_out).needed()];
        }
    };
    match everything(asking(patient)) {
        Ok(found) => {
            let mut checks = vec![Check::works("engine", path).needed()];
            checks.extend(found);
            checks
        }
        Err(why) => vec![Check::fails("engine", why.clone(), way_out(&why)).needed()],
    }
}

/// Has the engine look at everything. Where looking at something is the end of its process, that is what was found of it,
/// and a further process looks at what comes behind; `ask` is given the names of all such things.
fn everything(ask: impl Fn(&[String]) -> Result<Asked, String>) -> Result<Vec<Check>, String> {
    let (mut checks, mut fatal) = (Vec::new(), Vec::new());
    // What `run` needs is looked at first: behind something that it can do without nothing of that is left.
    let mut needed = true;
    loop {
        let Asked { heard, how, end, tool } = ask(&fatal)?;
        checks.extend(heard.checks);
        match heard.looking {
            _ if heard.done && how == Ended::Well => return Ok(checks),
            _ if heard.done => {
                checks.push(Check { needed, ..end_of_the_process(&end, tool) });
                return Ok(checks);
            }
            Some(looking) if how != Ended::OutOfTime && !fatal.contains(&looking.name) => {
                fatal.push(looking.name.clone());
                needed = looking.needed;
                checks.push(ended(looking, &end));
            }
            _ if checks.is_empty() => return Err(end),
            looking => {
                let needed = looking.map_or(needed, |looking| looking.needed);
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

/// What is found where a process that was done did not end well, as a run, which loads the same, would not either.
fn end_of_the_process(end: &str, tool: Option<String>) -> Check {
    let (found, way_out) = match tool {
        Some(tool) => (format!("with the NVTX tool {tool}, after all was looked at: {end}"), UNSET_NVTX_TOOL),
        None => (format!("after all was looked at: {end}"), "please report this as a bug"),
    };
    Check::fails("end of the process", found, way_out)
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

    use super::super::doctor_answers::Heard;
    use super::*;
    use crate::report::{Checkup, Standing};

    fn looking(name: &str, needed: bool) -> Option<Looking> {
        Some(Looking { name: name.to_owned(), needed, way_out: "do without it".to_owned() })
    }

    fn found(names: &[&str]) -> Vec<Check> {
        names.iter().map(|name| Check::works(name, "there").needed()).collect()
    }

    /// What processes tell, one after the other, the last one first.
    fn told(processes: Vec<Heard>) -> (Result<Vec<Check>, String>, Vec<Vec<String>>) {
        let how = |heard: &Heard| if heard.done { Ended::Well } else { Ended::Ill };
        asked(processes.into_iter().map(|heard| Asked { how: how(&heard), ..ended_so(heard) }).collect())
    }

    fn ended_so(heard: Heard) -> Asked {
        Asked { heard, how: Ended::Ill, end: "signal: 11".to_owned(), tool: None }
    }

    fn asked(mut processes: Vec<Asked>) -> (Result<Vec<Check>, String>, Vec<Vec<String>>) {
        let (told, asked) = (RefCell::new(&mut processes), RefCell::new(Vec::new()));
        let checks = everything(|fatal| {
            asked.borrow_mut().push(fatal.to_vec());
            Ok(told.borrow_mut().pop().unwrap())
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
    fn a_process_that_is_done_and_does_not_end_well_is_a_failure() {
        let done = || Heard { checks: found(&["libtorch"]), looking: None, done: true };
        for (tool, words) in [(None, "report"), (Some("/a/libtool.so"), "unset NVTX_INJECTION64_PATH")] {
            let process = Asked { tool: tool.map(str::to_owned), ..ended_so(done()) };
            let checkup = Checkup::new("0.1.0", asked(vec![process]).0.unwrap());
            let end = &checkup.checks[1];
            assert!(!checkup.run_works && end.standing == Standing::Fails, "{checkup:?}");
            assert!(end.found.contains("signal: 11") && end.found.contains(tool.unwrap_or("")), "{end:?}");
            assert!(end.way_out.as_ref().unwrap().contains(words), "{end:?}");
        }
    }

    #[test]
    fn what_there_is_no_time_for_is_not_said_to_fail() {
        for needed in [true, false] {
            let heard =
                Heard { checks: found(&["libtorch"]), looking: looking("CUPTI", needed), done: false };
            let late = Asked { how: Ended::OutOfTime, end: "180 s".to_owned(), ..ended_so(heard) };
            let (checks, asked) = asked(vec![late]);
            let checks = checks.unwrap();
            assert_eq!((asked.len(), checks[1].standing), (1, Standing::NotRun), "{checks:?}");
            assert_eq!(
                (&*checks[1].name, &*checks[1].found, checks[1].needed),
                ("all else", "180 s", needed)
            );
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
