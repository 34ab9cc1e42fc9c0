//! A Parquet file → rows.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::{BooleanArray, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
};

use super::cell::{self, Cell};
use super::flat::RunColumns;
use super::schema::{Stamp, Table};
use super::{Damage, StoreError};
use crate::record::RunRow;

const ROWS_AT_ONCE: usize = 16 * 1024;

/// The rows of `path`, or only those of one step.
pub(super) fn rows<T: Table>(path: &Path, step: Option<i64>) -> Result<Vec<T>, StoreError> {
    read(path, T::COLUMNS, step, T::rows)
}

/// The one value of `column` in a `run.parquet`.
pub(super) fn the_cell<C: Cell>(path: &Path, column: &str) -> Result<C, StoreError> {
    let cells = read(path, &[column], None, |batch| Ok(cell::decode(batch, column)?.collect()))?;
    the_one(path, cells)
}

/// The row of a `run.parquet` of schema version 1, 2 or 3.
pub(super) fn run(path: &Path) -> Result<RunRow, StoreError> {
    let stamp: Stamp = the_one(path, rows(path, None)?)?;
    let columns: RunColumns = the_one(path, rows(path, None)?)?;
    columns.into_run(&stamp).map_err(|damage| damaged(path, damage))
}

fn the_one<R>(path: &Path, rows: Vec<R>) -> Result<R, StoreError> {
    let [row] = <[R; 1]>::try_from(rows).map_err(|rows| damaged(path, Damage::NotOneRow(rows.len())))?;
    Ok(row)
}

fn damaged(path: &Path, damage: Damage) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), damage }
}

fn read<R>(
    path: &Path,
    columns: &[&str],
    step: Option<i64>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<R>, Damage>,
) -> Result<Vec<R>, StoreError> {
    let file = File::open(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    // The Parquet reader returns errors for most broken files, and panics on a few.
    let read = catch_unwind(AssertUnwindSafe(|| read_batches(file, columns, step, rows)));
    read.unwrap_or(Err(Damage::Panic)).map_err(|damage| damaged(path, damage))
}

fn read_batches<R>(
    file: File,
    columns: &[&str],
    step: Option<i64>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<R>, Damage>,
) -> Result<Vec<R>, Damage> {
    // The kept Arrow schema is ignored so that a column has one type, whichever tool wrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut parquet = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
    let mask = ProjectionMask::columns(parquet.parquet_schema(), columns.iter().copied());
    if let Some(step) = step {
        let filter = only_step(&parquet, step);
        parquet = parquet.with_row_filter(filter);
    }
    let mut all = Vec::new();
    for batch in parquet.with_projection(mask).with_batch_size(ROWS_AT_ONCE).build()? {
        all.append(&mut rows(&batch.map_err(parquet::errors::ParquetError::from)?)?);
    }
    Ok(all)
}

/// Decodes `step` first, and of the other columns only what that column lets through.
fn only_step(parquet: &ParquetRecordBatchReaderBuilder<File>, step: i64) -> RowFilter {
    let mask = ProjectionMask::columns(parquet.parquet_schema(), ["step"]);
    let is_it = move |batch: RecordBatch| {
        let steps =
            batch.column_by_name("step").and_then(|steps| steps.as_any().downcast_ref::<Int64Array>());
        let steps =
            steps.ok_or_else(|| ArrowError::SchemaError("it has no int64 column `step`".to_owned()))?;
        Ok(steps.iter().map(|this| Some(this == Some(step))).collect::<BooleanArray>())
    };
    RowFilter::new(vec![Box::new(ArrowPredicateFn::new(mask, is_it))])
}
