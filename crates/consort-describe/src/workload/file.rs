//! The format of a workload file.

use super::{MAX_INSTANCES, WorkloadError};
use crate::describe::{self, DescribeError, Locations, Problems};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest start delay, ms: a day.
const MAX_START_MS: f64 = 86_400_000.0;

/// Programs that run together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// Description in a line.
    #[serde(default)]
    pub title: Option<String>,
    /// The programs.
    #[serde(rename = "entry")]
    pub entries: Vec<EntrySpec>,
}

/// Copies of one program.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EntrySpec {
    /// Name of a program, or path of a program file, relative to the workload file: a text that
    /// contains `/`, begins with `.` or `~` or ends in `.toml`, or a file that exists.
    pub program: String,
    /// Number of copies, 1 to 65536.
    #[serde(default = "one")]
    pub count: u32,
    /// Threads of each; what the program says when absent.
    #[serde(default)]
    pub threads: Option<u32>,
    /// Start, ms after the run's start.
    #[serde(default)]
    pub start_ms: f64,
}

fn one() -> u32 {
    1
}

impl WorkloadSpec {
    /// True if a text describes a workload and not a program: it has entries.
    pub fn is_workload_text(text: &str) -> bool {
        let table = text.parse::<toml::Table>();
        table.is_ok_and(|table| table.contains_key("entry"))
    }

    /// Notes what cannot be.
    pub fn validate(&self, problems: &mut Problems) {
        let some = !self.entries.is_empty();
        problems.require(some, "entry", "is empty; expected at least one program");
        for (index, entry) in self.entries.iter().enumerate() {
            entry.validate(&format!("entry[{index}]"), problems);
        }
    }
}

impl EntrySpec {
    fn validate(&self, at: &str, problems: &mut Problems) {
        let most = f64::from(MAX_INSTANCES);
        let named = !self.program.trim().is_empty();
        let message = "is empty; expected a program's name or path";
        problems.require(named, format!("{at}.program"), message);
        problems.check_range(format!("{at}.count"), f64::from(self.count), 1.0, most);
        if let Some(threads) = self.threads {
            problems.check_range(format!("{at}.threads"), f64::from(threads), 1.0, most);
        }
        problems.check_range(format!("{at}.start_ms"), self.start_ms, 0.0, MAX_START_MS);
    }
}

/// A workload file that has been read.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadFile {
    file: String,
    text: String,
    spec: WorkloadSpec,
}

impl WorkloadFile {
    /// Reads and validates a workload file's text; `file` is its path, for messages and for the
    /// paths in it, which are relative to its folder.
    ///
    /// # Errors
    /// The first thing wrong with it.
    pub fn parse(file: &str, text: &str) -> Result<Self, DescribeError> {
        Ok(Self {
            spec: describe::parse(file, text, WorkloadSpec::validate)?,
            file: file.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Contents of the file.
    pub fn spec(&self) -> &WorkloadSpec {
        &self.spec
    }

    /// A path of the file, which is relative to the folder of the file, as a path for the caller.
    pub(super) fn resolve_path(&self, path: &str) -> String {
        match self.file.rsplit_once('/') {
            Some((folder, _)) if !path.starts_with('/') => format!("{folder}/{path}"),
            _ => path.to_owned(),
        }
    }

    /// Returns the error of an entry with file, line and key.
    pub(super) fn entry_error(&self, entry: usize, error: &WorkloadError) -> WorkloadError {
        let key = match error {
            WorkloadError::Threads { .. } => "threads",
            WorkloadError::TooMany { .. } => "count",
            _ => "program",
        };
        let key = format!("entry[{entry}].{key}");
        let line = Locations::new(&self.text).line_of(&key);
        DescribeError::new(&self.file, line, &key, &error.to_string(), 0).into()
    }
}
