//! `stepledger run` and `show`, from outside: what a user gets.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use std::time::Duration;

use program::{Runs, program, python, stderr, stdout};
use serde_json::Value;

const SMALL: &str = "--layers 2 --width 32 --heads 2 --seq 16 --batch 4 --steps 6 --warmup 2";

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

#[test]
fn the_default_models_account_is_exact() {
    let runs = Runs::new();
    runs.run("--steps 3 --warmup 2");
    let account = runs.show("");
    let parameters = 834_304;
    assert_eq!(account["parameters"], parameters);
    assert_eq!(account["ledger_step"], 4);
    let ledger = &account["ledger"];
    // 52 variables: Adam keeps two states and one f32 step counter of each.
    for (moment, category, bytes) in [
        ("forward_end", "parameter", 4 * parameters),
        ("forward_end", "gradient", 0),
        ("forward_end", "adam_state", 8 * parameters + 4 * 52),
        ("forward_end", "input", 2 * 8 * 64 * 8),
        ("forward_end", "buffer", 0),
        ("backward_end", "gradient", 4 * parameters),
        ("backward_end", "activation", 0),
        ("optimizer_end", "adam_state", 8 * parameters + 4 * 52),
        // What PyTorch's own allocator reports for this model, batch and sequence at the end of forward.
        ("forward_end", "activation", 17_895_940),
        ("peak", "total", 28_964_568),
    ] {
        assert_eq!(ledger[moment][category], bytes, "{moment} {category}");
    }
    for (moment, row) in ledger.as_object().unwrap() {
        assert_eq!((&row["unattributed"], &row["difference"]), (&0.into(), &0.into()), "{moment}");
    }
}

#[test]
fn the_mlp_has_nothing_unattributed_either() {
    let runs = Runs::new();
    runs.run("--model mlp --steps 3 --warmup 1 --layers 3 --width 64");
    let account = runs.show("");
    let parameters = 256 * 64 + 3 * (64 * 64 + 64) + 65 * 256;
    assert_eq!(account["parameters"], parameters);
    assert_eq!(account["ledger"]["backward_end"]["gradient"], 4 * parameters);
    for (moment, row) in account["ledger"].as_object().unwrap() {
        assert_eq!((&row["unattributed"], &row["difference"]), (&0.into(), &0.into()), "{moment}");
    }
}

