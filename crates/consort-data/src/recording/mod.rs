//! Recordings of managed threads: the observation of each thread in each interval, and the plan.
//!
//! A recording is a Parquet file with one row per thread and interval ([`COLUMNS`]). The machine, the
//! policy and the version of the schema are in the file's metadata ([`RecordingInfo`]).
//!
//! Parquet has its index at the end, so an unfinished file cannot be read. Therefore a
//! [`RecordingWriter`] writes parts, each a complete file, into the folder `FILE.parts`, and at the
//! end copies their row groups into one file. If the recorder is killed, the folder remains; it
//! contains everything up to the last part and is read like a file.
//!
//! To record, call [`RecordingWriter::create`], [`RecordingWriter::add`] once per turn and
//! [`RecordingWriter::finish`]. To read, call [`Recording::open`] and [`Recording::quanta`].

use consort_core::{SignalOffers, Topology};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

mod reader;
mod row;
mod writer;

pub use reader::{Quanta, RecordedQuantum, Recording};
pub use row::{COLUMNS, ColumnInfo};
pub use writer::{RecordingWriter, parts_folder};

/// Reason why a recording cannot be written or read.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// A file cannot be used.
    #[error("cannot {action} recording {}: {source}", path.display())]
    File {
        /// Action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Error of the system.
        source: io::Error,
    },
    /// It is no Parquet, or a damaged one.
    #[error("cannot {action} recording {}: {source}", path.display())]
    Parquet {
        /// Action that failed.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Fault found in it.
        source: ParquetError,
    },
    /// It is Parquet, but not a recording.
    #[error("{} is no recording of consort: {why}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Description of what it lacks.
        why: String,
    },
    /// It has another schema.
    #[error(
        "recording {} has version {found} of the schema, and this consort reads version {wanted}; \
         use the consort that wrote it",
        path.display()
    )]
    Schema {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: String,
        /// The version that is read.
        wanted: u32,
    },
    /// A file is in the way of a recording.
    #[error("{} exists; --force replaces it, or choose another name with -o", path.display())]
    Exists {
        /// The file.
        path: PathBuf,
    },
    /// Something of another recording is in the way.
    #[error(
        "{} is left of a recording that was not finished; replay it, or remove it",
        path.display()
    )]
    Left {
        /// The folder.
        path: PathBuf,
    },
}

impl RecordingError {
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File {
            action,
            path,
            source,
        }
    }

    pub(crate) fn parquet(action: &'static str, path: &Path, source: ParquetError) -> Self {
        let path = path.to_owned();
        Self::Parquet {
            action,
            path,
            source,
        }
    }

    pub(crate) fn foreign(path: &Path, why: impl Into<String>) -> Self {
        Self::Foreign {
            path: path.to_owned(),
            why: why.into(),
        }
    }
}

/// The version of the schema that is written and read.
pub const SCHEMA: u32 = 1;

const SCHEMA_KEY: &str = "consort.schema";
/// Key of the rest, as JSON.
const ABOUT_KEY: &str = "consort.about";

/// Facts that hold for a recording as a whole.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RecordingInfo {
    /// Version of the program that recorded.
    pub version: String,
    /// Start time, s since 1970.
    pub started_s: u64,
    /// The command, or what was attached.
    pub command: String,
    /// The policy that decided.
    pub policy: String,
    /// The requested quantum, ms.
    pub interval_ms: f64,
    /// The processor.
    pub topology: Topology,
    /// Signals that it gave, with their tiers.
    pub offers: SignalOffers,
    /// The microarchitecture, if it is known.
    pub machine: String,
    /// Components of its cycle stack, in their order.
    pub stack: Vec<Cow<'static, str>>,
}

impl RecordingInfo {
    /// The signals with what their own description leaves out.
    pub fn all_offers(&self) -> SignalOffers {
        let mut offers = self.offers.clone();
        offers.set_machine(&self.machine);
        offers.set_stack(self.stack.clone());
        offers
    }

    pub(crate) fn to_metadata(&self) -> Result<Vec<KeyValue>, serde_json::Error> {
        let about = serde_json::to_string(self)?;
        Ok(vec![
            KeyValue::new(SCHEMA_KEY.to_owned(), SCHEMA.to_string()),
            KeyValue::new(ABOUT_KEY.to_owned(), about),
        ])
    }

    pub(crate) fn from_metadata(
        path: &Path,
        metadata: Option<&Vec<KeyValue>>,
    ) -> Result<Self, RecordingError> {
        let value = |key: &str| {
            let mut pairs = metadata.into_iter().flatten();
            pairs.find(|pair| pair.key == key)?.value.as_deref()
        };
        let Some(found) = value(SCHEMA_KEY) else {
            return Err(RecordingError::foreign(
                path,
                format!("it has no {SCHEMA_KEY}"),
            ));
        };
        if found != SCHEMA.to_string() {
            return Err(RecordingError::Schema {
                path: path.to_owned(),
                found: found.chars().take(20).collect(),
                wanted: SCHEMA,
            });
        }
        let about = value(ABOUT_KEY).unwrap_or_default();
        serde_json::from_str(about)
            .map_err(|error| RecordingError::foreign(path, format!("{ABOUT_KEY}: {error}")))
    }
}
