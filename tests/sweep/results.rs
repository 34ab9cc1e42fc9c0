//! What a sweep says and keeps.

use stepledger::store::read_sweep;

use super::*;

#[test]
fn each_cell_is_run_so_many_times_and_summed_up() {
    let runs = Runs::new();
    let (found, code) = found(
        &runs,
        &format!(
            "{SMALL} --batch 1,2 --checkpoint none,full --repeats 2 --svg {}",
            runs.file("s.svg").display()
        ),
    );
    assert_eq!((code, &found["complete"], &found["repeats"]), (Some(0), &true.into(), &2.into()));
    let cells = found["cells"].as_array().unwrap();
    let settings: Vec<String> = cells
        .iter()
        .map(|cell| format!("{} {}", cell["settings"]["batch"], cell["settings"]["checkpoint"]))
        .collect();
    assert_eq!(settings, ["1 \"none\"", "1 \"full\"", "2 \"none\"", "2 \"full\""]);
    for cell in cells {
        assert_eq!(
            (&cell["status"], &cell["evidence"]),
            (&"complete".into(), &"smoke_test".into()),
            "{cell}"
        );
        assert_eq!(cell["run_ids"].as_array().unwrap().len(), 2);
        let [low, mean, high] =
            ["step_ms_low", "step_ms", "step_ms_high"].map(|key| cell[key].as_f64().unwrap());
        assert!(0.0 < low && low <= mean && mean <= high, "{cell}");
        let tokens = 8.0 * cell["settings"]["batch"].as_f64().unwrap();
        let rate = cell["tokens_per_s"].as_f64().unwrap();
        assert!((rate - tokens / mean * 1e3).abs() <= 1e-9 * rate, "{cell}");
    }
    let activations = |place: usize| cells[place]["activation_bytes"].as_i64().unwrap();
    assert!(activations(1) < activations(0) && activations(3) < activations(2));
    assert_eq!(cells[0]["recompute_pct"], 0.0);
    assert!(cells[1]["recompute_pct"].as_f64().unwrap() > 0.0);
    assert_eq!(runs_in(&folder(&runs)).len(), 8);
    let svg = std::fs::read_to_string(runs.file("s.svg")).unwrap();
    for part in ["<svg", "checkpoint none", "checkpoint full", "tokens/s"] {
        assert!(svg.contains(part), "{part}");
    }
}

#[test]
fn the_table_is_kept_as_it_is_told() {
    let runs = Runs::new();
    let (found, _) = found(&runs, &format!("{SMALL} --batch 1,2 --repeats 1"));
    let rows = read_sweep(&folder(&runs)).unwrap();
    let cells = found["cells"].as_array().unwrap();
    assert_eq!(rows.len(), cells.len());
    for (row, cell) in rows.iter().zip(cells) {
        assert_eq!(
            (row.cell, row.batch, row.seq),
            (cell["cell"].as_i64().unwrap(), cell["settings"]["batch"].as_i64(), Some(8))
        );
        assert_eq!((row.step_ms, row.peak_bytes), (cell["step_ms"].as_f64(), cell["peak_bytes"].as_i64()));
        assert_eq!((row.step_ms_low, row.fits), (None, None));
        assert_eq!(row.pareto, cell["pareto"]);
    }
}

#[test]
fn a_cell_that_fails_is_a_result_and_the_others_go_on() {
    let runs = Runs::new();
    // 0.25 MiB hold the one sequence's step but not that of 64.
    let flags = format!("{SMALL} --batch 1,64 --repeats 3 --capacity-mb 0.25 --enforce");
    let (found, code) = found(&runs, &flags);
    assert_eq!((code, &found["complete"]), (Some(0), &true.into()), "{found}");
    let [fits, too_large] = [&found["cells"][0], &found["cells"][1]];
    assert_eq!((&fits["status"], &fits["fits"]), (&"complete".into(), &true.into()), "{fits}");
    assert_eq!(
        (&too_large["status"], &too_large["fits"]),
        (&"out_of_memory".into(), &false.into()),
        "{too_large}"
    );
    assert!(too_large["reason"].as_str().unwrap().contains("bytes"), "{too_large}");
    // Being out of memory is the same each time: once is enough.
    assert_eq!(runs_in(&folder(&runs)).iter().filter(|name| name.contains("-c02-")).count(), 1);
    assert_eq!(found["answer"]["best"], 1);
    let sentences = found["answer"]["sentences"].as_array().unwrap();
    assert!(sentences[0].as_str().unwrap().starts_with("Take batch 1: "), "{sentences:?}");
}

#[test]
fn where_nothing_can_be_measured_the_reasons_are_told() {
    let runs = Runs::new();
    let output = sweep(&runs, "--width 16 --heads 3 --steps 1 --batch 1,2 --repeats 2");
    assert_eq!(output.status.code(), Some(1));
    let told = stdout(&output);
    assert!(told.contains("failed") && told.contains("--heads 3"), "{told}");
    assert!(told.contains("None of the 2 settings came to a measured step."), "{told}");
    // They were told that their flags are wrong, and so were not asked again.
    assert!(
        stderr(&output).contains("run 2 of 3") && !stderr(&output).contains("run 3"),
        "{}",
        stderr(&output)
    );
}
