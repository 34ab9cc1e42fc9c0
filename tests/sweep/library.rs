//! A sweep without the command line.

use stepledger::sweep::{Axis, Folder, Grid, Program, Spec, SweepError, sweep};

use super::*;

#[test]
fn the_library_sweeps_with_a_program_that_is_named() {
    let runs = Runs::new();
    let grid = Grid::new(vec![Axis::parse("batch", "1,2").unwrap()]).unwrap();
    let base = SMALL.split_whitespace().map(str::to_owned).collect();
    let spec = Spec::new("by-hand", grid, base, 1);
    let folder = Folder::create(&runs.file("runs"), spec.clone()).unwrap();
    let taken = Folder::create(&runs.file("runs"), spec).unwrap_err();
    assert!(matches!(taken, SweepError::Exists { .. }), "{taken}");
    let program = Program::at(env!("CARGO_BIN_EXE_stepledger"));
    let mut told = Vec::new();
    let made =
        sweep(&folder, &program, &mut |progress| told.push((progress.done, progress.total)), &|| false)
            .unwrap();
    assert_eq!(told, [(0, 2), (1, 2), (2, 2)]);
    assert!(made.complete && made.answer.best.is_some(), "{made:?}");
    // It can be stopped before any run, and then is not complete.
    let spec = Spec { sweep_id: "sweep-stopped".to_owned(), ..folder.spec().clone() };
    let stopped = Folder::create(&runs.file("runs"), spec).unwrap();
    let none = sweep(&stopped, &program, &mut |_| (), &|| true).unwrap();
    assert!(!none.complete && none.answer.best.is_none(), "{none:?}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let runs = Runs::new();
    let grid = Grid::new(vec![Axis::parse("batch", "1").unwrap()]).unwrap();
    let folder = Folder::create(&runs.file("runs"), Spec::new("lost", grid, Vec::new(), 1)).unwrap();
    let error = sweep(&folder, &Program::at("/no/such/program"), &mut |_| (), &|| false).unwrap_err();
    assert!(error.to_string().contains("/no/such/program cannot be run"), "{error}");
}
