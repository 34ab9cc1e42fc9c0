//! What is listed, in what order, and what is said of runs that went wrong.

use std::fs;

use stepledger::record::RunStatus;

use super::{MadeUp, Runs, ids, listed, outcome};

fn three() -> Runs {
    let runs = Runs::new();
    for run in [MadeUp::new("b-first", 0, 8), MadeUp::new("a-second", 1, 2), MadeUp::new("c-third", 2, 4)] {
        run.write(&runs.file("runs"));
    }
    runs
}

#[test]
fn a_run_is_listed_with_the_numbers_that_show_has() {
    let runs = three();
    let list = listed(&runs, &["--where", "id=c-third"]);
    let run = &list[0];
    assert_eq!((run["steps"].as_i64(), run["step_ms"].as_f64()), (Some(3), Some(4.0)));
    assert_eq!((run["tokens_per_s"].as_f64(), run["peak_bytes"].as_i64()), (Some(10_000.0), Some(12 << 20)));
    assert_eq!(run["started_at"], "2026-01-31T12:02:00.000000Z");
    assert_eq!(run["config"]["batch"], 4);
    let show = runs.show("c-third");
    assert_eq!(show["step"]["median_ms"], run["step_ms"]);
    assert_eq!(show["step"]["tokens_per_s"], run["tokens_per_s"]);
    assert_eq!(show["step"]["peak_bytes"], run["peak_bytes"]);
}

#[test]
fn the_newest_come_first_or_whatever_is_asked_for() {
    let runs = three();
    for (words, expected) in [
        (&[][..], "c-third a-second b-first"),
        (&["--reverse"], "b-first a-second c-third"),
        (&["--sort", "batch"], "a-second c-third b-first"),
        (&["--sort", "peak_mib", "--reverse", "--limit", "1"], "b-first"),
        (&["--where", "batch>2", "--where", "step_ms<8"], "c-third"),
        (&["--where", "loader.workers<=1"], "a-second b-first"),
        (&["--where", "status!=complete"], ""),
        (&["--where", "program=made_up", "--limit", "2"], "c-third a-second"),
    ] {
        assert_eq!(ids(&listed(&runs, words)).join(" "), expected, "{words:?}");
    }
}

#[test]
fn list_and_show_agree_about_the_newest() {
    let runs = Runs::new();
    // Within one second, the later name first; then two of one instant.
    for (id, micros) in [("b", 1), ("a", 2), ("c", 0), ("d", 2)] {
        MadeUp { micros, ..MadeUp::new(id, 0, 2) }.write(&runs.file("runs"));
    }
    assert_eq!(ids(&listed(&runs, &[])).join(" "), "d a b c");
    assert_eq!(ids(&listed(&runs, &["--limit", "1"])), ["d"]);
    assert_eq!(runs.show("")["run_id"], "d");
    // What cannot be read is as old as its file, for both.
    fs::write(runs.file("runs/c/run.parquet"), "PAR1 not PAR1").unwrap();
    assert_eq!(ids(&listed(&runs, &["--limit", "1"])), ["c"]);
    assert!(outcome(&runs, "show", &[]).2.contains("runs/c"));
}

#[test]
fn the_table_has_a_line_a_run() {
    let (code, text, _) = outcome(&three(), "list", &["--limit", "1"]);
    assert_eq!(code, Some(0));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split_whitespace().collect()).collect();
    let header = "id started (UTC) program status batch checkpoint dtype steps step tokens/s peak";
    assert_eq!(lines[0].join(" "), header);
    assert_eq!(
        lines[1].join(" "),
        "c-third 2026-01-31 12:02 made_up complete 4 none f32 3 4.00 ms 10,000 12.0 MiB"
    );
    assert_eq!(lines.len(), 2);
}

#[test]
fn runs_of_sweeps_are_listed_and_other_folders_are_not() {
    let runs = three();
    MadeUp::new("d-swept", 3, 16).write(&runs.file("runs/sweep-one"));
    MadeUp::new("e-elsewhere", 4, 16).write(&runs.file("runs/copies"));
    fs::create_dir(runs.file("runs/empty")).unwrap();
    fs::write(runs.file("runs/notes.txt"), "not a run").unwrap();
    let list = listed(&runs, &[]);
    assert_eq!(ids(&list), ["d-swept", "c-third", "a-second", "b-first"]);
    assert!(list[0]["dir"].as_str().unwrap().ends_with("runs/sweep-one/d-swept"));
}

#[test]
fn a_run_whose_process_is_gone_was_interrupted_and_one_that_goes_on_is_running() {
    let runs = Runs::new();
    let going_on = MadeUp { status: RunStatus::Running, ..MadeUp::new("going-on", 1, 2) };
    let killed = MadeUp { status: RunStatus::Running, ..MadeUp::new("killed", 0, 2) };
    let writer = going_on.begin(&runs.file("runs"));
    drop(killed.begin(&runs.file("runs")));
    let list = listed(&runs, &[]);
    assert_eq!(
        (ids(&list), &list[0]["status"], &list[1]["status"]),
        (vec!["going-on", "killed"], &"running".into(), &"interrupted".into())
    );
    assert!(list[1]["reason"].as_str().unwrap().contains("process ended"));
    assert_eq!(list[1]["steps"], 3, "what was flushed counts");
    // `show` says the same.
    let shown = |run: &str| outcome(&runs, "show", &[run]).1.lines().next().unwrap_or_default().to_owned();
    assert_eq!(shown("going-on"), "run going-on  (running)");
    assert_eq!(shown("killed"), "run killed  (interrupted: its process ended without closing it)");
    drop(writer);
    assert_eq!(listed(&runs, &["--where", "status=interrupted"]).len(), 2);
}

