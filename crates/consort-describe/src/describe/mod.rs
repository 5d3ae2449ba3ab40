//! Descriptions: TOML files of machines, programs and workloads, and what is wrong with them.
//!
//! [`parse`] reads a description and has it validated; whatever is wrong comes
//! back as one line that names file, line and key and says what would be right.
//! [`machine_schema`] and [`program_schema`] publish the formats.

mod locate;
mod message;

use crate::machine::MachineSpec;
use crate::program::ProgramSpec;
use message::ReaderMessage;
use schemars::{JsonSchema, schema_for};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt;

pub use locate::Locations;

/// Reads and validates a description.
///
/// `file` is the name for messages; `validate` notes what cannot be.
///
/// # Errors
/// The first thing wrong in the order of lines, and how many more `validate` has found.
pub fn parse<T: DeserializeOwned + JsonSchema>(
    file: &str,
    text: &str,
    validate: fn(&T, &mut Problems),
) -> Result<T, DescribeError> {
    let value = toml::from_str(text).map_err(|e| parse_error::<T>(file, text, &e))?;
    let mut problems = Problems::default();
    validate(&value, &mut problems);
    let Some(more) = problems.0.len().checked_sub(1) else {
        return Ok(value);
    };
    let at = Locations::new(text);
    let lines = problems.0.iter().map(|problem| at.line_of(&problem.key));
    // Of several problems on one line, the first that was noted.
    let first = lines.zip(&problems.0).min_by_key(|(line, _)| *line);
    match first {
        Some((line, problem)) => {
            let (key, message) = (&problem.key, &problem.message);
            Err(DescribeError::new(file, line, key, message, more))
        }
        None => Ok(value),
    }
}

fn parse_error<T: JsonSchema>(file: &str, text: &str, error: &toml::de::Error) -> DescribeError {
    let at = Locations::new(text);
    let span = error.span().unwrap_or(0..0);
    let line = at.line(span.start);
    let (key, message) = match ReaderMessage::new(error.message()) {
        ReaderMessage::Unknown { key, message } => {
            // The reader points at the key itself, or at the table that contains it.
            let path = at.path_at(span.start);
            let is_its_own = path == key || path.ends_with(&format!(".{key}"));
            let path = if is_its_own {
                path.to_owned()
            } else {
                join_path(path, &key)
            };
            (path, message)
        }
        ReaderMessage::Missing { key } => {
            let key = join_path(at.path_of(&span), &key);
            let meaning = meaning::<T>(&key);
            let mut letters = meaning.chars();
            let first = letters.next().map(|first| first.to_ascii_lowercase());
            let starts_plain = letters.clone().next().is_none_or(char::is_lowercase);
            let meaning = match first.filter(|_| starts_plain) {
                Some(first) => format!("{first}{}", letters.as_str()),
                None => meaning,
            };
            (key, format!("is missing; expected the {meaning}"))
        }
        // A text that is no TOML at all is often another file, so the message names the format.
        ReaderMessage::Wrong { message } if text.parse::<toml::Table>().is_err() => {
            let key = at.path_at(span.start).to_owned();
            (
                key,
                format!("{message}; not TOML, as a description is (`consort list schemas`)"),
            )
        }
        ReaderMessage::Wrong { message } => (at.path_at(span.start).to_owned(), message),
    };
    DescribeError::new(file, line, &key, &message, 0)
}

/// The path of a key below another.
fn join_path(parent: &str, key: &str) -> String {
    match parent {
        "" => key.to_owned(),
        _ => format!("{parent}.{key}"),
    }
}

/// The first thing wrong with a file. Its text is one line whatever the file holds.
#[derive(Clone, Debug, PartialEq, Eq)]
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

impl fmt::Display for DescribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: ", self.file, self.line)?;
        if !self.key.is_empty() {
            write!(f, "{}: ", self.key)?;
        }
        f.write_str(&self.message)?;
        match self.more {
            0 => Ok(()),
            more => write!(f, " (and {more} more)"),
        }
    }
}

impl std::error::Error for DescribeError {}

/// The text with control characters and line separators escaped.
fn one_line(text: &str) -> String {
    let mut line = String::new();
    for c in text.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            line.extend(c.escape_default());
        } else {
            line.push(c);
        }
    }
    line
}

/// One value that cannot be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescriptionProblem {
    /// Path of the key in the file, for example `phase[2].mlp.value`.
    pub key: String,
    /// Account of what is wrong and what would be right.
    pub message: String,
}

/// Everything found wrong with a description, in the order of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Problems(Vec<DescriptionProblem>);

impl Problems {
    /// Notes a problem.
    pub fn add(&mut self, key: impl Into<String>, message: impl Into<String>) {
        self.0.push(DescriptionProblem {
            key: key.into(),
            message: message.into(),
        });
    }

    /// Notes a value that is not a number from `min` to `max`.
    pub fn check_range(&mut self, key: impl Into<String>, value: f64, min: f64, max: f64) {
        if !(min..=max).contains(&value) {
            self.add(key, format!("is {value}; expected {min} to {max}"));
        }
    }

    /// Notes the problems when `holds` is false.
    pub fn require(&mut self, holds: bool, key: impl Into<String>, message: impl Into<String>) {
        if !holds {
            self.add(key, message);
        }
    }

