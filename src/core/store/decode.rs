//! A Parquet file → rows.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use arrow_array::{BooleanArray, Int64Array, RecordBatch};
use arrow_schema::ArrowError;
use bytes::Bytes;
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::{
    ArrowPredicateFn, ArrowReaderOptions, ParquetRecordBatchReaderBuilder, RowFilter,
};
use parquet::basic::Compression;
use parquet::file::metadata::{ParquetMetaData, RowGroupMetaData};

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

/// The row of a `run.parquet` of a schema version from 1 to `newest`; the version alone, if it is another one:
/// nothing is known of what the columns of such a file mean.
pub(super) fn run(path: &Path, newest: i32) -> Result<Result<RunRow, i32>, StoreError> {
    let columns = [Stamp::COLUMNS, RunColumns::COLUMNS].concat();
    let rows = read(path, &columns, None, |batch| {
        let versions: Vec<i32> = cell::decode(batch, "schema_version")?.collect();
        match versions.iter().find(|version| !(1..=newest).contains(*version)) {
            Some(&other) => Ok(vec![Err(other)]),
            None => Ok(Stamp::rows(batch)?.into_iter().zip(RunColumns::rows(batch)?).map(Ok).collect()),
        }
    })?;
    match the_one(path, rows)? {
        Ok((stamp, columns)) => columns.into_run(&stamp).map(Ok).map_err(|damage| damaged(path, damage)),
        Err(other) => Ok(Err(other)),
    }
}

fn the_one<R>(path: &Path, rows: Vec<R>) -> Result<R, StoreError> {
    let [row] = <[R; 1]>::try_from(rows).map_err(|rows| damaged(path, Damage::NotOneRow(rows.len())))?;
    Ok(row)
}

fn damaged(path: &Path, damage: Damage) -> StoreError {
    let path = path.to_owned();
    match damage {
        // Nothing is wrong with such a file.
        Damage::Compression(codec) => StoreError::Compression { path, codec },
        damage => StoreError::Damaged { path, damage },
    }
}

/// Other tools may have written a dataset again, each with its own favourite.
fn readable(parquet: &ParquetMetaData) -> Result<(), Damage> {
    let mut columns = parquet.row_groups().iter().flat_map(RowGroupMetaData::columns);
    let unreadable = columns.find_map(|column| match column.compression() {
        Compression::UNCOMPRESSED | Compression::SNAPPY | Compression::ZSTD(_) => None,
        other => Some(other.to_string()),
    });
    // Without its level, as in `GZIP(GzipLevel(6))`.
    let name = |codec: String| codec.split('(').next().unwrap_or_default().to_owned();
    unreadable.map_or(Ok(()), |codec| Err(Damage::Compression(name(codec))))
}

fn read<R>(
    path: &Path,
    columns: &[&str],
    step: Option<i64>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<R>, Damage>,
) -> Result<Vec<R>, StoreError> {
    // The whole file at once: the Parquet reader would come back to it several times for each column.
    let file = fs::read(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    // The Parquet reader returns errors for most broken files, and panics on a few.
    let read = catch_unwind(AssertUnwindSafe(|| read_batches(file.into(), columns, step, rows)));
    read.unwrap_or(Err(Damage::Panic)).map_err(|damage| damaged(path, damage))
}

fn read_batches<R>(
    file: Bytes,
    columns: &[&str],
    step: Option<i64>,
    rows: impl Fn(&RecordBatch) -> Result<Vec<R>, Damage>,
) -> Result<Vec<R>, Damage> {
    // The kept Arrow schema is ignored so that a column has one type, whichever tool wrote the file.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let mut parquet = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
    readable(parquet.metadata())?;
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
fn only_step(parquet: &ParquetRecordBatchReaderBuilder<Bytes>, step: i64) -> RowFilter {
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
