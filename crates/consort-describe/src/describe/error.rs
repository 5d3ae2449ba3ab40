//! Error in a description file, in one line.

use thiserror::Error;

/// The first thing wrong with a file. Its text is one line whatever the file holds.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{file}:{line}: {}{message}{}", colon(key), and_more(*more))]
pub struct DescribeError {
    /// The file's name, control characters escaped.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Path of the key, for example `core_type.big.smt[1].ways`; empty when the text is no TOML.
    pub key: String,
    /// Account of what is wrong and what would be right.
    pub message: String,
    /// Number of further things that are wrong.
    pub more: usize,
}

impl DescribeError {
    pub(crate) fn new(file: &str, line: usize, key: &str, message: &str, more: usize) -> Self {
        Self {
            file: one_line(file),
            line,
            key: one_line(key),
            message: one_line(message),
            more,
        }
    }
}

fn colon(key: &str) -> String {
    if key.is_empty() {
        return String::new();
    }
    format!("{key}: ")
}

fn and_more(more: usize) -> String {
    match more {
        0 => String::new(),
        _ => format!(" (and {more} more)"),
    }
}

/// The text with control characters and line separators escaped.
fn one_line(text: &str) -> String {
    let breaks = |c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}');
    let mut line = String::new();
    for c in text.chars() {
        if breaks(c) {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_text_is_one_line_with_the_count_of_what_else_is_wrong() {
        let error = DescribeError::new("a\nb.toml", 3, "llc.ways", "is 0;\nexpected 1", 2);
        let expect = "a\\nb.toml:3: llc.ways: is 0;\\nexpected 1 (and 2 more)";
        assert_eq!(error.to_string(), expect);
        let no_key = DescribeError::new("x", 1, "", "bad", 0);
        assert_eq!(no_key.to_string(), "x:1: bad");
    }
}
