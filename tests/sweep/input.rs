//! Grids that cannot be swept.

use super::*;

#[test]
fn bad_grids_are_refused_before_anything_runs() {
    let cases = [
        ("", "the grid is empty"),
        ("--width 64", "the grid is empty"),
        ("--batch 4,,8", "element 2 of \"4,,8\" is empty"),
        ("--batch 4,8,4", "\"4\" is there twice, as elements 1 and 3"),
        ("--batch 4 --batch 8 --batch 4", "\"4\" is there twice, as elements 1 and 3"),
        ("--checkpoint none,every:x", "'every:x'"),
        ("--batch 4,eight", "'eight'"),
        ("--dtype f32,f64", "'f64'"),
        ("--batch 1 --save weights.safetensors", "--save is for a single run"),
        ("--batch 1 --run-id mine", "--run-id is for a single run"),
        ("--batch 1 --repeats 0", "'0'"),
        ("--batch 1 --capacity-mb -4", "'-4'"),
        ("--batch 1 --enforce", "--capacity-mb"),
        ("--batch 1 --lr high", "'high'"),
        ("--batch 0,4", "cell batch 0: --batch 0: allowed: 1 to"),
        ("--batch 4 --steps 0", "--steps 0: allowed: 1 to"),
        ("--batch 2,4 --steps 0", "stepledger: --steps 0: allowed: 1 to"),
        ("--batch x --checkpoint none,full", "stepledger: invalid value 'x' for '--batch <N>'"),
        ("--batch -1,2", "cell batch -1: --batch -1: allowed: 1 to"),
        ("--batch --steps 2", "a value is required for '--batch <A,B,...>'"),
        (
            "--checkpoint none,every:0",
            "cell checkpoint every:0: --checkpoint every:0: allowed: every:1 to every:4",
        ),
        ("--checkpoint none,every:2 --layers 1", "allowed: every:1 to every:1"),
        ("--batch 1,2 --heads 3 --width 16", "--heads 3: --width 16 must be a multiple of it"),
        ("--checkpoint none,full,every:1", "\"full\" and \"every:1\" are the same, as elements 2 and 3"),
        ("--batch 1,2 --data nowhere.txt", "nowhere.txt: there is no such file"),
        ("--batch 4,8 --capacity-mb 1 --enforce", "the one that takes the least, batch 4, needs at least"),
        ("--batch 4,8 --capacity-mb 1", "3.18 MiB of them for parameters"),
        ("--batch 4,8 --capacity-mb 0.001", "--capacity-mb 0.001: none of the 2 settings can fit"),
        (
            "--batch 4,8 --capacity-mb 64 --trace phases",
            "--capacity-mb 64 with --trace phases: nobody would know",
        ),
        (
            "--batch 1,2 --svg s.svg --trace phases",
            "--svg s.svg with --trace phases: nobody would know the peaks",
        ),
        ("--batch 1,2 --svg nowhere/s.svg", "--svg nowhere/s.svg: No such file"),
        ("--batch 1,2 --svg .", "--svg .: "),
    ];
    for (flags, expected) in cases {
        let runs = Runs::new();
        let output = sweep(&runs, flags);
        assert_eq!(output.status.code(), Some(2), "{flags}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{flags}: {}", stderr(&output));
        assert!(!runs.file("runs").exists(), "{flags} has left something");
    }
}

#[test]
fn the_malformed_cell_is_named() {
    let output = sweep(&Runs::new(), "--batch 4,eight --checkpoint none");
    assert!(stderr(&output).contains("cell batch eight: invalid value 'eight'"), "{}", stderr(&output));
}
