//! The format of a workload file.

use super::MAX_INSTANCES;
use crate::describe::Problems;
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
