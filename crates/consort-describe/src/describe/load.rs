//! Reading a description: text to a validated value, or what is wrong where.

use super::error::DescribeError;
use super::locate::Locations;
use super::message::ReaderMessage;
use super::problems::{DescriptionProblem, Problems};
use super::schema::meaning;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;

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
    match first_problem(file, text, problems.list()) {
        Some(error) => Err(error),
        None => Ok(value),
    }
}

fn parse_error<T: JsonSchema>(file: &str, text: &str, error: &toml::de::Error) -> DescribeError {
    let at = Locations::new(text);
    let span = error.span().unwrap_or(0..0);
    let line = at.line(span.start);
    let (key, message) = match ReaderMessage::new(error.message()) {
        ReaderMessage::Unknown { key, message } => {
            (path_ending_in(at.path_at(span.start), &key), message)
        }
        ReaderMessage::Missing { key } => {
            let key = join_path(at.path_of(&span), &key);
            let meaning = meaning::<T>(&key);
            (key, format!("is missing; expected {meaning}"))
        }
        ReaderMessage::Wrong { message } if text.parse::<toml::Table>().is_err() => {
            let key = at.path_at(span.start).to_owned();
            (
                key,
                format!("{message}; not TOML, as a description is (`consort schema`)"),
            )
        }
        ReaderMessage::Wrong { message } => (at.path_at(span.start).to_owned(), message),
    };
    DescribeError::new(file, line, &key, &message, 0)
}

/// The path of an unknown key; its own name is where the reader points.
fn path_ending_in(path: &str, key: &str) -> String {
    if path == key || path.ends_with(&format!(".{key}")) {
        return path.to_owned();
    }
    join_path(path, key)
}

fn join_path(parent: &str, key: &str) -> String {
    match parent {
        "" => key.to_owned(),
        _ => format!("{parent}.{key}"),
    }
}

/// The first in the text of what was found; `None` when nothing was.
fn first_problem(file: &str, text: &str, found: &[DescriptionProblem]) -> Option<DescribeError> {
    let more = found.len().checked_sub(1)?;
    let at = Locations::new(text);
    let lines = found.iter().map(|problem| at.line_of(&problem.key));
    let (line, problem) = lines.zip(found).min_by_key(|(line, _)| *line)?;
    let (key, message) = (&problem.key, &problem.message);
    Some(DescribeError::new(file, line, key, message, more))
}
