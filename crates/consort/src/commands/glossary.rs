//! `consort glossary`: the words that results use, each with its explanation.

use crate::failure::bad_input;
use crate::output::{self, OutputColumn, OutputFormat, text, wrap};
use anyhow::Result;
use clap::Args;
use consort_core::nearest;
use serde::Serialize;
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct GlossaryArgs {
    /// Word to explain, in any case; all if none is given
    #[arg(value_name = "WORD", num_args = 0..)]
    pub(crate) word: Vec<String>,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// The page of the book: a paragraph `**word**: explanation` for each word.
const PAGE: &str = include_str!("../../../../docs/reference/glossary.md");

/// Words that an unknown one is answered with.
const SUGGESTED: usize = 3;

#[derive(Debug, Serialize)]
struct GlossaryEntry {
    word: String,
    explanation: String,
}

const COLUMNS: &[OutputColumn<GlossaryEntry>] = &[
    text("word", |e| e.word.clone()),
    text("explanation", |e| e.explanation.clone()),
];

pub(crate) fn execute(args: &GlossaryArgs) -> Result<ExitCode> {
    let mut entries = entries();
    if !args.word.is_empty() {
        let wanted = args.word.join(" ").to_lowercase();
        let is_wanted = |entry: &GlossaryEntry| entry.word.to_lowercase() == wanted;
        if !entries.iter().any(is_wanted) {
            let has_part = |entry: &&GlossaryEntry| entry.word.to_lowercase().contains(&wanted);
            let similar = entries.iter().filter(has_part).map(|e| e.word.as_str());
            let near = nearest(&wanted, entries.iter().map(|e| e.word.as_str()), SUGGESTED);
            let mut words: Vec<&str> = similar.chain(near).collect();
            words.truncate(SUGGESTED);
            return Err(bad_input(format!(
                "unknown word '{wanted}'; the nearest are {}; `consort glossary` lists all",
                words.join(", ")
            )));
        }
        entries.retain(is_wanted);
    }
    output::print(args.format, COLUMNS, &entries, &entries, || {
        let paragraph = |e: &GlossaryEntry| wrap(&format!("{}: ", e.word), &e.explanation);
        entries.iter().map(paragraph).collect()
    })?;
    Ok(ExitCode::SUCCESS)
}

fn entries() -> Vec<GlossaryEntry> {
    let paragraphs = PAGE
        .split("\n\n")
        .map(|p| p.replace('\n', " ").replace('`', ""));
    let entry = |paragraph: String| {
        let (word, explanation) = paragraph.strip_prefix("**")?.split_once("**: ")?;
        Some(GlossaryEntry {
            word: word.to_owned(),
            explanation: explanation.trim().to_owned(),
        })
    };
    paragraphs.filter_map(entry).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_every_word_once() {
        let words: Vec<String> = entries().into_iter().map(|e| e.word).collect();
        assert!(words.len() >= 40, "{words:?}");
        let mut distinct: Vec<String> = words.iter().map(|word| word.to_lowercase()).collect();
        distinct.sort();
        distinct.dedup();
        assert_eq!(words.len(), distinct.len());
        assert_eq!(
            PAGE.lines().filter(|l| l.starts_with("**")).count(),
            words.len()
        );
    }
}
