//! Phases and scopes as an NVTX tool sees them; the tool is a double of ours.
#![cfg(feature = "torch")]

#[path = "common/program.rs"]
mod program;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use program::{ROOT, Runs, stderr};

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

#[test]
fn every_phase_and_scope_is_a_range_in_our_own_domain() {
    let runs = Runs::new();
    let log = runs.file("log");
    let mut run = runs.command("--layers 1 --width 16 --heads 1 --seq 8 --batch 1 --steps 2 --warmup 1");
    run.env("NVTX_INJECTION64_PATH", build_tool(&runs)).env("NVTX_TOOL_LOG", &log);
    let output = run.output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let log = fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().filter(|line| *line == "domain stepledger").count(), 1);
    let pushes = |name: &str| log.lines().filter(|line| *line == format!("push stepledger {name}")).count();
    for name in
        ["dataloader", "forward", "backward", "optimizer", "h.0", "h.0.attn", "h.0.mlp", "loss", "zero_grad"]
    {
        assert_eq!(pushes(name), 3, "{name}:\n{log}");
    }
    // Ranges are nested as the calls are: every one is closed, and none before it was opened.
    let mut depth = 0i64;
    for line in log.lines() {
        depth += i64::from(line.starts_with("push")) - i64::from(line.starts_with("pop"));
        assert!(depth >= 0, "{log}");
    }
    assert_eq!(depth, 0, "{log}");
}