#[test]
fn phases_and_other_add_up_to_the_step() {
    let runs = Runs::new();
    runs.run(SMALL);
    let account = runs.show("");
    let phases = account["phases"].as_array().unwrap();
    let names: Vec<_> = phases.iter().map(|phase| phase["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["dataloader", "forward", "backward", "optimizer", "other"]);
    let sum = |field: &str| phases.iter().map(|phase| phase[field].as_f64().unwrap()).sum::<f64>();
    assert!((sum("share_pct") - 100.0).abs() < 1e-9, "{phases:?}");
    assert!((sum("total_ms") - account["step"]["total_ms"].as_f64().unwrap()).abs() < 1e-6);
    assert_eq!(account["step"]["n"], 6);
    assert_eq!(account["losses"].as_array().unwrap().len(), 8);
    let scopes = account["scopes"].as_array().unwrap();
    assert!(scopes.iter().any(|scope| scope["name"] == "h.1.attn" && scope["parent"] == "h.1"));
}

#[test]
fn the_same_seed_gives_the_same_losses() {
    let losses = |flags: &str| {
        let runs = Runs::new();
        runs.run(&format!("{SMALL} {flags}"));
        numbers(&runs.show("")["losses"])
    };
    let first = losses("--seed 7");
    assert_eq!(first, losses("--seed 7"));
    assert_ne!(first, losses("--seed 8"));
}

#[test]
fn a_loss_that_is_read_now_and_then_is_the_same_loss() {
    let losses = |flags: &str| {
        let runs = Runs::new();
        runs.run(&format!("{SMALL} {flags}"));
        let account = runs.show("");
        (account["config"]["sync_every"].clone(), account["losses"].as_array().unwrap().clone())
    };
    let (_, all) = losses("");
    let (every, some) = losses("--sync-every 3 --accumulate 1");
    assert_eq!(every, 3);
    for (step, (loss, always)) in some.iter().zip(&all).enumerate() {
        // The first of the eight steps is read too, and the last of the two that warm up.
        let expected = if [0, 1, 4, 7].contains(&step) { always } else { &Value::Null };
        assert_eq!(loss, expected, "step {step}");
    }
    assert_eq!(some.len(), 8);
}

#[test]
fn the_loss_falls_on_the_sums() {
    let runs = Runs::new();
    runs.run("--layers 2 --width 64 --seq 32 --steps 60 --warmup 0 --trace phases");
    let account = runs.show("");
    let losses = numbers(&account["losses"]);
    assert!(losses[0] > 5.0 && losses[59] < 3.0, "{losses:?}");
    assert!(account["ledger"].as_object().unwrap().is_empty());
    assert!(account["missing"].to_string().contains("memory"), "{}", account["missing"]);
}

/// The same weights and batches through PyTorch: 20 losses.
///
/// Both run the same kernels on the same numbers; what differs is the order in which autograd adds up
/// gradients of shared tensors. Measured: equal to the last bit of f32 for most steps. 1e-5 relative is 80
/// units in the last place: room for another CPU's kernels, none for a wrong formula (a missing bias
/// correction alone changes the second loss by 1e-2).
fn agrees_with_pytorch(flags: &str, replay: &[&str]) {
    let runs = Runs::new();
    let (init, batches) = (runs.file("init.safetensors"), runs.file("batches.safetensors"));
    let files = format!("--save-init {} --save-batches {}", init.display(), batches.display());
    runs.run(&format!("{flags} --steps 18 --warmup 2 {files}"));
    let ours = numbers(&runs.show("")["losses"]);
    let (init, batches) = (init.to_string_lossy(), batches.to_string_lossy());
    let args = [&["--init", &init, "--batches", &batches, "--threads", "2"], replay].concat();
    let theirs = numbers(&python("tests/python/replay.py", &args)["losses"]);
    assert_eq!((ours.len(), theirs.len()), (20, 20));
    for (step, (a, b)) in ours.iter().zip(&theirs).enumerate() {
        assert!((a - b).abs() <= 1e-5 * b.abs(), "step {step}: ours {a}, PyTorch's {b}");
    }
}

#[test]
fn losses_agree_with_pytorch_sdpa() {
    let flags = "--layers 2 --width 64 --heads 4 --seq 32 --batch 4 --threads 2";
    agrees_with_pytorch(flags, &["--model", "gpt", "--layers", "2", "--heads", "4"]);
}

#[test]
fn losses_agree_with_pytorch_math() {
    let flags = "--layers 2 --width 64 --heads 4 --seq 32 --batch 4 --threads 2 --attention math";
    agrees_with_pytorch(flags, &["--model", "gpt", "--layers", "2", "--heads", "4", "--attention", "math"]);
}

#[test]
fn losses_agree_with_pytorch_mlp() {
    let flags = "--model mlp --layers 3 --width 64 --seq 32 --batch 4 --threads 2";
    agrees_with_pytorch(flags, &["--model", "mlp", "--layers", "3"]);
}

#[test]
fn weights_go_out_and_come_back() {
    let runs = Runs::new();
    let (first, again) = (runs.file("a.safetensors"), runs.file("b.safetensors"));
    runs.run(&format!("{SMALL} --seed 3 --save-init {}", first.display()));
    let init = format!("--init {} --save-init {}", first.display(), again.display());
    runs.run(&format!("{SMALL} --seed 4 {init}"));
    assert_eq!(std::fs::read(first).unwrap(), std::fs::read(again).unwrap());
}

#[test]
fn the_dataset_says_the_same_to_duckdb_and_pyarrow() {
    let runs = Runs::new();
    runs.run(&format!("{SMALL} --flush-every 3"));
    let account = runs.show("");
    let outside = python("tests/python/read_dataset.py", &[&runs.only_run().to_string_lossy()]);
    check_outside(&account, &outside);
}

/// What other tools find in the files is what `show --json` says.
fn check_outside(account: &Value, outside: &Value) {
    for zero in ["phase_sum_violations", "ledger_max_difference_bytes", "ledger_incomplete_moments"] {
        assert_eq!(outside[zero], 0, "{zero}");
    }
    for field in ["run_id", "status", "schema_version", "config", "losses"] {
        assert_eq!(outside[field], account[field], "{field}");
    }
    assert_eq!((&outside["steps"], &outside["ledger_moments"]), (&8.into(), &64.into()));
    assert_eq!(outside["allocations"], outside["allocation_ids"]);
    for (moment, bytes) in outside["last_step_ledger_bytes"].as_object().unwrap() {
        for (category, bytes) in bytes.as_object().unwrap() {
            assert_eq!(&account["ledger"][moment][category], bytes, "{moment} {category}");
        }
    }
    let close = |a: &Value, b: &Value| (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-6;
    assert!(close(&outside["median_step_ms"], &account["step"]["median_ms"]));
    for phase in account["phases"].as_array().unwrap() {
        let name = phase["name"].as_str().unwrap();
        assert!(close(&outside["phase_total_ms"][name], &phase["total_ms"]), "{name}");
    }
    // What was alive at the peak, by lifetimes, is what the ledger says of it.
    let parts = account["peak_parts"].as_array().unwrap();
    for (category, bytes) in outside["last_step_peak_bytes"].as_object().unwrap() {
        let of_category = parts.iter().filter(|part| part["category"] == **category);
        let sum: i64 = of_category.map(|part| part["bytes"].as_i64().unwrap()).sum();
        assert_eq!(bytes.as_i64(), Some(sum), "{category}");
    }
}

#[test]
fn a_killed_run_keeps_what_was_flushed() {
    let runs = Runs::new();
    let mut child = runs.command(&format!("{SMALL} --steps 100000 --flush-every 2")).spawn().unwrap();
    wait_for(|| runs.file("runs").exists() && has_part(&runs.only_run(), "steps-0003"));
    child.kill().unwrap();
    child.wait().unwrap();
    let account = runs.show("");
    assert_eq!((&account["status"], &account["parameters"]), (&"interrupted".into(), &34_176.into()));
    assert!(account["losses"].as_array().unwrap().len() >= 6);
    assert_eq!(account["ledger"]["peak"]["unattributed"], 0);
    // The parameters' lifetimes are there, though they never ended.
    assert!(account["peak_parts"].as_array().unwrap().iter().any(|part| part["category"] == "parameter"));
}

#[test]
fn ctrl_c_finishes_the_step_and_says_so() {
    let runs = Runs::new();
    let child = runs.command(&format!("{SMALL} --steps 100000 --flush-every 2")).spawn().unwrap();
    wait_for(|| runs.file("runs").exists() && has_part(&runs.only_run(), "steps-0001"));
    let pid = child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let account = runs.show("");
    assert_eq!(account["status"], "interrupted");
}

fn has_part(dir: &std::path::Path, part: &str) -> bool {
    dir.join(format!("{part}.parquet")).exists()
}

/// Polls; gives up (and fails) after two minutes, which no machine needs.
fn wait_for(condition: impl Fn() -> bool) {
    for _ in 0..1200 {
        if condition() {
            return;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("waited two minutes in vain");
}

/// The child may write files of 16 KiB at most: a `run.parquet` fits, the first flush does not, as on a full disk.
#[test]
fn a_full_disk_stops_the_run_with_the_reason() {
    let runs = Runs::new();
    let inner = runs.command(&format!("{SMALL} --steps 400 --flush-every 100"));
    let args: Vec<_> = inner.get_args().map(|arg| arg.to_string_lossy().into_owned()).collect();
    let script =
        format!("trap '' XFSZ; ulimit -f 16; exec {} {}", env!("CARGO_BIN_EXE_stepledger"), args.join(" "));
    let output = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("File too large"), "{}", stderr(&output));
    let account = runs.show("");
    assert_eq!(account["status"], "failed");
    assert!(account["reason"].as_str().unwrap().contains("File too large"), "{}", account["reason"]);
}

#[test]
fn bad_input_is_named_and_nothing_is_written() {
    let empty = tempfile::NamedTempFile::new().unwrap();
    let empty = format!("--data {}", empty.path().display());
    let cases = [
        ("--data /no/such/file", "--data /no/such/file: No such file"),
        (empty.as_str(), "empty"),
        ("--width 30 --heads 4", "--heads 4: --width 30 must be a multiple of it"),
        ("--heads 0", "--heads 0: allowed: 1 to"),
        ("--sync-every 0", "--sync-every 0: allowed: 1 to"),
        ("--pin-memory", "--pin-memory with --device cpu: nothing is copied there; use --device cuda"),
        ("--async-copy", "--async-copy with --device cpu: nothing is copied there; use --device cuda"),
        ("--checkpoint every:0", "--checkpoint every:0: allowed: every:1 to every:2, the number of --layers"),
        ("--checkpoint every:100", "--checkpoint every:100: allowed: every:1 to every:2"),
        ("--checkpoint sometimes", "allowed: none, full, every:K (groups of K blocks), selective"),
        ("--checkpoint selective --model mlp", "the MLP has no attention"),
        ("--dropout 1", "--dropout 1: allowed: from 0 to below 1"),
        ("--accumulate 0", "--accumulate 0: allowed: 1 to"),
        ("--state-dtype bf16", "--state-dtype bf16: needs --dtype bf16"),
        (
            "--master-weights",
            "--master-weights with --dtype f32: needs --dtype bf16; these parameters are f32 themselves",
        ),
        (
            "--adamw kernel",
            "--adamw kernel: is a kernel for NVIDIA's GPUs, and takes --device cuda; on a CPU: fused, foreach, loop",
        ),
        ("--adamw kernel --block-size 96", "--block-size 96: allowed: 128, 256, 512, 1024"),
        (
            "--adamw kernel --block-size 1024 --tile-size 16",
            "--tile-size 16: allowed with 1024 threads a block",
        ),
        ("--tile-size 8", "--tile-size 8: is for --adamw kernel, and this is --adamw fused"),
        ("--dtype f16", "f32, bf16, amp-bf16"),
        ("--layers 0", "--layers 0"),
        ("--batch -3", "--batch -3"),
        ("--steps 0", "--steps 0"),
        ("--width 10000000 --heads 1", "choose smaller"),
        ("--seq 99999999999", "--seq 99999999999"),
        ("--lr nan", "--lr NaN"),
        ("--betas 0.9", "--betas"),
        ("--betas 0.9,1.5", "--betas 1.5"),
        ("--init /no/such.safetensors", "--init /no/such.safetensors: No such file"),
        ("--init /etc/hostname", "not a safetensors file"),
        ("--save /no/such/dir/w.safetensors", "--save /no/such/dir/w.safetensors: No such file"),
        ("--layers 16777216", "--layers 16777216: allowed: 1 to 4096"),
        ("--device tpu", "--device tpu: allowed: cpu, cuda"),
        ("--out /dev/null/x", "/dev/null/x"),
    ];
    for (flags, expected) in cases {
        let runs = Runs::new();
        let output = runs.command(&format!("{SMALL} {flags}")).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags}: {said}");
        assert!(said.contains(expected), "{flags}: {said}");
        assert!(!said.contains("panicked") && !said.contains("frame #"), "{flags}: {said}");
        assert!(stdout(&output).is_empty(), "{flags}");
        assert!(!runs.file("runs").exists(), "{flags} left something behind");
    }
}

#[test]
fn weights_that_do_not_fit_are_named() {
    let runs = Runs::new();
    let file = runs.file("w.safetensors");
    runs.run(&format!("{SMALL} --save-init {}", file.display()));
    for (flags, expected) in [
        ("--layers 3", "missing: transformer.h.2.attn.c_attn.bias"),
        ("--layers 1", "not of this model: transformer.h.1.attn.c_attn.bias"),
        ("--seq 8", "transformer.wpe.weight is Float [16, 32] and must be Float [8, 32]"),
    ] {
        let output = runs.command(&format!("{SMALL} {flags} --init {}", file.display())).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{flags}: {}", stderr(&output));
    }
}

#[test]
fn cuda_without_a_gpu_says_what_is_missing() {
    if std::path::Path::new("/dev/nvidiactl").exists() {
        eprintln!("not tested: this machine has a GPU");
        return;
    }
    let output = Runs::new().command(&format!("{SMALL} --device cuda")).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("libtorch sees no GPU"), "{}", stderr(&output));
}

#[test]
fn progress_is_plain_in_a_pipe_and_silent_when_quiet() {
    let runs = Runs::new();
    let out = runs.file("runs");
    let run = |quiet: bool| {
        let mut command = program();
        command.arg("run").args(SMALL.split_whitespace()).arg("--out").arg(&out);
        command.args(quiet.then_some("--quiet"));
        stderr(&command.output().unwrap())
    };
    let said = run(false);
    assert!(said.contains("step 8/8  loss "), "{said}");
    assert!(said.contains("tokens/s") && said.contains("kept in "), "{said}");
    assert_eq!(run(true), "");
}

/// A pipe to write to, whose reader is gone.
fn unread() -> std::io::PipeWriter {
    std::io::pipe().unwrap().1
}

#[test]
fn a_run_goes_on_when_nobody_reads_its_messages() {
    let runs = Runs::new();
    let mut command = program();
    command.arg("run").args(SMALL.split_whitespace()).arg("--out").arg(runs.file("runs")).stderr(unread());
    assert_eq!(command.output().unwrap().status.code(), Some(0));
    let account = runs.show("");
    assert_eq!((&account["status"], &account["step"]["n"]), (&"complete".into(), &6.into()));
    let run = account["run_id"].as_str().unwrap();
    for (arguments, code) in [
        (vec!["run", "--batch", "0"], 2),
        (vec!["list", "--where", "batch=77"], 0),
        (vec!["baseline", "set", "main", run], 0),
        (vec!["show", "nosuch"], 2),
        (vec!["rm", run, "--yes"], 0),
        (vec!["list"], 0),
    ] {
        let mut command = program();
        command.args(&arguments).arg("--out").arg(runs.file("runs")).stderr(unread());
        assert_eq!(command.output().unwrap().status.code(), Some(code), "{arguments:?}");
    }
}

#[test]
fn one_step_can_be_looked_at_and_an_absent_one_is_an_error() {
    let runs = Runs::new();
    runs.run(SMALL);
    let account = runs.show("--step 3");
    assert_eq!((&account["ledger_step"], &account["step"]["n"]), (&3.into(), &1.into()));
    let mut command = program();
    let output =
        command.arg("show").arg("--out").arg(runs.file("runs")).args(["--step", "8"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("no step 8; it has steps 0 to 7"), "{}", stderr(&output));
}

/// The program starts without libtorch and without any library of CUDA's.
#[test]
fn the_program_itself_loads_neither_libtorch_nor_cuda() {
    for command in ["--version", "rules --list"] {
        let output = program().args(command.split_whitespace()).env("LD_DEBUG", "files").output().unwrap();
        assert!(output.status.success());
        let loaded = stderr(&output).to_lowercase();
        assert!(loaded.contains("libc.so"), "LD_DEBUG said nothing: {loaded}");
        for library in ["torch", "cuda", "cupti", "libc10", "nvrtc"] {
            let named =
                |line: &&str| line.contains(".so") && line.contains(library) && !line.contains("/target/");
            assert!(!loaded.lines().any(|line| named(&line)), "{command} loads {library}");
        }
    }
}

/// By construction: a slow loader, a slow loader in a short step, a large model. The fourth zone is what is left,
/// and whether a run is left there depends on how fast the machine is: the rule's own vectors cover it.
#[test]
fn zones_are_reached_by_real_runs() {
    let tiny = "--layers 1 --width 16 --heads 1 --seq 8 --batch 1 --threads 1 --warmup 1";
    let large = "--layers 4 --width 384 --heads 6 --seq 128 --batch 8 --warmup 1 --steps 2";
    for (flags, zone, hotspot) in [
        (format!("{tiny} --steps 4 --loader-delay-ms 300"), "likely_input_or_sync_bound", "dataloader"),
        (format!("{tiny} --steps 30 --loader-delay-ms 20"), "low_gpu_utilization", "dataloader"),
        (large.to_owned(), "slow_compute_path", "backward"),
    ] {
        let runs = Runs::new();
        runs.run(&flags);
        let findings = &runs.show("")["findings"];
        assert_eq!(findings["summary"]["zone"], zone, "{flags}: {findings:#}");
        assert_eq!(findings["hotspots"][0]["name"], hotspot, "{flags}: {findings:#}");
    }
}

#[test]
fn findings_hold_theory_beside_measurement_and_say_what_to_try() {
    let runs = Runs::new();
    runs.run("--steps 2 --warmup 2");
    let findings = &runs.show("")["findings"];
    for line in findings["ledger"].as_array().unwrap() {
        let expected = if line["line"] == "workspace" { Value::Null } else { 0.into() };
        assert_eq!(line["difference_bytes"], expected, "{line}");
    }
    assert!(findings["summary"]["device_busy_pct"].as_f64().unwrap() > 50.0);
    runs.run(&format!("{SMALL} --checkpoint full --dtype bf16"));
    for line in runs.show("")["findings"]["ledger"].as_array().unwrap() {
        assert!(line["difference_bytes"] == 0 || line["line"] == "workspace", "{line}");
    }
    runs.run(&format!("{SMALL} --dropout 0.1 --dtype bf16"));
    for line in runs.show("")["findings"]["ledger"].as_array().unwrap() {
        let unknown = line["line"] == "workspace" || line["line"] == "activation";
        assert_eq!(line["difference_bytes"], if unknown { Value::Null } else { 0.into() }, "{line}");
    }
    runs.run("--steps 2 --warmup 2");
    let tight = &runs.show("--capacity-mb 20")["findings"]["next_validation"];
    assert_eq!(tight["next_validation"], "compare_batch_checkpoint_offload");
    let roomy = &runs.show("--capacity-mb 30 --lang zh")["findings"]["next_validation"];
    assert_ne!(roomy["next_validation"], tight["next_validation"]);
    assert!(!roomy["hypothesis"].as_str().unwrap().is_ascii());
    let mut command = program();
    let output =
        command.arg("show").arg("--out").arg(runs.file("runs")).args(["--capacity-mb", "-1"]).output();
    let output = output.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = stderr(&output);
    assert!(message.contains("'-1' for '--capacity-mb <N>': allowed: any number above 0"), "{message}");
}

#[test]
fn a_rule_without_its_signal_says_so() {
    let runs = Runs::new();
    runs.run(&format!("{SMALL} --trace phases"));
    let findings = &runs.show("")["findings"];
    assert_eq!(findings["next_validation"], Value::Null);
    assert!(findings["abstained"].to_string().contains("memory was not traced"), "{findings:#}");
}

#[test]
fn an_experiment_takes_one_change_and_is_kept_with_the_run() {
    let runs = Runs::new();
    let run = |flags: &str| {
        runs.run(&format!("{SMALL} {flags}"));
        runs.show("")["run_id"].as_str().unwrap().to_owned()
    };
    let (base, wide, other) = (run(""), run("--batch 8"), run("--batch 8 --seq 8"));
    let experiment = |a: &str, b: &str| {
        let mut command = program();
        command.args(["experiment", a, b, "--json"]).arg("--out").arg(runs.file("runs")).output().unwrap()
    };
    let record: Value = serde_json::from_slice(&experiment(&base, &wide).stdout).unwrap();
    assert_eq!(record["variable"], serde_json::json!({"field": "batch", "baseline": 4, "changed": 8}));
    assert_eq!(record["evidence"]["level"], "smoke_test");
    let kept = &runs.show(&wide)["experiments"];
    assert_eq!(kept[0]["baseline_run_id"], base.as_str());
    let peak = kept.as_array().unwrap().iter().find(|row| row["result"] == "peak_bytes").unwrap();
    assert_eq!(peak["changed"], runs.show(&wide)["step"]["peak_bytes"].as_f64().unwrap());
    for (a, b, expected) in [(&base, &other, "differ in 2: seq, batch"), (&base, &base, "are the same")] {
        let output = experiment(a, b);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains(expected), "{}", stderr(&output));
    }
}
