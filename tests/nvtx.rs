//! Phases, scopes and `tracing` spans as an NVTX tool sees them; the tool is a double of ours.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{ROOT, Runs, stderr};
use tracing_subscriber::layer::SubscriberExt;

/// The NVTX headers come with libtorch's own packages.
fn headers() -> PathBuf {
    let libtorch = fs::canonicalize(Path::new(ROOT).join(".venv/libtorch")).unwrap();
    libtorch.join("../nvidia/cu13/include")
}

fn build_tool(runs: &Runs) -> PathBuf {
    let tool = runs.file("libnvtx_tool.so");
    let source = Path::new(ROOT).join("tests/doubles/nvtx_tool.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-D_GNU_SOURCE", "-w", "-o"]).arg(&tool).arg(source);
    let output = compiler.arg("-I").arg(headers()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    tool
}

/// Runs a command with the tool attached; returns what the tool wrote.
fn log_of(runs: &Runs, command: &mut Command) -> String {
    let log = runs.file("log");
    command.env("NVTX_INJECTION64_PATH", build_tool(runs)).env("NVTX_TOOL_LOG", &log);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    fs::read_to_string(log).unwrap()
}

/// A range that was opened: name, category, colour, payload.
fn pushes(log: &str) -> Vec<(&str, String, &str, &str)> {
    let category = |number: &str| {
        let begin = format!("category stepledger {number} ");
        log.lines().find_map(|line| line.strip_prefix(begin.as_str())).unwrap_or("none").to_owned()
    };
    let lines = log.lines().filter_map(|line| line.strip_prefix("push stepledger "));
    lines
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [name, number, colour, payload] => (name, category(number), colour, payload),
            _ => panic!("{line}"),
        })
        .collect()
}

/// Ranges are nested as the calls are: every one is closed, and none before it was opened.
fn assert_nested(log: &str) {
    let mut depth = 0i64;
    for line in log.lines() {
        depth += i64::from(line.starts_with("push")) - i64::from(line.starts_with("pop"));
        assert!(depth >= 0, "{log}");
    }
    assert_eq!(depth, 0, "{log}");
}

#[test]
fn every_phase_and_scope_is_a_range_in_our_own_domain() {
    let runs = Runs::new();
    let mut run = runs.command("--layers 1 --width 16 --heads 1 --seq 8 --batch 1 --steps 2 --warmup 1");
    let log = log_of(&runs, &mut run);
    assert_eq!(log.lines().filter(|line| *line == "domain stepledger").count(), 1);
    let pushes = pushes(&log);
    // Sky blue is forward's, orange the loader's; what is nested has the colour of its phase.
    let check = |name: &str, category: &str, colour: &str| {
        let of_it: Vec<_> = pushes.iter().filter(|push| push.0 == name).collect();
        let payloads: Vec<_> = of_it.iter().map(|push| push.3).collect();
        assert_eq!(payloads, ["0", "1", "2"], "{name}:\n{log}");
        assert!(of_it.iter().all(|push| push.1 == category && push.2 == colour), "{name}: {of_it:?}");
    };
    check("dataloader", "phase", "ffe69f00");
    check("forward", "phase", "ff56b4e9");
    check("backward", "phase", "ff0072b2");
    check("optimizer", "phase", "ff009e73");
    for scope in ["h.0", "h.0.attn", "h.0.mlp", "loss"] {
        check(scope, "scope", "ff56b4e9");
    }
    check("zero_grad", "scope", "ff999999");
    assert_nested(&log);
}

#[test]
fn tracing_spans_are_ranges_too() {
    let runs = Runs::new();
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["spans_of_a_child", "--exact", "--ignored"]);
    let log = log_of(&runs, &mut child);
    let pushes = pushes(&log);
    let names: Vec<_> = pushes.iter().map(|push| push.0).collect();
    assert_eq!(names, ["outer", "inner", "inner", "early", "late"], "{log}");
    assert!(pushes.iter().all(|push| push.1 == "tracing"), "{log}");
    assert_nested(&log);
    let pops = |log: &str| log.lines().filter(|line| *line == "pop stepledger").count();
    assert_eq!(pops(&log), 5);
}

#[test]
#[ignore = "what tracing_spans_are_ranges_too runs in a process with the tool attached"]
fn spans_of_a_child() {
    let subscriber = tracing_subscriber::registry().with(stepledger::probe::NvtxLayer::new());
    tracing::subscriber::with_default(subscriber, || {
        tracing::info_span!("outer").in_scope(|| {
            let inner = tracing::info_span!("inner");
            inner.in_scope(|| ());
            inner.in_scope(|| ());
        });
        // Not nested: the first one is left while the second goes on.
        let early = tracing::info_span!("early").entered();
        let late = tracing::info_span!("late").entered();
        drop(early);
        drop(late);
    });
}
