//! From names of runs, folders and baselines to sides: a handful of runs is held at a time.

use std::num::NonZero;
use std::path::{Component, Path, PathBuf};
use std::thread;

use super::repeat::{RunTables, completed, peak_step};
use super::side::{Gathering, Side};
use super::{CompareError, Unusable};
use crate::store::{Baselines, Dataset, StoreError, is_run, resolve, runs_in, sides_in};

/// What a name stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Found {
    Run(PathBuf),
    /// A folder of repeats.
    Folder(PathBuf),
}

/// Finds, in this order: a run or a folder of runs in `out`, a baseline, a run or a folder of runs anywhere else, and a
/// run in `out` by the beginning of its id. What begins with `.` or `..` is the path that it looks like.
///
/// `out` goes first, so that what lies in the folder one happens to be in hides nothing.
pub fn find(out: &Path, name: &str) -> Result<Found, CompareError> {
    let nothing = || CompareError::NothingCalled {
        name: name.to_owned(),
        out: out.to_owned(),
        known: sides_in(out, name),
    };
    if name.is_empty() {
        return Err(nothing());
    }
    let (path, in_out) = (Path::new(name), out.join(name));
    let is_path = matches!(path.components().next(), Some(Component::CurDir | Component::ParentDir));
    if let Some(found) = if is_path { None } else { runs_at(&in_out)? } {
        return Ok(found);
    }
    if let Some(found) = baseline(out, name)? {
        return Ok(found);
    }
    if let Some(found) = runs_at(path)? {
        return Ok(found);
    }
    resolve(out, Some(name)).map(Found::Run).map_err(|error| match (error, hollow(&[&in_out, path])) {
        // Of runs that are not right in it: those of sweeps.
        (StoreError::FolderOfRuns(_), Some(hollow)) => hollow.into(),
        (StoreError::NoRuns(_) | StoreError::NoSuchRun { .. }, Some(hollow)) => hollow.into(),
        (StoreError::NoRuns(_) | StoreError::NoSuchRun { .. }, None) => nothing(),
        (error, _) => error.into(),
    })
}

/// What the baseline `name` stands for; `None` where there is none.
fn baseline(out: &Path, name: &str) -> Result<Option<Found>, StoreError> {
    let known = Baselines::load(out)?;
    let Some(place) = known.place(name).map(|kept| out.join(kept)) else { return Ok(None) };
    if !place.is_dir() {
        return Err(StoreError::BaselineGone { name: name.to_owned(), place });
    }
    runs_at(&place)?.map(Some).ok_or(StoreError::NoRuns(place))
}

/// A run's folder, or one that holds runs.
fn runs_at(place: &Path) -> Result<Option<Found>, StoreError> {
    if is_run(place) {
        return Ok(Some(Found::Run(place.to_owned())));
    }
    let holds_runs = place.is_dir() && !runs_in(place)?.is_empty();
    Ok(holds_runs.then(|| Found::Folder(place.to_owned())))
}

/// That there is a folder of that name, but no run in it.
fn hollow(places: &[&Path]) -> Option<StoreError> {
    let place = places.iter().find(|place| place.is_dir())?;
    Some(StoreError::NoRuns(place.to_path_buf()))
}

/// Reads both sides of a comparison; `out` is the folder of runs that names are looked up in.
pub fn read_sides(out: &Path, base: &str, candidate: &str) -> Result<(Side, Side), CompareError> {
    let (base_at, candidate_at) = (find(out, base)?, find(out, candidate)?);
    Ok((read_side(base, &base_at)?, read_side(candidate, &candidate_at)?))
}

/// Reads the runs of one side, which is called `name`.
///
/// # Errors
/// When it cannot be compared with anything: no run of it is usable, or they are of several configurations.
pub fn read_side(name: &str, found: &Found) -> Result<Side, CompareError> {
    let mut side = Gathering::new(name);
    match found {
        Found::Run(dir) => {
            let tables = read_tables(&Dataset::open(dir)?)?;
            side.add(&tables).map_err(|why| CompareError::Unusable { run: name_of(dir), why })?;
        }
        Found::Folder(folder) => read_repeats(&runs_in(folder)?, &mut side),
    }
    side.finish()
}

/// Adds runs that lie together, a handful at a time: one that cannot be read or compared is left out, by name.
fn read_repeats(dirs: &[PathBuf], side: &mut Gathering) {
    let at_once = thread::available_parallelism().map_or(1, NonZero::get);
    for dirs in dirs.chunks(at_once) {
        for (dir, tables) in dirs.iter().zip(read_at_once(dirs)) {
            if let Err(why) = tables.and_then(|tables| side.add(&tables)) {
                side.leave_out(name_of(dir), &why);
            }
        }
    }
}

/// Each run's tables, in the order of the runs, read on a thread of its own.
fn read_at_once(dirs: &[PathBuf]) -> Vec<Result<RunTables, Unusable>> {
    let fault = || Unusable::Unreadable("its reader panicked; please report it".to_owned());
    thread::scope(|scope| {
        let threads: Vec<_> = dirs.iter().map(|dir| scope.spawn(|| read_repeat(dir))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(fault()))).collect()
    })
}

fn read_repeat(dir: &Path) -> Result<RunTables, Unusable> {
    let unreadable = |error: StoreError| Unusable::Unreadable(error.to_string());
    let dataset = Dataset::open(dir).map_err(unreadable)?;
    completed(dataset.run())?;
    read_tables(&dataset).map_err(unreadable)
}

/// Reads what a comparison looks at: steps, phases, and the ledger of one step; no allocations.
pub fn read_tables(dataset: &Dataset) -> Result<RunTables, StoreError> {
    let steps = dataset.steps()?;
    let ledger = peak_step(&steps).map(|step| dataset.ledger_of(step)).transpose()?.unwrap_or_default();
    Ok(RunTables { run: dataset.run().clone(), steps, phases: dataset.phase_times()?, ledger })
}

fn name_of(dir: &Path) -> String {
    dir.file_name().unwrap_or(dir.as_os_str()).to_string_lossy().into_owned()
}
