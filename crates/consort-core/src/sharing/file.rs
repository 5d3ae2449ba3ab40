//! A sharing map as a TOML file.
//!
//! ```toml
//! source = "consort machine probe: 6 of 6 pairs"
//! cores = ["0,2", "1,3"]   # the PUs of each core
//! l2s = ["0,2", "1,3"]     # of each level 2 cache; may be missing
//! llcs = ["0-3"]           # of each LLC domain; may be missing
//! ```

use super::map::{SharingError, SharingMap};
use crate::pu_set::PuSet;
use serde::Deserialize;
use std::fmt::Write;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SharingMapFile {
    #[serde(default)]
    source: String,
    cores: Vec<String>,
    #[serde(default)]
    l2s: Vec<String>,
    #[serde(default)]
    llcs: Vec<String>,
}

impl SharingMap {
    /// Reads a map; `origin` is the name of the text in errors.
    ///
    /// # Errors
    /// The first thing that is wrong: no TOML, an unknown or missing key, no list of PUs, or a PU
    /// in two groups of a kind.
    pub fn parse(text: &str, origin: &str) -> Result<Self, SharingError> {
        let file: SharingMapFile = toml::from_str(text).map_err(|error| {
            let start = error.span().map_or(0, |span| span.start);
            let before = text.bytes().take(start);
            SharingError::File {
                origin: origin.to_owned(),
                line: 1 + before.filter(|&byte| byte == b'\n').count(),
                problem: error.message().replace('\n', ", "),
            }
        })?;
        Ok(Self {
            source: file.source,
            cores: parse_groups("cores", &file.cores, origin)?,
            l2s: parse_groups("l2s", &file.l2s, origin)?,
            llcs: parse_groups("llcs", &file.llcs, origin)?,
        })
    }

    /// The map as a file.
    pub fn to_toml(&self) -> String {
        let source = toml::Value::String(self.source.clone());
        let mut text = format!("source = {source}\n");
        for (key, groups) in self.kinds() {
            let groups: Vec<String> = groups.iter().map(|pus| format!("\"{pus}\"")).collect();
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key} = [{}]", groups.join(", "));
        }
        text
    }
}

fn parse_groups(
    key: &'static str,
    texts: &[String],
    origin: &str,
) -> Result<Vec<PuSet>, SharingError> {
    let mut groups: Vec<PuSet> = Vec::with_capacity(texts.len());
    for (index, text) in texts.iter().enumerate() {
        let wrong = |problem: String| SharingError::Group {
            origin: origin.to_owned(),
            key,
            index,
            pus: text.clone(),
            problem,
        };
        let pus: PuSet = text.parse().map_err(|error| wrong(format!("{error}")))?;
        if pus.is_empty() {
            return Err(wrong("is empty; name at least one PU".to_owned()));
        }
        let twice = groups
            .iter()
            .find_map(|other| pus.intersection(other).first());
        if let Some(pu) = twice {
            return Err(wrong(format!(
                "PU {pu} is in another of {key} already; name every PU once"
            )));
        }
        groups.push(pus);
    }
    Ok(groups)
}
