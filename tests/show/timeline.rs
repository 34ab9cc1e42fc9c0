//! `show --timeline`.

use super::made_up::{Plan, alive, begin_ns, instants};
use super::{Shown, int};

const HEADER: &str =
    "at_ms,phase,parameter,gradient,adam_state,activation,input,buffer,workspace,unattributed,total";

#[test]
fn the_csv_has_every_instant_and_its_highest_total_is_the_ledgers_peak() {
    let shown = Shown::new(Plan::USUAL);
    for step in [0, 1, 7, 13] {
        let csv = shown.text(&format!("--timeline --csv --step {step}"));
        let mut lines = csv.lines();
        assert_eq!(lines.next(), Some(HEADER));
        let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
        let totals: Vec<i64> = rows.iter().map(|row| row[10].parse().unwrap()).collect();
        let expected: Vec<i64> = instants(&shown.lifetimes, step)
            .into_iter()
            .map(|at| alive(&shown.lifetimes, at).total())
            .collect();
        assert_eq!(totals, expected, "step {step}");
        for row in &rows {
            let parts: i64 = row[2..10].iter().map(|cell| cell.parse::<i64>().unwrap()).sum();
            assert_eq!(parts.to_string(), row[10], "{row:?}");
        }
        let peak = int(&shown.json(&format!("--step {step}"))["ledger"]["peak"]["total"]);
        assert_eq!(totals.iter().max(), Some(&peak));
    }
}

#[test]
fn times_count_from_the_steps_begin_and_carry_their_phase() {
    let csv = Shown::new(Plan::USUAL).text("--timeline --csv --step 3");
    let rows: Vec<Vec<&str>> = csv.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!(rows[0][..2], ["0.000000", "other"]);
    let times: Vec<f64> = rows.iter().map(|row| row[0].parse().unwrap()).collect();
    assert!(times.is_sorted() && times[times.len() - 1] < 10.0, "{times:?}");
    let phase_at = |ms: f64| {
        // The begin is known to the microsecond.
        let row = rows.iter().find(|row| (row[0].parse::<f64>().unwrap() - ms).abs() < 0.0011).unwrap();
        row[1]
    };
    for (ms, phase) in
        [(0.1, "dataloader"), (1.1, "forward"), (4.05, "backward"), (9.0, "optimizer"), (9.7, "other")]
    {
        assert_eq!(phase_at(ms), phase, "{ms}");
    }
}

#[test]
fn the_json_has_the_phases_the_changes_and_the_reconciliation() {
    let shown = Shown::new(Plan::USUAL);
    let timeline = shown.json("--timeline --step 4");
    assert_eq!(timeline["reconciliation"]["difference_bytes"], 0);
    assert_eq!(timeline["peak"]["total"], timeline["reconciliation"]["ledger_bytes"]);
    assert_eq!(timeline["peak"]["phase"], "backward");
    assert_eq!(timeline["changes"].as_array().unwrap().len(), instants(&shown.lifetimes, 4).len());
    let expected =
        [("dataloader", 0.0, 1.0), ("forward", 1.0, 4.0), ("backward", 4.0, 8.0), ("optimizer", 8.0, 9.5)];
    for (span, (phase, begin, end)) in timeline["phases"].as_array().unwrap().iter().zip(expected) {
        assert_eq!(span["phase"], phase);
        for (edge, ms) in [("begin_ms", begin), ("end_ms", end)] {
            assert!((span[edge].as_f64().unwrap() - ms).abs() < 0.0011, "{span}");
        }
    }
}

#[test]
fn the_picture_keeps_to_its_width() {
    let shown = Shown::new(Plan::USUAL);
    for width in [40, 60, 100, 200] {
        let text = shown.text(&format!("--timeline --width {width}"));
        let picture: Vec<&str> =
            text.lines().filter(|line| line.contains('│') || line.contains('└')).collect();
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        assert!(picture.last().unwrap().chars().count() == width, "{text}");
        assert!(text.contains("|forward ") && text.contains("|backward "), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(", in backward"), "{text}");
        assert!(words.contains("P parameter") && words.contains("difference 0"), "{text}");
        let top = picture[0].trim_end();
        assert!(top.ends_with('w') && !top.contains('P'), "the peak reaches the top: {text}");
    }
}

/// The mark stands where the peak's instant has its column, whichever side of it has room for the words.
#[test]
fn the_mark_is_over_the_column_of_the_peak() {
    let shown = Shown::new(Plan::USUAL);
    let timeline = shown.json("--timeline");
    let share = timeline["peak"]["at_ms"].as_f64().unwrap() / timeline["wall_ms"].as_f64().unwrap();
    for width in [40, 60, 200] {
        let text = shown.text(&format!("--timeline --width {width}"));
        let column = |line: &str, mark: char| line.chars().position(|letter| letter == mark);
        let begin = text.lines().find_map(|line| column(line, '└')).unwrap() + 1;
        let mark = text.lines().find_map(|line| column(line, '▼')).unwrap();
        assert_eq!(mark, begin + (share * (width - begin) as f64) as usize, "{text}");
        let top = text.lines().find(|line| line.contains('│')).unwrap();
        assert_ne!(top.chars().nth(mark), Some(' '), "{text}");
    }
}

#[test]
fn the_pictures_width_follows_the_terminals() {
    let shown = Shown::new(Plan::USUAL);
    let axis = |text: &str| text.lines().find(|line| line.contains('└')).unwrap().chars().count();
    assert_eq!(axis(&shown.text("--timeline")), 100, "no terminal, no COLUMNS");
    let with = |columns: &str| {
        let mut command = super::program();
        command.args(["show", "--timeline", "--out"]).arg(shown.runs.file("runs")).env("COLUMNS", columns);
        axis(&super::stdout(&command.output().unwrap()))
    };
    assert_eq!((with("72"), with("7"), with("much")), (72, 40, 100));
}

#[test]
fn a_block_that_ended_within_the_steps_first_microsecond_belongs_where_it_is_recorded() {
    // One byte less would be the peak if the blur of the step's begin decided.
    let shown = Shown::new(Plan::USUAL);
    let gone = shown.lifetimes.iter().find(|row| row.bytes == 1 << 30).unwrap();
    assert_eq!(gone.freed_ns, Some(begin_ns(0) - 90));
    assert!(int(&shown.json("--timeline --step 0")["peak"]["total"]) < 1 << 20);
}
