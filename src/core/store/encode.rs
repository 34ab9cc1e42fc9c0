//! Rows → the bytes of a Parquet file.

use std::iter;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::schema::{Stamp, Table};

/// Nearly all that is left after the encodings is the chance in the instants: levels 1 to 6 differ by less
/// than 1 % in size (`benches/store.rs`).
const ZSTD_LEVEL: i32 = 1;

/// Every compressed column makes itself a context, which takes longer than such a column's few bytes are
/// worth: in a virtual machine some 25 µs.
const WORTH_COMPRESSING_BYTES: usize = 2 * 1024;

/// The whole file in memory, so that what can fail on disk is one plain write.
pub(super) fn parquet<T: Table>(stamp: &Stamp, rows: &[T]) -> Result<Vec<u8>, ParquetError> {
    let batch = batch(stamp, rows)?;
    let properties = properties(&batch)?;
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn batch<T: Table>(stamp: &Stamp, rows: &[T]) -> Result<RecordBatch, ArrowError> {
    let fields: Vec<Field> = Stamp::fields().into_iter().chain(T::fields()).collect();
    let mut columns = Stamp::columns(iter::repeat_n(stamp, rows.len()))?;
    columns.extend(T::columns(rows.iter())?);
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn properties(batch: &RecordBatch) -> Result<WriterProperties, ParquetError> {
    let zstd = Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?);
    // Parts are one row group of a few pages: an index into them would be larger than what it skips.
    let mut properties = WriterProperties::builder()
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_column_statistics_enabled(ColumnPath::from("step"), EnabledStatistics::Chunk);
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        let column = ColumnPath::from(field.name().as_str());
        if worth_compressing(field, array) {
            properties = properties.set_column_compression(column.clone(), zstd);
        }
        if differs_little(field) {
            properties = properties
                .set_column_dictionary_enabled(column.clone(), false)
                .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
        }
    }
    Ok(properties.build())
}

/// Whether zstd finds anything that the encodings have left.
fn worth_compressing(field: &Field, array: &ArrayRef) -> bool {
    // Durations and the ends of lifetimes are chance in their lower bits, and the upper ones are gone.
    let chance = ["freed_ns", "total_ns"].contains(&field.name().as_str());
    !chance && array.get_buffer_memory_size() >= WORTH_COMPRESSING_BYTES && varies(array)
}

/// Whether any two rows differ: if not, the column is a run or two.
fn varies(array: &ArrayRef) -> bool {
    let cells = array.as_any_dictionary_opt().map_or(array.as_ref(), |dictionary| dictionary.keys());
    let others = cells.len().saturating_sub(1);
    cells.null_count() < cells.len() && cells.slice(0, others).as_ref() != cells.slice(1, others).as_ref()
}

/// From row to row, as ids, instants and durations do, and the steps. A dictionary of the former would hold
/// nearly every row, and for the latter it would only be slower. Bytes do repeat.
fn differs_little(field: &Field) -> bool {
    let name = field.name();
    let number = field.data_type() == &DataType::Int64;
    (number && (name == "id" || name.ends_with("step") || name.ends_with("_ns")))
        || matches!(field.data_type(), DataType::Timestamp(..))
}
