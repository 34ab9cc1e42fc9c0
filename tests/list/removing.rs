//! What is removed, and above all what is not.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::Stdio;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use stepledger::record::RunStatus;

use super::{MadeUp, Runs, ids, listed, outcome, program, stderr};

fn two() -> Runs {
    let runs = Runs::new();
    MadeUp::new("2026-aa", 0, 8).write(&runs.file("runs"));
    MadeUp::new("2026-ab", 1, 2).write(&runs.file("runs"));
    runs
}

#[test]
fn a_run_goes_whole_and_the_others_stay() {
    let runs = two();
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "2026-aa"]);
    assert_eq!(code, Some(0), "{errors}");
    assert!(errors.contains("removed") && errors.contains("2 files"), "{errors}");
    assert!(!runs.file("runs/2026-aa").exists());
    assert_eq!(ids(&listed(&runs, &[])), ["2026-ab"]);
}

#[test]
fn without_a_terminal_it_takes_yes_and_says_what_would_go() {
    let runs = two();
    let (code, _, errors) = outcome(&runs, "rm", &["2026-aa"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("--yes") && errors.contains("2026-aa (2 files, "), "{errors}");
    assert_eq!(listed(&runs, &[]).len(), 2);
}

/// What `rm` says on a terminal where this is typed, and its exit code.
fn typed(runs: &Runs, words: &[&str], answer: &str) -> (Option<i32>, String) {
    let mut keyboard = File::from(openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap());
    grantpt(&keyboard).unwrap();
    unlockpt(&keyboard).unwrap();
    let name = ptsname(&keyboard, Vec::new()).unwrap();
    let terminal = rustix::fs::open(name, OFlags::RDWR | OFlags::NOCTTY, Mode::empty()).unwrap();
    let mut command = program();
    command.arg("rm").arg("--out").arg(runs.file("runs")).args(words);
    let child = command.stdin(terminal).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    keyboard.write_all(answer.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    (output.status.code(), stderr(&output))
}

#[test]
fn on_a_terminal_it_asks_and_only_yes_removes() {
    for (answer, left) in [("y\n", 0), ("yes\n", 0), ("n\n", 2), ("\n", 2), ("yep\n", 2), ("\u{4}", 2)] {
        let runs = two();
        let (code, errors) = typed(&runs, &["2026-aa", "2026-ab"], answer);
        assert!(errors.contains("2026-aa (2 files, ") && errors.contains("Remove them? [y/N]"), "{errors}");
        assert_eq!(
            (code, listed(&runs, &[]).len()),
            (Some(i32::from(left > 0)), left),
            "{answer:?}: {errors}"
        );
        assert_eq!(errors.contains("nothing was removed"), left > 0, "{errors}");
    }
}

#[test]
fn a_beginning_will_do_if_it_is_one_runs_alone() {
    let runs = two();
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "2026-a"]);
    assert_eq!(code, Some(2));
    assert!(
        errors.contains("2026-aa") && errors.contains("2026-ab") && errors.contains("more of the name"),
        "{errors}"
    );
    MadeUp::new("2027-swept", 2, 2).write(&runs.file("runs/sweep-x"));
    assert_eq!(outcome(&runs, "rm", &["--yes", "2027"]).0, Some(0));
    assert_eq!(listed(&runs, &[]).len(), 2);
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "2028"]);
    assert!(code == Some(2) && errors.contains("2026-ab"), "{errors}");
}

