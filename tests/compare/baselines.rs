//! Names that stand for runs.

use serde_json::json;
use stepledger::record::RunStatus;

use super::made_up::Made;
use super::{Runs, program, repeated, stderr, stdout, stepledger};

fn five() -> Runs {
    repeated(5, &Made::usual(), &Made { step_ms: 11.0, ..Made::usual() })
}

#[test]
fn a_name_stands_for_a_folder_or_a_run() {
    let runs = five();
    assert_eq!(stepledger(&runs, &["baseline", "set", "main", "base"]).code, Some(0));
    let compared = stepledger(&runs, &["compare", "main", "candidate", "--json"]);
    assert_eq!(compared.json()["verdict"], "slower", "{}", compared.stderr);
    assert_eq!(compared.json()["base"]["name"], "main");
    // Set anew, to one run by the beginning of its id.
    Made { minute: 99, ..Made::usual() }.write(runs.path(), "single-run");
    assert_eq!(stepledger(&runs, &["baseline", "set", "main", "single"]).code, Some(0));
    let compared = stepledger(&runs, &["compare", "main", "candidate", "--json"]).json();
    assert_eq!(compared["base"]["runs"][0], "single-run");
    assert_eq!(compared["candidate"]["unpaired"].as_array().unwrap().len(), 4);
}

#[test]
fn names_are_listed_and_forgotten() {
    let runs = five();
    for name in ["main", "before"] {
        stepledger(&runs, &["baseline", "set", name, "base"]);
    }
    let list = stepledger(&runs, &["baseline", "list"]).stdout;
    assert_eq!(list.lines().count(), 2, "{list}");
    assert!(list.starts_with("before  base  (set "), "{list}");
    let json = stepledger(&runs, &["baseline", "list", "--json"]).json();
    assert_eq!(json["baselines"]["main"]["place"], "base");
    assert_eq!(stepledger(&runs, &["baseline", "rm", "before"]).code, Some(0));
    assert_eq!(stepledger(&runs, &["baseline", "list"]).stdout.lines().count(), 1);
    assert!(runs.file("base").is_dir());
}

#[test]
fn what_a_name_stood_for_before_is_said() {
    let runs = five();
    let set = |place: &str| stepledger(&runs, &["baseline", "set", "main", place]).stderr;
    let first = set("base");
    assert!(first.starts_with("main stands for") && !first.contains("before"), "{first}");
    let second = set("candidate");
    assert!(second.contains("; before it stood for ") && second.contains("base (set 2"), "{second}");
    let removed = stepledger(&runs, &["baseline", "rm", "main"]).stderr;
    assert!(
        removed.starts_with("forgot main, which stood for ") && removed.contains("candidate"),
        "{removed}"
    );
}

#[test]
fn a_folder_of_runs_can_be_moved_with_its_names() {
    let runs = five();
    stepledger(&runs, &["baseline", "set", "main", "base"]);
    let moved = Runs::new();
    for part in ["base", "candidate", "baselines.json"] {
        std::fs::rename(runs.file(part), moved.file(part)).unwrap();
    }
    let compared = stepledger(&moved, &["compare", "main", "candidate", "--json"]);
    assert_eq!(compared.json()["verdict"], "slower", "{}", compared.stderr);
}

