//! `stepledger sweep`: grids of small runs of the real program, each in a process of its own.
#![cfg(feature = "torch")]

#[path = "../common/program.rs"]
mod program;

#[path = "../compare/made_up.rs"]
#[allow(dead_code)] // sweeps need less of it than comparisons
mod made_up;

mod input;
mod judging;
mod library;
mod results;
mod resuming;

use std::path::PathBuf;
use std::process::Output;

use program::{Runs, program, stderr, stdout};
use serde_json::Value;

/// The least that a cell can be: what is looked at here is not how long it takes.
const SMALL: &str = "--layers 1 --width 16 --heads 2 --seq 8 --threads 1 --steps 2 --warmup 1";

/// `stepledger sweep` with these flags, kept in `runs`.
fn sweep(runs: &Runs, flags: &str) -> Output {
    let mut command = program();
    command.arg("sweep").arg("--out").arg(runs.file("runs")).args(flags.split_whitespace());
    command.current_dir(runs.path()).output().unwrap()
}

/// What a sweep with these flags finds, and its exit code.
fn found(runs: &Runs, flags: &str) -> (Value, Option<i32>) {
    let output = sweep(runs, &format!("{flags} --json --quiet"));
    let found = serde_json::from_slice(&output.stdout);
    (found.unwrap_or_else(|error| panic!("{flags}: {error}: {}", stderr(&output))), output.status.code())
}

/// The only sweep's folder.
fn folder(runs: &Runs) -> PathBuf {
    let mut folders = runs.file("runs").read_dir().unwrap();
    let folder = folders.next().unwrap().unwrap().path();
    assert!(folders.next().is_none());
    folder
}

/// The names of the runs in a sweep's folder.
fn runs_in(folder: &std::path::Path) -> Vec<String> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    let dirs = entries.filter(|entry| entry.path().is_dir());
    let mut names: Vec<String> = dirs.map(|entry| entry.file_name().into_string().unwrap()).collect();
    names.sort();
    names
}
