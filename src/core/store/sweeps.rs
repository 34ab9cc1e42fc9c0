//! The table of a sweep's cells, kept in the sweep's folder.

use std::path::Path;

use super::schema::Stamp;
use super::writer::write_part;
use super::{StoreError, decode, file};
use crate::record::SweepRow;

/// One table a sweep, made anew whenever the sweep goes on.
const PART: u32 = 1;
const FILE: &str = "sweep-0001.parquet";

/// Puts a sweep's table into its folder, in place of the one before.
pub fn keep_sweep(dir: &Path, sweep_id: &str, mut rows: Vec<SweepRow>) -> Result<(), StoreError> {
    write_part(dir, &Stamp { run_id: sweep_id.into(), rank: 0 }, PART, &mut rows)?;
    file::sync_folder(dir)
}

/// The cells of the sweep in this folder, in the order of its grid.
pub fn read_sweep(dir: &Path) -> Result<Vec<SweepRow>, StoreError> {
    decode::rows(&dir.join(FILE), None)
}