    /// The problems.
    pub fn list(&self) -> &[DescriptionProblem] {
        &self.0
    }
}

/// Least and greatest value.
pub(crate) type ValueRange = (f64, f64);

/// Notes problems of what lies below a key.
pub(crate) struct KeyScope<'a> {
    problems: &'a mut Problems,
    prefix: String,
}

impl<'a> KeyScope<'a> {
    /// Below `prefix`; at the top when it is empty.
    pub(crate) fn new(problems: &'a mut Problems, prefix: impl Into<String>) -> Self {
        Self {
            problems,
            prefix: prefix.into(),
        }
    }

    /// Below `key` of here.
    pub(crate) fn child(&mut self, key: &str) -> KeyScope<'_> {
        let prefix = self.path(key);
        KeyScope::new(self.problems, prefix)
    }

    /// Notes a value outside a range.
    pub(crate) fn check_range(&mut self, key: &str, value: impl Into<f64>, range: ValueRange) {
        let (min, max) = range;
        self.problems
            .check_range(self.path(key), value.into(), min, max);
    }

    /// Notes a value outside a range, if there is one.
    pub(crate) fn check_optional(
        &mut self,
        key: &str,
        value: Option<impl Into<f64>>,
        range: ValueRange,
    ) {
        if let Some(value) = value {
            self.check_range(key, value, range);
        }
    }

    /// Notes each value of an array outside a range, under `key[INDEX]`.
    pub(crate) fn check_points<'p>(
        &mut self,
        key: &str,
        points: impl IntoIterator<Item = &'p f64>,
        range: ValueRange,
    ) {
        for (index, &point) in points.into_iter().enumerate() {
            self.check_range(&format!("{key}[{index}]"), point, range);
        }
    }

    /// Notes the problem unless `holds`.
    pub(crate) fn require(&mut self, holds: bool, key: &str, message: impl Into<String>) {
        self.problems.require(holds, self.path(key), message);
    }

    fn path(&self, key: &str) -> String {
        match key {
            "" => self.prefix.clone(),
            _ => join_path(&self.prefix, key),
        }
    }
}

/// JSON Schema (2020-12) of machine files.
pub fn machine_schema() -> Value {
    titled_schema::<MachineSpec>("Consort machine description")
}

/// JSON Schema (2020-12) of program files.
pub fn program_schema() -> Value {
    titled_schema::<ProgramSpec>("Consort program profile")
}

fn titled_schema<T: JsonSchema>(title: &str) -> Value {
    let mut schema = schema_for!(T);
    schema.insert("title".to_owned(), json!(title));
    schema.to_value()
}

/// Returns the format's description of a key such as `core_type.big.smt[1].ways`.
pub(crate) fn meaning<T: JsonSchema>(path: &str) -> String {
    let root = schema_for!(T).to_value();
    let steps = path.split(['.', '[']);
    let found = steps.fold(&root, |at, step| member_schema(&root, at, step));
    let text = found["description"].as_str();
    let text = text.or_else(|| resolve_reference(&root, found)["description"].as_str());
    let text = text.unwrap_or("a value").trim_end_matches('.');
    let words = text.split_whitespace();
    words.collect::<Vec<_>>().join(" ")
}

/// The schema of a member of `at`: a property, an element, or any key of a map.
fn member_schema<'a>(root: &'a Value, at: &'a Value, step: &str) -> &'a Value {
    let at = resolve_reference(root, at);
    if step.ends_with(']') {
        return &at["items"];
    }
    match at["properties"].get(step) {
        Some(property) => property,
        None => &at["additionalProperties"],
    }
}

/// Returns the schema that a reference refers to; of an optional value, that of the value.
fn resolve_reference<'a>(root: &'a Value, at: &'a Value) -> &'a Value {
    let at = at["anyOf"].get(0).unwrap_or(at);
    let name = at["$ref"].as_str().and_then(|r| r.rsplit('/').next());
    name.map_or(at, |name| &root["$defs"][name])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_one_line_with_further_count() {
        let error = DescribeError::new("a\nb.toml", 3, "llc.ways", "is 0;\nexpected 1", 2);
        let expect = "a\\nb.toml:3: llc.ways: is 0;\\nexpected 1 (and 2 more)";
        assert_eq!(error.to_string(), expect);
        let no_key = DescribeError::new("x", 1, "", "bad", 0);
        assert_eq!(no_key.to_string(), "x:1: bad");
    }

    #[test]
    fn values_outside_their_range_are_noted_with_it() {
        let mut problems = Problems::default();
        problems.check_range("a.b", 3.0, 0.0, 4.0);
        problems.check_range("a.c", f64::NAN, 0.0, 1.0);
        let expect = [DescriptionProblem {
            key: "a.c".to_owned(),
            message: "is NaN; expected 0 to 1".to_owned(),
        }];
        assert_eq!(problems.list(), expect);
    }

    #[test]
    fn keys_have_the_meaning_of_the_schema() {
        let check = |path: &str, expect: &str| {
            assert_eq!(meaning::<MachineSpec>(path), expect);
        };
        check("llc.ways", "Associativity");
        check("core_type.big.frequency_ghz", "Clock, GHz");
        check("core_type.big.l2.ways", "Associativity");
        check(
            "pmu.events[3].name",
            "The vendor's name, for example `PM_CYC`",
        );
        check("nothing.of.the.kind", "a value");
    }
}
