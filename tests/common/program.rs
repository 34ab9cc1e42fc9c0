//! Runs the program as a user would, and reads what it says.
#![allow(dead_code)] // each test file uses its own part of this

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// A folder of runs that goes away with the test.
pub struct Runs(tempfile::TempDir);

impl Runs {
    pub fn new() -> Self {
        Runs(tempfile::tempdir().unwrap())
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.path().join(name)
    }

    /// `stepledger run --quiet --out …` with these flags, ready to start.
    pub fn command(&self, flags: &str) -> Command {
        let mut command = program();
        command.arg("run").arg("--quiet").arg("--out").arg(self.file("runs")).args(flags.split_whitespace());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).current_dir(self.path());
        command
    }

    /// Runs, and expects success.
    pub fn run(&self, flags: &str) -> Output {
        let output = self.command(flags).output().unwrap();
        assert!(output.status.success(), "run {flags}: {}", stderr(&output));
        output
    }

    /// `show --json` of the newest run, with these flags.
    pub fn show(&self, flags: &str) -> Value {
        let mut command = program();
        command.arg("show").arg("--json").arg("--out").arg(self.file("runs")).args(flags.split_whitespace());
        let output = command.output().unwrap();
        assert!(output.status.success(), "show {flags}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// The folder of the only run.
    pub fn only_run(&self) -> PathBuf {
        let mut folders: Vec<_> =
            std::fs::read_dir(self.file("runs")).unwrap().map(|e| e.unwrap().path()).collect();
        assert_eq!(folders.len(), 1, "{folders:?}");
        folders.remove(0)
    }
}

pub fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_stepledger"))
}

pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a script with the Python that `make setup` installs, and reads the JSON object it prints.
pub fn python(script: &str, args: &[&str]) -> Value {
    let python = Path::new(ROOT).join(".venv/bin/python");
    assert!(python.exists(), "{} is missing: `make setup` makes it", python.display());
    let output = Command::new(python).arg(Path::new(ROOT).join(script)).args(args).output().unwrap();
    assert!(output.status.success(), "{script}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).unwrap()
}
