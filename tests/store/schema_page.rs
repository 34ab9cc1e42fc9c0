//! `src/core/store/SCHEMA.md` against the files that are written, both ways.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use stepledger::record::RunStatus;
use stepledger::store::{Dataset, keep_sweep};

use crate::{create, push, rows};

/// Of each table, its columns in order: name, type, whether it may be null.
type Tables = BTreeMap<String, Vec<[String; 3]>>;

#[test]
fn the_page_lists_every_column_that_is_written_and_no_other() {
    let page =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/core/store/SCHEMA.md"))
            .unwrap();
    assert_eq!(documented(&page), written());
}

/// `## steps` begins a table, and a row of it reads ``| `column` | type | null | unit | meaning |``.
fn documented(page: &str) -> Tables {
    let mut tables = Tables::new();
    let mut table = None;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix("## ") {
            table = title.split('`').nth(1).map(str::to_owned);
        } else if let (Some(table), Some(row)) = (&table, line.strip_prefix("| `")) {
            let cells: Vec<&str> = row.split('|').map(str::trim).collect();
            assert!(cells.len() > 5 && !cells[4].is_empty(), "a cell is missing: {line}");
            let column = [cells[0].trim_end_matches('`'), cells[1], cells[2]].map(str::to_owned);
            tables.entry(table.clone()).or_default().push(column);
        }
    }
    tables
}

fn written() -> Tables {
    let out = tempfile::tempdir().unwrap();
    let mut writer = create(out.path(), "a");
    push(&mut writer, 0..1);
    let dir = writer.finish(&rows::run("a", RunStatus::Complete), &rows::open()).unwrap();
    Dataset::open(&dir).unwrap().keep_experiment(rows::experiment()).unwrap();
    keep_sweep(&dir, "sweep-a", vec![rows::sweep()]).unwrap();
    let mut tables = Tables::new();
    for entry in dir.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let table = path.file_stem().unwrap().to_str().unwrap().split('-').next().unwrap().to_owned();
        let columns = columns(&path);
        let before = tables.insert(table, columns.clone());
        assert!(
            before.is_none_or(|before| before == columns),
            "{path:?} differs from the table's other files"
        );
    }
    tables
}

fn columns(path: &Path) -> Vec<[String; 3]> {
    let parquet = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let null = |nullable| if nullable { "yes" } else { "no" };
    let column = |field: &arrow_schema::FieldRef| {
        [field.name().clone(), kind(field.data_type()).to_owned(), null(field.is_nullable()).to_owned()]
    };
    parquet.schema().fields().iter().map(column).collect()
}

/// The page's word for a type.
fn kind(data_type: &arrow_schema::DataType) -> &'static str {
    match data_type.to_string().as_str() {
        "Boolean" => "bool",
        "Int32" => "int32",
        "Int64" => "int64",
        "Float64" => "float64",
        "Utf8" => "string",
        "Dictionary(Int32, Utf8)" => "dictionary",
        "Timestamp(µs, \"UTC\")" => "timestamp",
        list if list.starts_with("List(") => "list of string",
        other => panic!("the page has no word for {other}"),
    }
}
