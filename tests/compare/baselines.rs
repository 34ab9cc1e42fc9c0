//! Names that stand for runs.

use super::made_up::Made;
use super::{Runs, repeated, stepledger};

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

#[test]
fn what_makes_no_baseline_is_refused() {
    let runs = five();
    for (arguments, part) in [
        (["set", "base", "candidate"].as_slice(), "choose another name"),
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
