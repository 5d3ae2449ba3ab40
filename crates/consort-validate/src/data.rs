//! The published figures: small files with their sources, embedded.

use super::error::ValidateError;
use consort_sim::machine::{self, MachineSpec};
use serde::de::DeserializeOwned;
use std::borrow::Cow;
use std::collections::BTreeMap;

macro_rules! embedded {
    ($($name:literal)*) => {
        [$(($name, include_str!(concat!("../data/", $name)))),*]
    };
}

/// Placements that a real kernel made; measured for the simulator's operating-system model.
pub(super) const PLACEMENTS: &str = "linux-placements.toml";

/// Published figures by file name.
#[derive(Clone, Debug)]
pub struct PublishedData {
    files: BTreeMap<String, Cow<'static, str>>,
}

impl PublishedData {
    /// The files that come with Consort.
    pub fn embedded() -> Self {
        let placements = include_str!("../../consort-sim/data/linux-placements.toml");
        let files = embedded![
            "acmp-migration.csv" "core-type-ipc.csv" "forms-machine.toml" "forms-phases.toml" "forms.csv"
            "parsec-e5320.csv" "skylake-sp.toml" "skylake-ways.csv" "spec2006-mix.csv" "spec2006-skylake.csv"
            "splash-calls.csv" "unit-occupancy.csv"
        ];
        let all = files.into_iter().chain([(PLACEMENTS, placements)]);
        Self {
            files: all
                .map(|(name, text)| (name.to_owned(), text.into()))
                .collect(),
        }
    }

    /// The same with another text for a file.
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
        let text = self.text(file)?;
        let reader = csv::ReaderBuilder::new()
            .comment(Some(b'#'))
            .from_reader(text.as_bytes());
        let rows = reader.into_deserialize().collect::<Result<_, _>>();
        rows.map_err(|error| data_error(file, error.to_string()))
    }

    /// A TOML file.
    pub(super) fn parse_toml<T: DeserializeOwned>(&self, file: &str) -> Result<T, ValidateError> {
        toml::from_str(self.text(file)?).map_err(|error| data_error(file, error.to_string()))
    }

    /// A machine that is described for a check.
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
