//! `stepledger rules` from outside: what it reads, writes and returns.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Command, Stdio};

use proptest::prelude::*;
use serde_json::{Value, json};

const STEP: &str = r#"{"step_ms": 180, "tokens": 360, "gpu_busy_pct": 42, "cpu_wait_ms": 55}"#;

struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

fn start(arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_stepledger"))
        .arg("rules")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn run(arguments: &[&str], stdin: impl Into<Vec<u8>>) -> Outcome {
    let mut child = start(arguments);
    let (mut pipe, stdin) = (child.stdin.take().unwrap(), stdin.into());
    // From a thread: the program may fill its output before it has read all of its input. It may also end
    // without reading any, which is no failure of the test.
    let writer = std::thread::spawn(move || drop(pipe.write_all(&stdin)));
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    Outcome {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn step(arguments: &[&str], stdin: impl Into<Vec<u8>>) -> Outcome {
    run(&[&["summarize-step-metrics"], arguments].concat(), stdin)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[track_caller]
fn refused(outcome: &Outcome, message: &str) {
    assert_eq!(outcome.code, Some(2), "{}", outcome.stderr);
    assert!(outcome.stdout.is_empty() && outcome.stderr.contains(message), "{}", outcome.stderr);
}

#[test]
fn one_object_in_one_object_out() {
    let outcome = step(&[], STEP);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let answer: Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(answer["zone"], "likely_input_or_sync_bound");
    assert_eq!(answer["gpu_busy_pct"], json!(42));
    assert_eq!(answer["thresholds"]["cpu_wait_ms"], 40.0);
}

#[test]
fn hotspots_are_an_array() {
    let events = r#"{"events": [{"name": "a", "total_ms": 1, "calls": 1}], "topk": 1}"#;
    assert!(run(&["top-hotspots"], events).stdout.starts_with('['));
}

#[test]
fn bad_input_is_exit_code_2_with_the_reason() {
    refused(&step(&[], STEP.replace("180", "true")), "step_ms is true, but must be a finite number above 0");
    refused(&step(&[], STEP.replace("180", "NaN")), "step_ms is NaN");
    refused(&step(&[], STEP.replace("180", "1e999")), "step_ms is 1e999");
    refused(&step(&[], STEP.replace("tokens", "step_ms")), "step_ms is given more than once");
    refused(&step(&[], ""), "input is empty");
    refused(&step(&[], b"{\"step_ms\": \xff}"), "input is not UTF-8");
}

#[test]
fn flags_are_checked() {
    refused(&run(&["no-such-rule"], ""), "summarize-step-metrics, top-hotspots, memory-ledger");
    refused(&run(&[], ""), "<RULE>");
    refused(&step(&["--lang", "fr"], STEP), "en, zh");
    refused(&step(&["--input", "no/such/file.json"], ""), "no/such/file.json");
    refused(&step(&["--thresholds", "no/such/file.toml"], STEP), "no/such/file.toml");
}

#[test]
fn input_comes_from_a_file_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("step.json");
    std::fs::write(&path, STEP).unwrap();
    let outcome = step(&["--input", path.to_str().unwrap()], "");
    assert_eq!(outcome.stdout, step(&[], STEP).stdout);
}

#[test]
fn a_stream_answers_every_line_in_order() {
    let bad = STEP.replace("180", "-1");
    let input = [STEP.as_bytes(), b"", bad.as_bytes(), b"\xff", STEP.as_bytes()].join(&b'\n');
    let outcome = step(&["--jsonl"], input);
    assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""));
    let replies = lines(&outcome.stdout);
    let fields: Vec<_> = replies.iter().map(|reply| reply["error"]["field"].as_str()).collect();
    assert_eq!(fields, [None, Some("input"), Some("step_ms"), Some("input"), None]);
    assert_eq!(replies[0]["ok"]["latency_ms"], 180);
    assert!(replies[2]["error"]["message"].as_str().unwrap().contains("-1"));
}

#[test]
fn a_line_too_long_is_an_error_and_the_next_one_is_read() {
    let mut input = vec![b' '; (16 << 20) + 1];
    input.push(b'\n');
    input.extend(STEP.as_bytes());
    let replies = lines(&step(&["--jsonl"], input).stdout);
    assert!(replies[0]["error"]["message"].as_str().unwrap().contains("longer than"));
    assert!(replies.len() == 2 && replies[1]["ok"].is_object());
}

#[test]
fn a_stream_answers_before_its_input_ends() {
    let mut child = start(&["summarize-step-metrics", "--jsonl"]);
    let mut stdin = child.stdin.take().unwrap();
    let mut reply = String::new();
    writeln!(stdin, "{STEP}").unwrap();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut reply).unwrap();
    assert!(reply.starts_with(r#"{"ok":"#), "{reply}");
    drop(stdin);
    child.wait().unwrap();
}

#[test]
fn a_reader_that_leaves_ends_the_stream_quietly() {
    let mut child = start(&["summarize-step-metrics", "--jsonl"]);
    let mut stdin = child.stdin.take().unwrap();
    drop(child.stdout.take());
    let line = format!("{STEP}\n");
    // Until the program has noticed and closed its side.
    while stdin.write_all(line.as_bytes()).is_ok() {}
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &b""[..]));
}

