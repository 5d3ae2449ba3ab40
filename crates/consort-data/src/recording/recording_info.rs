//! Metadata of a recording as a whole.

use super::error::RecordingError;
use consort_core::{SignalOffers, Topology};
use parquet::file::metadata::KeyValue;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::path::Path;

/// The version of the schema that is written and read.
pub const SCHEMA: u32 = 1;

/// Key of the version.
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
    /// The quantum that was asked for, ms.
    pub interval_ms: f64,
    /// The processor.
    pub topology: Topology,
    /// Signals that it gave, with their tiers.
    pub offers: SignalOffers,
    /// The microarchitecture, where it is known.
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
