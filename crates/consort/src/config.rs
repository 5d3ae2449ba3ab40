//! The configuration file: defaults for `consort run`.
//!
//! ```toml
//! [run]
//! policy = "workover:margin=0.1"
//! interval = "500ms"
//! seed = 1
//! topology = "/etc/consort/cores.toml"
//! enact = "nudge"
//! back-off = true
//! ```

use crate::cli::parse_interval;
use crate::failure::{bad_input, told};
use anyhow::{Context, Result};
pub(crate) use consort_lab::descriptions::folders;
use consort_linux::enforce::EnactChoice;
use serde::{Deserialize, Deserializer};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Everything that a configuration file can say.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Defaults for `consort run`.
    #[serde(default)]
    pub(crate) run: RunConfig,
}

/// Defaults for `consort run`; the command line wins.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct RunConfig {
    /// Policy with options.
    pub(crate) policy: Option<String>,
    /// Quantum.
    #[serde(default, deserialize_with = "interval")]
    pub(crate) interval: Option<Duration>,
    /// Seed of the policy's randomness.
    pub(crate) seed: Option<u64>,
    /// File that tells what PUs share instead of the kernel.
    pub(crate) topology: Option<PathBuf>,
    /// What keeps threads in their places.
    #[serde(default, deserialize_with = "enact")]
    pub(crate) enact: Option<EnactChoice>,
    /// Whether plans are undone when progress falls after them.
    pub(crate) back_off: Option<bool>,
    /// The file that all this is from.
    #[serde(skip)]
    origin: PathBuf,
}

impl RunConfig {
    /// The error with the file and the key that brought it about.
    pub(crate) fn blame(&self, key: &str, error: &anyhow::Error) -> anyhow::Error {
        let origin = self.origin.display();
        bad_input(format!(
            "configuration {origin}, run.{key}: {}",
            told(error)
        ))
    }
}

fn enact<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<EnactChoice>, D::Error> {
    let text = String::deserialize(deserializer)?;
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

fn interval<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_interval(&text)
        .map(Some)
        .map_err(serde::de::Error::custom)
}

/// Loads the file that was named, or the first of the usual places that exists.
pub(crate) fn load(named: Option<&Path>) -> Result<Config> {
    if let Some(path) = named {
        return read(path);
    }
    match usual_places().into_iter().find(|path| path.is_file()) {
        Some(path) => read(&path),
        None => Ok(Config::default()),
    }
}

fn usual_places() -> Vec<PathBuf> {
    let folders = folders().into_iter();
    folders.map(|folder| folder.join("config.toml")).collect()
}

fn read(path: &Path) -> Result<Config> {
    let text = consort_input::text(path)
        .with_context(|| format!("cannot read configuration {}", path.display()))?;
    let mut config = parse(&text).with_context(|| format!("configuration {}", path.display()))?;
    config.run.origin = path.to_owned();
    Ok(config)
}

/// Errors are one line: the line number, and what is wrong there.
fn parse(text: &str) -> Result<Config> {
    toml::from_str(text).map_err(|error| {
        let start = error.span().map_or(0, |span| span.start);
        let line = 1 + text
            .bytes()
            .take(start)
            .filter(|&byte| byte == b'\n')
            .count();
        anyhow::anyhow!("line {line}: {}", error.message().replace('\n', ", "))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_key_is_read() {
        let text = "[run]\npolicy = \"none\"\ninterval = \"250ms\"\nseed = 7\nenact = \"pin\"\nback-off = false\n";
        let run = parse(text).unwrap().run;
        assert_eq!(run.policy.as_deref(), Some("none"));
        assert_eq!(run.interval, Some(Duration::from_millis(250)));
        assert_eq!((run.seed, run.back_off), (Some(7), Some(false)));
        assert_eq!(run.enact, "pin".parse().ok());
    }

    #[test]
    fn an_empty_file_changes_nothing() {
        assert_eq!(parse("").unwrap(), Config::default());
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_in_one_line(text in "([\\[\\]={}\"'\n#. ]|run|policy|seed|[0-9a-z-]|\\PC){0,60}") {
            if let Err(error) = parse(&text) {
                prop_assert_eq!(error.to_string().lines().count(), 1);
            }
        }
    }

    #[test]
    fn errors_name_line_and_key() {
        let error = |text: &str| parse(text).unwrap_err().to_string();
        assert!(
            error("[run]\n\npolice = \"none\"\n").starts_with("line 3: unknown field `police`")
        );
        assert!(error("[run]\ninterval = \"5\"\n").contains("line 2"));
        assert!(error("[run]\ninterval = \"1us\"\n").contains("from 1ms to 1h"));
    }
}
