//! The published figures: small files with their sources, embedded.

use consort_core::topology::TopologyError;
use consort_data::{FigureError, ReportTableError};
use consort_experiment::bench::BenchError;
use consort_experiment::traced::TracedError;
use consort_experiment::{ExperimentError, JobsError};
use consort_reference::ReferenceError;
use consort_sim::SimError;
use consort_sim::describe::DescribeError;
use consort_sim::machine::presets::MachinePresetError;
use consort_sim::machine::{self, MachineSpec};
use consort_sim::pmu::PmuError;
use consort_sim::program::presets::ProgramPresetError;
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::error::Error;

/// Reason why a check cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum ValidateError {
    /// A file of published figures cannot be read.
    #[error("published figures in {file}: {message}")]
    Data {
        /// Name of the file.
        file: String,
        /// The fault and its place.
        message: String,
    },
    /// Workers could not be started, or were stopped.
    #[error(transparent)]
    Workers(#[from] JobsError),
    /// A description, a run or a table that a check needs.
    #[error(transparent)]
    Part(Box<dyn Error + Send + Sync>),
}

macro_rules! parts {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for ValidateError {
            fn from(error: $error) -> Self {
                Self::Part(Box::new(error))
            }
        }
    )*};
}

parts!(
    BenchError,
    DescribeError,
    ExperimentError,
    FigureError,
    MachinePresetError,
    PmuError,
    ProgramPresetError,
    ReferenceError,
    ReportTableError,
    SimError,
    TopologyError,
    TracedError,
    crate::StudyError,
);

macro_rules! embedded {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../../data/", $name)))),*]
    };
}

/// Placements that a real kernel made; the simulator's model of an operating system has them, too.
pub(super) const PLACEMENTS: &str = "linux-placements.toml";

/// Published figures by file name.
#[derive(Clone, Debug)]
pub struct PublishedData {
    files: BTreeMap<String, Cow<'static, str>>,
}

impl PublishedData {
    /// The files that come with Consort.
    pub fn embedded() -> Self {
        let placements = include_str!("../../../consort-sim/data/linux-placements.toml");
        let files = embedded![
            "acmp-migration.csv" "core-type-ipc.csv" "forms-machine.toml" "forms-phases.toml" "forms.csv"
            "parsec-e5320.csv" "skylake-sp.toml" "skylake-ways.csv" "spec2006-mix.csv" "spec2006-skylake.csv"
            "smt2-tacle.csv" "splash-calls.csv" "unit-occupancy.csv"
            "tacle/adpcm_dec.toml" "tacle/adpcm_enc.toml" "tacle/ammunition.toml" "tacle/cjpeg_transupp.toml"
            "tacle/cjpeg_wrbmp.toml" "tacle/dijkstra.toml" "tacle/epic.toml" "tacle/fmref.toml"
            "tacle/gsm_dec.toml" "tacle/gsm_enc.toml" "tacle/h264_dec.toml" "tacle/huff_enc.toml"
            "tacle/mpeg2.toml" "tacle/ndes.toml" "tacle/rijndael_dec.toml" "tacle/rijndael_enc.toml"
            "tacle/statemate.toml" "tacle/susan.toml"
        ];
        let all = files.into_iter().chain([(PLACEMENTS, placements)]);
        Self {
            files: all
                .map(|(name, text)| (name.to_owned(), text.into()))
                .collect(),
        }
    }

    /// The same figures with another text for a file, for tests of checks.
    #[must_use]
    pub fn with_file(mut self, file: &str, text: impl Into<String>) -> Self {
        self.files.insert(file.to_owned(), Cow::Owned(text.into()));
        self
    }

    /// The text of a file.
    ///
    /// # Errors
    /// No such file.
    pub fn text(&self, file: &str) -> Result<&str, ValidateError> {
        let text = self.files.get(file).map(Cow::as_ref);
        text.ok_or_else(|| data_error(file, "there is no such file"))
    }

    /// The lines of a CSV file.
    pub(super) fn parse_rows<T: DeserializeOwned>(
        &self,
        file: &str,
    ) -> Result<Vec<T>, ValidateError> {
        let reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(self.text(file)?.as_bytes());
        let rows = reader.into_deserialize().collect::<Result<_, _>>();
        rows.map_err(|error| data_error(file, error.to_string()))
    }

    pub(super) fn parse_toml<T: DeserializeOwned>(&self, file: &str) -> Result<T, ValidateError> {
        toml::from_str(self.text(file)?).map_err(|error| data_error(file, error.to_string()))
    }

    pub(super) fn parse_machine(&self, file: &str) -> Result<MachineSpec, ValidateError> {
        Ok(machine::parse(file, self.text(file)?)?)
    }
}

/// Error for a file of published figures with this fault.
pub(super) fn data_error(file: &str, message: impl Into<String>) -> ValidateError {
    ValidateError::Data {
        file: file.to_owned(),
        message: message.into(),
    }
}
