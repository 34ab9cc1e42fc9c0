//! What is refused, and what is said of it.

use stepledger::record::Trace;

use super::Shown;
use super::made_up::Plan;

#[test]
fn a_run_without_a_memory_account_says_so_and_the_way_out() {
    let shown = Shown::new(Plan { trace: Trace::Phases, ..Plan::USUAL });
    for flags in ["--peak", "--by scope", "--timeline", "--timeline --csv", "--peak --json"] {
        let (code, text, errors) = shown.outcome(flags);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{flags}");
        for part in ["run made-up", "depth `phases`", "--trace allocations"] {
            assert!(errors.contains(part), "{flags}: {errors}");
        }
    }
    shown.text("");
}

#[test]
fn what_a_run_is_told_by_stays_within_the_terminal() {
    let text = Shown::new(Plan::USUAL).text("");
    let heading: Vec<&str> = text.split("\n\n").next().unwrap().lines().collect();
    assert!(heading.len() > 4 && heading.iter().all(|line| line.chars().count() <= 80), "{text}");
    let findings: Vec<&str> =
        text.split("\nFindings").nth(1).unwrap().split("\n\n").next().unwrap().lines().collect();
    assert!(findings.iter().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn flags_that_make_no_sense_are_refused_with_what_is_allowed() {
    let shown = Shown::new(Plan::USUAL);
    for (flags, part) in [
        ("--peak --top 0", "1 or more"),
        ("--peak --top -3", "1 or more"),
        ("--top 5", "--peak"),
        ("--timeline --width -5", "40 to 1000"),
        ("--timeline --width 39", "40 to 1000"),
        ("--width 80", "--timeline"),
        ("--csv", "--timeline"),
        ("--timeline --csv --json", "cannot be used with"),
        ("--by module", "scope"),
        ("--peak --timeline", "cannot be used with"),
        ("--peak --by scope", "cannot be used with"),
        ("--timeline --by scope", "cannot be used with"),
    ] {
        let (code, text, errors) = shown.outcome(flags);
        assert_eq!((code, text.as_str()), (Some(2), ""), "{flags}: {errors}");
        assert!(errors.contains(part), "{flags}: {errors}");
    }
}

#[test]
fn a_step_that_is_not_there_is_refused_with_those_that_are() {
    let shown = Shown::new(Plan::USUAL);
    for flags in ["--peak --step 99", "--by scope --step 99", "--timeline --step 99"] {
        let (code, _, errors) = shown.outcome(flags);
        assert_eq!(code, Some(2), "{flags}");
        assert!(errors.contains("has no step 99; it has steps 0 to 13"), "{flags}: {errors}");
    }
}