/// What lies in the folder one happens to be in hides no run, no folder of runs and no baseline.
#[test]
fn the_folder_of_runs_goes_before_the_working_folder() {
    let runs = five();
    stepledger(&runs, &["baseline", "set", "main", "base"]);
    let here = Runs::new();
    for name in ["base", "main", "candidate"] {
        std::fs::create_dir(here.file(name)).unwrap();
    }
    Made::usual().write(&here.file("elsewhere"), "one");
    let compare = |base: &str, candidate: &str| {
        let mut command = program();
        command.args(["compare", base, candidate, "--json", "--out"]).arg(runs.path());
        stdout(&command.current_dir(here.path()).env("STEPLEDGER_HOME", runs.path()).output().unwrap())
    };
    for base in ["base", "main"] {
        assert!(
            compare(base, "candidate").contains("\"verdict\": \"slower\""),
            "{}",
            compare(base, "candidate")
        );
    }
    // A path is one, where nothing in the folder of runs is called so.
    for path in ["elsewhere", "./elsewhere", "elsewhere/one"] {
        assert!(compare(path, "candidate").contains("one run a side"), "{path}");
    }
    // A run there, and not the one in the folder of runs.
    Made::usual().write(here.path(), "b-0");
    assert!(compare("./b-0", "candidate").contains("\"b-0\""), "{}", compare("./b-0", "candidate"));
}

#[test]
fn a_list_of_nothing_says_so() {
    let runs = five();
    let said = stepledger(&runs, &["baseline", "list"]);
    assert_eq!((said.code, said.stdout.as_str()), (Some(0), ""));
    assert!(
        said.stderr.contains("no baseline in") && said.stderr.contains("baseline set"),
        "{}",
        said.stderr
    );
    let output = program().args(["baseline", "list", "--out"]).arg(runs.file("nowhere")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("nowhere") && stderr(&output).contains("--out"), "{}", stderr(&output));
}

#[test]
fn what_cannot_be_compared_is_no_baseline() {
    let runs = five();
    Made { status: RunStatus::Failed, ..Made::usual() }.write(runs.path(), "failed");
    Made { status: RunStatus::Failed, ..Made::usual() }.write(&runs.file("failures"), "one");
    Made { steps: 0, ..Made::usual() }.write(runs.path(), "unmeasured");
    Made { minute: 90, ..Made::usual() }.with("seed", json!(9)).write(&runs.file("candidate"), "other");
    for (run, part) in [
        ("failed", "did not complete: failed"),
        ("failures", "no run in failures can be compared"),
        ("unmeasured", "no measured step"),
        ("candidate", "several configurations"),
    ] {
        let said = stepledger(&runs, &["baseline", "set", "main", run]);
        assert_eq!(said.code, Some(2), "{run}");
        assert!(said.stderr.contains(part), "{run}: {}", said.stderr);
    }
    assert!(!runs.file("baselines.json").exists());
}

#[test]
fn what_makes_no_baseline_is_refused() {
    let runs = five();
    Made::usual().write(&runs.file("sweep-1"), "in-a-sweep");
    for (arguments, part) in [
        (["set", "base", "candidate"].as_slice(), "choose another name"),
        // A run is found by its id wherever it lies.
        (&["set", "in-a-sweep", "candidate"], "sweep-1/in-a-sweep is there"),
        (&["set", "my base", "candidate"], "cannot name a baseline; use letters"),
        (&["set", "../x", "candidate"], "cannot name a baseline; use letters"),
        (&["set", "a/b", "candidate"], "cannot name a baseline; use letters"),
        (&["set", "", "candidate"], "cannot name a baseline; use letters"),
        (&["set", "main", "nothing"], "nothing"),
        (&["rm", "main"], "no baseline \"main\"; there are: none"),
    ] {
        let said = stepledger(&runs, &[&["baseline"], arguments].concat());
        assert_eq!(said.code, Some(2), "{arguments:?}");
        assert!(said.stderr.contains(part), "{arguments:?}: {}", said.stderr);
    }
    stepledger(&runs, &["baseline", "set", "main", "base"]);
    std::fs::remove_dir_all(runs.file("base")).unwrap();
    let said = stepledger(&runs, &["compare", "main", "candidate"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("which is gone"), "{}", said.stderr);
    std::fs::write(runs.file("baselines.json"), "{\"baselines\": 7}").unwrap();
    let said = stepledger(&runs, &["compare", "main", "candidate"]);
    assert_eq!(said.code, Some(2));
    assert!(said.stderr.contains("baselines.json is damaged"), "{}", said.stderr);
}