#[test]
fn a_complete_run_whose_steps_are_partly_gone_is_incomplete() {
    let runs = Runs::new();
    MadeUp { program: "gpt", steps: 2, ..MadeUp::new("robbed", 0, 2) }.write(&runs.file("runs"));
    MadeUp { program: "gpt", ..MadeUp::new("whole", 1, 2) }.write(&runs.file("runs"));
    let list = listed(&runs, &[]);
    assert_eq!((&list[0]["status"], &list[1]["status"]), (&"complete".into(), &"incomplete".into()));
    assert_eq!(list[1]["reason"], "3 of its 4 steps are there");
    assert_eq!(ids(&listed(&runs, &["--where", "status=complete"])), ["whole"]);
    let (_, text, _) = outcome(&runs, "show", &["robbed"]);
    assert!(text.starts_with("run robbed  (incomplete: 3 of its 4 steps are there)"), "{text}");
}

#[test]
fn of_a_process_on_another_machine_nothing_is_claimed() {
    let runs = Runs::new();
    let elsewhere =
        MadeUp { status: RunStatus::Running, host: Some("elsewhere"), ..MadeUp::new("far", 0, 2) };
    drop(elsewhere.begin(&runs.file("runs")));
    assert_eq!(listed(&runs, &[])[0]["status"], "running");
    let (_, text, _) = outcome(&runs, "show", &["far"]);
    assert!(
        text.starts_with("run far  (running: unless it was killed, which can be seen on elsewhere only)"),
        "{text}"
    );
}

#[test]
fn a_run_that_cannot_be_read_is_listed_with_the_reason() {
    let runs = three();
    let without_row = MadeUp::new("without-row", 5, 2).write(&runs.file("runs"));
    fs::remove_file(without_row.join("run.parquet")).unwrap();
    fs::write(runs.file("runs/a-second/run.parquet"), "PAR1 not PAR1").unwrap();
    fs::write(runs.file("runs/b-first/steps-0001.parquet"), "").unwrap();
    let list = listed(&runs, &["--where", "status=unreadable"]);
    assert_eq!(ids(&list), ["a-second", "b-first"]);
    let list = listed(&runs, &["--where", "status=interrupted"]);
    assert_eq!(ids(&list), ["without-row"]);
    assert!(list[0]["reason"].as_str().unwrap().contains("no run.parquet"), "{:?}", list[0]);
    assert_eq!(listed(&runs, &[]).len(), 4, "and the good ones");
}

#[test]
fn what_a_process_left_that_ended_before_it_wrote_anything_is_listed_and_can_go() {
    let runs = three();
    fs::create_dir(runs.file("runs/20260131-120000-gpt-1a2b3")).unwrap();
    let list = listed(&runs, &["--where", "status=interrupted"]);
    assert_eq!(ids(&list), ["20260131-120000-gpt-1a2b3"]);
    let (code, _, errors) = outcome(&runs, "show", &["20260131-120000-gpt-1a2b3"]);
    assert!(code == Some(2) && errors.contains("ended before it wrote one"), "{errors}");
    assert_eq!(outcome(&runs, "rm", &["--yes", "20260131-120000-gpt-1a2b3"]).0, Some(0));
    assert!(!runs.file("runs/20260131-120000-gpt-1a2b3").exists());
}

#[test]
fn what_makes_no_sense_is_refused_with_what_does() {
    let runs = three();
    for (words, parts) in [
        (&["--where", "bach=8"][..], &["\"bach\"", "peak_mib", "loader.workers"][..]),
        (&["--sort", "speed"], &["\"speed\"", "tokens_per_s"]),
        (&["--where", "batch"], &["FIELD=VALUE"]),
        (&["--where", "batch<eight"], &["batch is a number", "\"eight\""]),
        (&["--where", "batch=nan"], &["batch is a number", "\"nan\""]),
        (&["--where", "checkpoint>full"], &["checkpoint is never less or more", "= or !="]),
        (&["--where", "torch>=new"], &["torch is a version", "\"new\""]),
        (&["--limit", "-1"], &["-1"]),
    ] {
        let (code, text, errors) = outcome(&runs, "list", words);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{words:?}: {errors}");
        assert!(parts.iter().all(|part| errors.contains(part)), "{words:?}: {errors}");
    }
    let (code, _, errors) = outcome(&Runs::new(), "list", &[]);
    assert!(code == Some(2) && errors.contains("there is no run in"), "{errors}");
}

#[test]
fn nothing_to_list_is_no_error() {
    let runs = Runs::new();
    fs::create_dir(runs.file("runs")).unwrap();
    let (code, text, errors) = outcome(&runs, "list", &["--where", "batch=8"]);
    assert_eq!((code, text.as_str()), (Some(0), ""));
    assert!(errors.contains("stepledger run"), "{errors}");
    assert!(listed(&runs, &[]).is_empty());
}
