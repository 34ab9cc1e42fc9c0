//! What can go wrong between records and disk: each error names the path and the way out.

use std::io::{self, ErrorKind};
use std::path::PathBuf;

use parquet::errors::ParquetError;

use crate::record::UnknownWord;

/// Why a dataset could not be written, found or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    #[error("cannot write {}: {source}; {}", path.display(), way_out_of_writing(source))]
    Write { path: PathBuf, source: io::Error },

    #[error(
        "cannot write {}: {source}; the record is kept with its run: see to it that this folder can be written to, or \
         name a copy of the run",
        path.display()
    )]
    WriteBeside { path: PathBuf, source: io::Error },

    #[error("cannot encode {}: {source}; this is a fault of stepledger, please report it", path.display())]
    Encode { path: PathBuf, source: ParquetError },

    #[error(
        "the thread that writes the dataset ended early; this is a fault of stepledger, please report it"
    )]
    WriterGone,

    #[error("run id {0:?} cannot name a folder; use letters, digits, `-`, `_` and `.`")]
    RunId(String),

    #[error("{} exists already; use another run id, or remove it", .0.display())]
    Exists(PathBuf),

    #[error("cannot read {}: {source}; check that it exists and that you may read it", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("{} is not a run: it holds no run.parquet; name a folder that `stepledger run` made", .0.display())]
    NotARun(PathBuf),

    #[error(
        "{} holds no run.parquet: its process ended before it wrote one, and there is nothing to read; \
         `stepledger rm` removes it",
        .0.display()
    )]
    HalfWritten(PathBuf),

    #[error("{} is damaged: {damage}; restore it from a copy, or move it away to read the rest", path.display())]
    Damaged { path: PathBuf, damage: Damage },

    #[error(
        "{} is damaged: {damage}; mend it, or move it away and calibrate again: runs go on without it",
        path.display()
    )]
    DamagedCalibration { path: PathBuf, damage: Damage },

    #[error(
        "{} is compressed with {codec}, which this build does not read; write it again with Zstandard or Snappy",
        path.display()
    )]
    Compression { path: PathBuf, codec: String },

    #[error(
        "{} has schema version {found}, and this build reads 1 to {supported}; open it with a stepledger \
         at least as new as the one that wrote it",
        path.display()
    )]
    SchemaVersion { path: PathBuf, found: i32, supported: i32 },

    #[error("there is no run in {}; make one with `stepledger run`, or name another folder with --out", .0.display())]
    NoRuns(PathBuf),

    #[error(
        "{} is a folder of runs, not a run: name one of them, or look there with --out {}",
        .0.display(),
        .0.display()
    )]
    FolderOfRuns(PathBuf),

    #[error("no run in {} is called {run:?}; there are: {known}", out.display())]
    NoSuchRun { run: String, out: PathBuf, known: String },

    #[error("{run:?} could be any of these runs in {}: {matches}; give more of the name", out.display())]
    Ambiguous { run: String, out: PathBuf, matches: String },

    #[error("{0:?} cannot name a baseline; use letters, digits, `-`, `_` and `.`")]
    BaselineName(String),

    #[error("{} is there, and is found by that name already; choose another name for the baseline", .0.display())]
    BaselineTaken(PathBuf),

    #[error("there is no baseline {name:?}; there are: {}", if known.is_empty() { "none" } else { known })]
    NoSuchBaseline { name: String, known: String },

    #[error(
        "the baseline {name:?} stands for {}, which is gone; set it anew with `stepledger baseline set`",
        place.display()
    )]
    BaselineGone { name: String, place: PathBuf },
}

/// What is wrong with a file that should hold a table.
#[derive(Debug, thiserror::Error)]
pub enum Damage {
    #[error(transparent)]
    Parquet(#[from] ParquetError),

    #[error("it is compressed with {0}, which this build does not read")]
    Compression(String),

    #[error("it has no column `{0}`")]
    NoColumn(String),

    #[error("its column `{column}` is {found} where {expected} belongs")]
    ColumnType { column: String, found: String, expected: String },

    #[error("its column `{0}` lacks a value that every row must have")]
    Null(String),

    #[error("its column `{column}` has an {source}")]
    Word { column: String, source: UnknownWord },

    #[error("its column `config` is no JSON object: {0}")]
    Config(#[from] serde_json::Error),

    #[error("it is not the JSON that was written there: {0}")]
    Json(serde_json::Error),

    #[error("it holds {0} rows instead of one")]
    NotOneRow(usize),

    #[error("its structure makes no sense to the Parquet reader")]
    Panic,
}

fn way_out_of_writing(source: &io::Error) -> &'static str {
    match source.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "free some space, or write to another disk with --out"
        }
        ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
            "name a folder that you may write to with --out"
        }
        ErrorKind::AlreadyExists | ErrorKind::NotADirectory => {
            "a file is in the way; name a folder with --out"
        }
        ErrorKind::NotFound => {
            "its folder is gone, or cannot be made there; name one that can, and leave it in place while the run goes on"
        }
        _ => "check the disk, or write to another one with --out",
    }
}
