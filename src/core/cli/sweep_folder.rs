//! The folder that a sweep works in: a new one, once nothing is wrong with the grid, or one that was begun before.

use std::path::Path;

use chrono::Utc;

use super::exit::Exit;
use super::given::Given;
use super::grid_args::{GridArgs, setup};
use super::settings::all_cores;
use super::sweep::SweepArgs;
use super::words::bytes_of;
use crate::record::{Trace, bytes, id_time};
use crate::sweep::{AXES, Axis, Cell, Folder, Grid, Spec, SweepError};
use crate::theory::Setup;

/// A new sweep's folder; the sweep is to be drawn into `picture`.
pub fn begin(args: &SweepArgs, picture: Option<&Path>) -> anyhow::Result<Folder> {
    let GridArgs { axes, base, out, capacity_mb, refused, .. } = &args.grid;
    if let Some(flag) = refused {
        return Err(Exit::input(format!(
            "{flag} is for a single run: the runs of a sweep would write over each other's"
        )));
    }
    if axes.is_empty() {
        let flags = AXES.map(|flag| format!("--{flag}")).join(", ");
        return Err(Exit::input(format!(
            "the grid is empty: give several values to one or more of {flags}, such as --batch 4,8,16"
        )));
    }
    refuse_untraced(&args.grid)?;
    refuse_empty_picture(picture, base)?;
    let axes = axes.iter().map(|(flag, given)| Axis::parse(flag, given)).collect::<Result<_, _>>();
    let (axes, fixed) = several_and_one(axes.map_err(Exit::input)?);
    let base = with_threads(base.iter().cloned().chain(fixed).collect(), all_cores());
    let grid = Grid::new(axes).map_err(Exit::input)?;
    let spec = Spec {
        seed: args.order_seed,
        capacity_bytes: capacity_mb.map(bytes_of),
        ..Spec::new(&id_time(Utc::now()), grid, base, args.repeats as usize)
    };
    check_cells(&spec, *capacity_mb)?;
    create(out, &spec)
}

/// Refuses a capacity of which no run could say whether it is kept.
fn refuse_untraced(grid: &GridArgs) -> anyhow::Result<()> {
    match (grid.capacity_mb, grid.trace) {
        (Some(capacity_mb), Some(Trace::Phases)) => Err(Exit::input(format!(
            "--capacity-mb {capacity_mb} with --trace phases: nobody would know which settings fit; leave out one of \
             them"
        ))),
        _ => Ok(()),
    }
}

/// Refuses a picture of runs that have no peaks.
fn refuse_empty_picture(picture: Option<&Path>, base: &[String]) -> anyhow::Result<()> {
    match picture {
        Some(picture) if base.iter().any(|flag| flag == "--trace=phases") => Err(Exit::input(format!(
            "--svg {} with --trace phases: nobody would know the peaks that it draws; leave out one of them",
            picture.display()
        ))),
        _ => Ok(()),
    }
}

/// Refuses a grid with a cell that no run could be made of, and one of which no cell could fit.
fn check_cells(spec: &Spec, capacity_mb: Option<f64>) -> anyhow::Result<()> {
    let mut least: Option<(Cell, Setup)> = None;
    let cells = spec.grid.cells();
    for cell in &cells {
        let setup = setup(&spec.args(cell)).map_err(|problem| refused(spec, &cells, cell, &problem))?;
        let is_less = |(_, known): &(Cell, Setup)| setup.shape.floor_bytes() < known.shape.floor_bytes();
        if least.as_ref().is_none_or(is_less) {
            least = Some((cell.clone(), setup));
        }
    }
    let (Some(capacity_mb), Some((cell, setup))) = (capacity_mb, least) else { return Ok(()) };
    let floor = setup.shape.floor_bytes();
    if floor <= bytes_of(capacity_mb) {
        return Ok(());
    }
    Err(Exit::input(format!(
        "--capacity-mb {capacity_mb}: none of the {} settings can fit; the one that takes the least, {cell}, needs at least {}, \
         {} of them for parameters; allow more, or take smaller values (`stepledger plan` says what fits)",
        cells.len(),
        bytes(floor),
        bytes(setup.shape.parameter_bytes()),
    )))
}

/// What no run could be made of: a cell, or where each has the same problem what they have in common.
fn refused(spec: &Spec, cells: &[Cell], cell: &Cell, problem: &str) -> anyhow::Error {
    let has_it = |cell: &Cell| setup(&spec.args(cell)).is_err_and(|other| other == problem);
    match cells.iter().all(has_it) {
        true => Exit::input(problem),
        false => Exit::input(format!("cell {cell}: {problem}")),
    }
}

