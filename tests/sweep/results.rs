//! What a sweep says and keeps.

use stepledger::store::{Dataset, read_sweep};

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
        let mean = cell["step_ms"].as_f64().unwrap();
        // Two runs have no interval worth its name.
        assert!(mean > 0.0 && cell["step_ms_low"].is_null() && cell["step_ms_high"].is_null(), "{cell}");
        let tokens = 8.0 * cell["settings"]["batch"].as_f64().unwrap();
        let rate = cell["tokens_per_s"].as_f64().unwrap();
        assert!((rate - tokens / mean * 1e3).abs() <= 1e-9 * rate, "{cell}");
    }
    let activations = |place: usize| cells[place]["activation_bytes"].as_i64().unwrap();
    assert!(activations(1) < activations(0) && activations(3) < activations(2));
    assert_eq!(cells[0]["recompute_pct"], 0.0);
    assert!(cells[1]["recompute_pct"].as_f64().unwrap() > 0.0);
    let workload = &found["workload"];
    assert_eq!((&workload["program"], &workload["device"]), (&"gpt".into(), &"cpu".into()), "{workload}");
    assert_eq!((&workload["config"]["width"], &workload["config"]["batch"]), (&16.into(), &Value::Null));
    let order = order_of_the_runs(&folder(&runs));
    let (there, back) = order.split_at(4);
    let cells = |turns: &[(String, String)]| turns.iter().map(|(cell, _)| cell.clone()).collect::<Vec<_>>();
    assert!(there.iter().all(|(_, repeat)| repeat == "r1") && back.iter().all(|(_, repeat)| repeat == "r2"));
    assert_eq!(cells(back), cells(there).into_iter().rev().collect::<Vec<_>>(), "they turn around");
    let svg = std::fs::read_to_string(runs.file("s.svg")).unwrap();
    for part in ["<svg", "checkpoint none", "checkpoint full", "tokens/s", "gpt on cpu (", "width 16"] {
        assert!(svg.contains(part), "{part}");
    }
}

/// The cells and repeats of a sweep's runs, as their names have them, in the order in which they began.
fn order_of_the_runs(folder: &std::path::Path) -> Vec<(String, String)> {
    let began = |name: &String| Dataset::open(&folder.join(name)).unwrap().run().started_at;
    let mut names = runs_in(folder);
    names.sort_by_key(began);
    let parts = names.iter().map(|name| name.rsplitn(3, '-').map(str::to_owned).collect::<Vec<_>>());
    parts.map(|parts| (parts[1].clone(), parts[0].clone())).collect()
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
    std::fs::write(runs.file("short.txt"), "too short").unwrap();
    let longer = SMALL.replace("--seq 8", "--seq 64");
    let output = sweep(&runs, &format!("{longer} --batch 1,2 --repeats 2 --data short.txt --svg s.svg"));
    assert_eq!(output.status.code(), Some(1));
    let told = stdout(&output);
    assert!(told.contains("failed") && told.contains("--data"), "{told}");
    assert!(told.contains("None of the 2 settings came to a measured step."), "{told}");
    // They were told that their flags are wrong, and so were not asked again.
    let progress = stderr(&output);
    assert!(progress.contains("run 2 of 3") && !progress.contains("run 3"), "{progress}");
    // The table is what matters; that there is nothing to draw is said beside it.
    assert!(progress.contains("there is nothing to draw") && !runs.file("s.svg").exists(), "{progress}");
}

#[test]
fn sweeps_of_the_same_second_do_not_meet() {
    let runs = Runs::new();
    let both = std::thread::scope(|scope| {
        let begun = [1, 2].map(|_| scope.spawn(|| sweep(&runs, &format!("{SMALL} --batch 1 --repeats 1"))));
        begun.map(|sweep| sweep.join().unwrap())
    });
    for output in both {
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    }
    assert_eq!(runs_in(&runs.file("runs")).len(), 2);
}

#[test]
fn what_list_shows_show_finds_and_rm_removes() {
    let runs = Runs::new();
    assert!(sweep(&runs, &format!("{SMALL} --batch 1,2 --repeats 1")).status.success());
    let sweep_id = folder(&runs).file_name().unwrap().to_str().unwrap().to_owned();
    let run_id = format!("{sweep_id}-c01-r1");
    assert_eq!(runs.show(&run_id)["run_id"], run_id.as_str());
    // Without a name: the newest, wherever it is.
    assert!(runs.show("")["run_id"].as_str().unwrap().starts_with(&sweep_id));
    let rm = |args: &[&str]| {
        let mut command = program();
        command.arg("rm").arg("--out").arg(runs.file("runs")).args(args).stdin(std::process::Stdio::null());
        command.output().unwrap()
    };
    // As a kill leaves a run that has not begun to write.
    std::fs::create_dir(folder(&runs).join(format!("{sweep_id}-c02-r2"))).unwrap();
    std::fs::write(folder(&runs).join("notes.txt"), "mine").unwrap();
    let refused = rm(&["--yes", &sweep_id]);
    assert!(
        refused.status.code() == Some(2) && stderr(&refused).contains("notes.txt"),
        "{}",
        stderr(&refused)
    );
    std::fs::remove_file(folder(&runs).join("notes.txt")).unwrap();
    let asked = rm(&[&sweep_id]);
    assert!(stderr(&asked).contains("a sweep with 3 runs, "), "{}", stderr(&asked));
    let removed = rm(&["--yes", &sweep_id]);
    assert_eq!(removed.status.code(), Some(0), "{}", stderr(&removed));
    assert!(runs_in(&runs.file("runs")).is_empty());
}
