//! Rows → the bytes of a Parquet file.

use std::sync::Arc;

use arrow_array::RecordBatch;
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

/// The whole file in memory, so that what can fail on disk is one plain write.
pub(super) fn parquet<T: Table>(stamp: &Stamp, rows: &[T]) -> Result<Vec<u8>, ParquetError> {
    let batch = batch(stamp, rows)?;
    let properties = properties(&batch.schema())?;
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    writer.into_inner()
}

fn batch<T: Table>(stamp: &Stamp, rows: &[T]) -> Result<RecordBatch, ArrowError> {
    let stamps = vec![stamp.clone(); rows.len()];
    let fields: Vec<Field> = Stamp::fields().into_iter().chain(T::fields()).collect();
    let columns = Stamp::columns(&stamps)?.into_iter().chain(T::columns(rows)?).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), columns)
}

fn properties(schema: &Schema) -> Result<WriterProperties, ParquetError> {
    // Parts are one row group of a few pages: an index into them would be larger than what it skips.
    let mut properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(ZSTD_LEVEL)?))
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_column_statistics_enabled(ColumnPath::from("step"), EnabledStatistics::Chunk);
    for field in schema.fields().iter().filter(|field| seldom_repeats(field)) {
        let column = ColumnPath::from(field.name().as_str());
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    Ok(properties.build())
}

/// Ids, instants and durations: a dictionary of them would hold nearly every row. Bytes do repeat.
fn seldom_repeats(field: &Field) -> bool {
    let measured =
        field.data_type() == &DataType::Int64 && (field.name() == "id" || field.name().ends_with("_ns"));
    measured || matches!(field.data_type(), DataType::Timestamp(..))
}