/// Makes the sweep's folder; a second one of the same second has a number behind its name.
fn create(out: &Path, spec: &Spec) -> anyhow::Result<Folder> {
    let mut named = spec.clone();
    let mut number = 1;
    loop {
        match Folder::create(out, named) {
            Err(SweepError::Exists { .. }) => number += 1,
            made => return made.map_err(told),
        }
        named = Spec { sweep_id: format!("{}-{number}", spec.sweep_id), ..spec.clone() };
    }
}

/// What has one value among others that have several is not what the grid is about, but a flag like the others.
fn several_and_one(axes: Vec<Axis>) -> (Vec<Axis>, Vec<String>) {
    let (several, one): (Vec<Axis>, Vec<Axis>) = axes.into_iter().partition(|axis| axis.values.len() > 1);
    if several.is_empty() {
        return (one, Vec::new());
    }
    (several, one.iter().map(|axis| format!("--{}={}", axis.flag, axis.values[0])).collect())
}

/// The number of threads is settled when a sweep is begun: it may be gone on with where a run would take others by itself.
fn with_threads(mut base: Vec<String>, threads: i32) -> Vec<String> {
    if !base.iter().any(|flag| flag.starts_with("--threads=")) {
        base.push(format!("--threads={threads}"));
    }
    base
}

/// Flags of a sweep's own that are settled when it is begun.
const SETTLED: [(&str, &str); 2] = [("out", "--out"), ("order_seed", "--order-seed")];

/// The folder of a sweep that was begun before; it is to be drawn into `picture`.
pub fn resume(args: &Given<SweepArgs>, dir: &Path, picture: Option<&Path>) -> anyhow::Result<Folder> {
    let Given { args: SweepArgs { grid, repeats, .. }, named } = args;
    let settled = SETTLED.iter().filter(|(id, _)| named.contains(*id)).map(|(_, flag)| (*flag).to_owned());
    let given = grid.axes.iter().map(|(flag, _)| format!("--{flag}"));
    let given: Vec<String> = given.chain(grid.base.iter().cloned()).chain(settled).collect();
    if !given.is_empty() {
        return Err(Exit::input(format!(
            "--resume goes on with the flags that the sweep was begun with; leave out {}",
            given.join(" ")
        )));
    }
    let mut folder = Folder::open(dir).map_err(told)?;
    refuse_empty_picture(picture, &folder.spec().base)?;
    if named.contains("repeats") {
        folder.extend(*repeats as usize).map_err(told)?;
    }
    Ok(folder)
}

/// Bad input has an exit code of its own.
pub fn told(error: SweepError) -> anyhow::Error {
    if error.is_input() { Exit::input(error) } else { error.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_with_all_cells_is_no_cells_fault() {
        let told = |axes: &[(&str, &str)], base: &[&str]| {
            let axes = axes.iter().map(|(flag, given)| Axis::parse(flag, given).unwrap()).collect();
            let base = base.iter().map(|flag| (*flag).to_owned()).collect();
            let spec = Spec::new("refused", Grid::new(axes).unwrap(), base, 1);
            check_cells(&spec, None).unwrap_err().to_string()
        };
        let one = told(&[("checkpoint", "none,full")], &["--batch=x"]);
        assert!(one.starts_with("invalid value 'x' for '--batch <N>'"), "{one}");
        let steps = told(&[("batch", "2,4")], &["--steps=0"]);
        assert!(steps.starts_with("--steps 0: allowed: 1 to"), "{steps}");
        let cell = told(&[("batch", "2,0"), ("checkpoint", "none,full")], &[]);
        assert!(cell.starts_with("cell batch 0, checkpoint none: --batch 0: allowed"), "{cell}");
        let negative = told(&[("batch", "2,-1")], &[]);
        assert!(negative.starts_with("cell batch -1: --batch -1: allowed"), "{negative}");
    }

    #[test]
    fn threads_are_those_that_were_there_or_asked_for_when_the_sweep_was_begun() {
        let base = |flags: &[&str]| with_threads(flags.iter().map(|flag| (*flag).to_owned()).collect(), 2);
        assert_eq!(base(&["--width=16"]), ["--width=16", "--threads=2"]);
        assert_eq!(base(&["--threads=1"]), ["--threads=1"]);
    }
}