#[test]
fn a_folder_in_two_spellings_is_one() {
    let spelt = |runs: &Runs, rest: &str| runs.file("runs").join(rest).to_string_lossy().into_owned();
    for spelling in ["2026-aa/", "./2026-aa", "../runs/2026-aa", "2026-ab/../2026-aa"] {
        let runs = two();
        let (code, _, errors) = outcome(&runs, "rm", &["--yes", &spelt(&runs, spelling), "2026-aa"]);
        assert_eq!((code, errors.matches("removed").count()), (Some(0), 1), "{spelling}: {errors}");
        assert!(!runs.file("runs/2026-aa").exists());
        assert_eq!(ids(&listed(&runs, &[])), ["2026-ab"], "{spelling}");
    }
    let runs = two();
    // The run of a sweep goes with it, and once.
    MadeUp::new("swept", 2, 2).write(&runs.file("runs/sweep-x"));
    fs::write(runs.file("runs/sweep-x/sweep.json"), "{}").unwrap();
    let words = ["--yes", &spelt(&runs, "../runs/sweep-x/swept"), "sweep-x", &spelt(&runs, "./sweep-x/")];
    let (code, _, errors) = outcome(&runs, "rm", &words);
    assert_eq!((code, errors.matches("removed").count()), (Some(0), 1), "{errors}");
    assert!(!runs.file("runs/sweep-x").exists());
    // A link is none of them, with what it leads to or without.
    symlink(runs.file("runs/2026-ab"), runs.file("runs/link")).unwrap();
    for link in ["link", "link/"] {
        let (code, _, errors) = outcome(&runs, "rm", &["--yes", "2026-ab", &spelt(&runs, link)]);
        assert!(code == Some(2) && errors.contains("is a link"), "{link}: {errors}");
    }
    assert!(runs.file("runs/2026-ab/run.parquet").exists());
}

#[test]
fn foreign_files_are_named_and_nothing_is_removed() {
    let runs = two();
    fs::write(runs.file("runs/2026-ab/thesis.tex"), "three years").unwrap();
    fs::create_dir(runs.file("runs/2026-ab/plots")).unwrap();
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "2026-aa", "2026-ab"]);
    assert_eq!(code, Some(2));
    assert!(errors.contains("plots, thesis.tex"), "{errors}");
    assert_eq!(listed(&runs, &[]).len(), 2, "not even the other one");
}

#[test]
fn what_is_no_run_is_never_removed() {
    let runs = two();
    let folder = runs.file("precious");
    fs::create_dir(&folder).unwrap();
    let named = folder.to_str().unwrap().to_owned();
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", &named]);
    assert!(code == Some(2) && errors.contains("is not a run"), "{errors}");
    fs::write(folder.join("a.txt"), "a").unwrap();
    assert_eq!(outcome(&runs, "rm", &["--yes", &named]).0, Some(2));
    assert!(folder.join("a.txt").exists());
    for nothing in ["", ".", ".."] {
        assert_eq!(outcome(&runs, "rm", &["--yes", nothing]).0, Some(2), "{nothing:?}");
    }
    let link = runs.file("runs/link");
    symlink(runs.file("runs/2026-aa"), &link).unwrap();
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "link"]);
    assert!(code == Some(2) && errors.contains("is a link"), "{errors}");
    assert_eq!(listed(&runs, &[]).len(), 2);
}

#[test]
fn a_run_that_is_being_written_stays_until_its_process_is_gone() {
    let runs = Runs::new();
    let run = MadeUp { status: RunStatus::Running, ..MadeUp::new("going-on", 0, 2) };
    let writer = run.begin(&runs.file("runs"));
    let (code, _, errors) = outcome(&runs, "rm", &["--yes", "going-on"]);
    assert!(code == Some(2) && errors.contains("still being written"), "{errors}");
    drop(writer);
    assert_eq!(outcome(&runs, "rm", &["--yes", "going-on"]).0, Some(0));
    assert!(!runs.file("runs/going-on").exists());
}

#[test]
fn what_a_kill_left_of_a_run_can_be_removed() {
    let runs = two();
    fs::remove_file(runs.file("runs/2026-aa/run.parquet")).unwrap();
    fs::write(runs.file("runs/2026-aa/steps-0002.parquet.tmp"), "half").unwrap();
    assert_eq!(outcome(&runs, "rm", &["--yes", "2026-aa"]).0, Some(0));
    assert_eq!(ids(&listed(&runs, &[])), ["2026-ab"]);
}
