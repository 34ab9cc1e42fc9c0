//! The way from the small program to the engine: the `stepledger` crate as a shared library, which is
//! linked to libtorch.
//!
//! libtorch takes 0.4 s to load and brings CUDA's runtime with it. `stepledger --version` and the commands
//! that only read files need none of it, so the program is not linked to it and opens the engine on demand.

use std::env;
use std::ffi::c_int;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::exit::{FAILED, Outcome};

/// The engine's file: what cargo makes of this crate as a cdylib.
const FILE: &str = "libstepledger.so";

type Entry = unsafe extern "C" fn() -> c_int;

/// Runs this process's command in the engine.
pub fn launch() -> Outcome {
    let path = find()?;
    // SAFETY: the file is this very crate's, built with it. It stays open until the process ends: the
    // threads of libtorch run in it.
    let library = unsafe { libloading::Library::new(&path) }
        .with_context(|| format!("the engine {} cannot be loaded", path.display()))?;
    let library: &'static libloading::Library = Box::leak(Box::new(library));
    // SAFETY: the engine declares the symbol with this type (src/engine/mod.rs).
    let entry = unsafe { library.get::<Entry>(b"stepledger_engine\0") };
    let entry = entry.map_err(|_| without_torch(&path))?;
    // SAFETY: takes nothing; a panic inside is caught there.
    let code = unsafe { entry() };
    Ok(u8::try_from(code).unwrap_or(FAILED))
}

fn without_torch(path: &Path) -> anyhow::Error {
    anyhow::anyhow!(
        "{} was built without libtorch and cannot train; build it with the feature `torch`, which is on by default",
        path.display()
    )
}

/// Looks beside the program, where an installation puts it, and where cargo leaves it.
pub fn find() -> anyhow::Result<PathBuf> {
    let program = env::current_exe().context("this program's own path is not known")?;
    let folder = program.parent().unwrap_or(Path::new("."));
    let places = [folder.join("deps").join(FILE), folder.join(FILE), folder.join("../lib").join(FILE)];
    match places.iter().find(|place| place.exists()) {
        Some(place) => Ok(place.clone()),
        None => bail!(
            "{FILE} is missing: it was looked for in {}; copy it there from the folder it was built in \
             (target/release)",
            places.iter().map(|place| place.display().to_string()).collect::<Vec<_>>().join(", ")
        ),
    }
}