#[test]
fn thresholds_from_a_file_are_used_and_shown() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.toml");
    let with = |text: &str| {
        std::fs::write(&path, text).unwrap();
        step(&["--thresholds", path.to_str().unwrap()], STEP)
    };
    let answer: Value = serde_json::from_str(&with("cpu_wait_ms = 60").stdout).unwrap();
    assert_eq!(answer["zone"], "low_gpu_utilization");
    assert_eq!(answer["thresholds"]["cpu_wait_ms"], 60.0);
    refused(&with("cpu_wait = 60"), "cpu_wait");
    refused(&with("cpu_wait_ms = true"), "cpu_wait_ms");
    refused(&with("cpu_wait_ms = nan"), "cpu_wait_ms is NaN");
    refused(&with("efficiency_screen = 1.5"), "efficiency_screen is 1.5");
}

#[test]
fn the_language_changes_only_the_sentences() {
    let input =
        r#"{"ledger": {"total_mb": 9}, "capacity_mb": 1, "hotspot": "x", "communication_heavy": false}"#;
    let next = |lang| -> Value {
        serde_json::from_str(&run(&["choose-next-validation", "--lang", lang], input).stdout).unwrap()
    };
    let (english, chinese) = (next("en"), next("zh"));
    assert_eq!(english["next_validation"], chinese["next_validation"]);
    assert_eq!(english["metrics"], chinese["metrics"]);
    assert_ne!(english["hypothesis"], chinese["hypothesis"]);
}

#[test]
fn the_list_has_every_rule_with_inputs_units_thresholds_and_source() {
    let text = run(&["--list"], "").stdout;
    for part in [
        "build-discrimination-experiment",
        "step_ms [ms]: a finite number above 0",
        "cpu_wait_ms* [ms] = 40",
        "source:",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    let list: Value = serde_json::from_str(&run(&["--list", "--json"], "").stdout).unwrap();
    assert_eq!(list["rules"].as_array().unwrap().len(), 7);
    assert_eq!(list["rules"][0]["inputs"][0]["unit"], "ms");
}

proptest! {
    // Each case starts a program.
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn a_stream_keeps_order_and_count(steps in prop::collection::vec(-3_i32..1000, 0..300)) {
        let line = |step: &i32| STEP.replace("180", &step.to_string()) + "\n";
        let replies = lines(&step_stream(steps.iter().map(line).collect::<String>()));
        prop_assert_eq!(replies.len(), steps.len());
        for (step, reply) in steps.iter().zip(replies) {
            let expected = if *step > 0 { json!(step) } else { Value::Null };
            prop_assert_eq!(&reply["ok"]["latency_ms"], &expected);
        }
    }
}

fn step_stream(input: String) -> String {
    step(&["--jsonl"], input).stdout
}

/// A stage of 50 GFLOP/s.
const STAGE: &str = r#"{"record": {"flops": 5e8, "dram_bytes": 1e6, "kernel_ms": 10, "transfer_ms": 0, "sync_ms": 0,
    "launch_ms": 0, "time_model": "nonoverlapping_exposed_intervals"}}"#;

/// `rules attribute-bottleneck` with these flags, in a home of its own.
fn attribute(home: &std::path::Path, flags: &[&str]) -> std::process::Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stepledger"));
    command.args(["rules", "attribute-bottleneck", "--input"]).arg(home.join("stage.json")).args(flags);
    command.env("STEPLEDGER_HOME", home).output().unwrap()
}

#[test]
fn a_calibration_gives_the_references_that_the_input_leaves_out() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("stage.json"), STAGE).unwrap();
    let output = attribute(home.path(), &["--calibrated", "cpu"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("stepledger calibrate --device cpu"), "{said}");

    std::fs::write(home.path().join("calibration.json"), calibration().to_string()).unwrap();
    for (flags, efficiency) in [(vec![], 0.5), (vec!["--dtype", "bf16"], 0.25)] {
        let output = attribute(home.path(), &[vec!["--calibrated", "cpu"], flags].concat());
        assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(answer["reference_efficiency"], efficiency, "{answer}");
    }
    assert_eq!(attribute(home.path(), &[]).status.code(), Some(2), "not unless it is asked for");
}

#[test]
fn only_a_rule_that_takes_references_takes_a_calibration() {
    refused(&step(&["--calibrated", "cpu"], STEP), "--calibrated is for attribute-bottleneck");
}

/// Of this machine's CPU with all its cores: 0.1 TFLOP/s in f32, 0.2 in bf16, 10 GB/s.
fn calibration() -> Value {
    let known = |name: &str| std::fs::read_to_string(name).unwrap();
    let facts = known("/proc/cpuinfo");
    let cpu = facts.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    let cores = std::thread::available_parallelism().unwrap().get();
    let rate = |median: f64| json!({"median": median, "q1": median, "q3": median, "rounds": 5});
    json!({"machines": [{
        "host": known("/proc/sys/kernel/hostname").trim(),
        "cpu": cpu.map(|(_, name)| name.trim()),
        "logical_cpus": facts.lines().filter(|line| line.starts_with("processor")).count(),
        "rates": [{
            "device": "cpu", "card": null, "threads": cores, "measured_at": "2026-01-31T12:00:00Z",
            "stepledger": "0.1.0", "torch": "2.11.0", "copy_gb_s": rate(9.0), "triad_gb_s": rate(10.0),
            "matmul_f32_tflop_s": rate(0.1), "matmul_bf16_tflop_s": rate(0.2), "fma_f32_tflop_s": null,
        }],
    }]})
}
