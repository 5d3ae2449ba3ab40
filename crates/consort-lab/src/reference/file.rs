//! Files of published figures.
//!
//! A reference file is CSV with the columns `study`, `row`, `value`, and optionally `column`, `unit`
//! and `section`; further columns, for example a note, are left alone, and lines that start with `#`
//! are comments. With a column, a `row` is a row's key, or `TABLE:ROW` if several tables of the study
//! have that row. Without one it is the source's name of the figure, which the study's file maps to
//! a value of its own. Names match in any case.

use csv::StringRecord;
use serde::Serialize;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The columns that a reference file must have, in any order.
const COLUMNS: [&str; 3] = ["study", "row", "value"];

/// The columns that it may have.
const OPTIONAL: [&str; 3] = ["column", "unit", "section"];

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceLine {
    /// Line in the file, from 1.
    pub line: u64,
    /// Id of the study.
    pub study: String,
    /// Name of the figure; with a column the key of the row, or `TABLE:ROW`.
    pub row: String,
    /// Key of the column.
    pub column: Option<String>,
    /// The figure, in `unit`, or in the unit of ours without one.
    pub value: PublishedValue,
    /// Unit of the figure.
    pub unit: Option<String>,
    /// Section, table or figure of the source.
    pub section: Option<String>,
}

/// Figure as a source prints it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PublishedValue {
    /// A number.
    Number(f64),
    /// Any number of a range, written `LOW..HIGH`.
    Range {
        /// Its lower end.
        low: f64,
        /// Its upper end, not below the lower one.
        high: f64,
    },
    /// A text, for example an order of policies or a list of programs.
    Text(String),
}

impl PublishedValue {
    /// Reads a number, a range, or a text that does not begin like a number.
    fn parse(text: &str) -> Option<Self> {
        let number = |text: &str| text.parse().ok().filter(|value: &f64| value.is_finite());
        if let Some((low, high)) = text.split_once("..") {
            let (low, high) = (number(low)?, number(high)?);
            return (low <= high).then_some(Self::Range { low, high });
        }
        let begins_text = text.starts_with(|c: char| c.is_alphabetic() || c == '{');
        match number(text) {
            Some(value) => Some(Self::Number(value)),
            None => (begins_text && text.contains(' ')).then(|| Self::Text(text.to_owned())),
        }
    }

    /// Both ends of a number or range; `None` for a text.
    pub(super) fn ends(&self) -> Option<(f64, f64)> {
        match *self {
            Self::Number(value) => Some((value, value)),
            Self::Range { low, high } => Some((low, high)),
            Self::Text(_) => None,
        }
    }

    /// The value as a reference file has it.
    pub fn text(&self) -> String {
        match self {
            Self::Number(value) => value.to_string(),
            Self::Range { low, high } => format!("{low}..{high}"),
            Self::Text(text) => text.clone(),
        }
    }
}

/// Reason why a reference file cannot be used.
#[derive(Debug, Error)]
pub enum ReferenceFileError {
    /// It cannot be read.
    #[error("cannot read reference file {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A line is not one.
    #[error("{file}, line {line}: {problem}")]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// The mistake, and what would be right.
        problem: String,
    },
}

/// Reads a reference file.
///
/// # Errors
/// When it cannot be read or a line is malformed.
pub fn read(path: &Path) -> Result<Vec<ReferenceLine>, ReferenceFileError> {
    match consort_describe::input::read_text(path) {
        Ok(text) => parse(&path.display().to_string(), &text),
        Err(cause) => Err(ReferenceFileError::Io {
            path: path.to_owned(),
            cause,
        }),
    }
}

/// Reads the text of a reference file; `file` is its name in errors.
///
/// # Errors
/// When a column is missing, a line has too few or too many fields, a key is
/// empty, or a value is no finite number, range or text.
pub fn parse(file: &str, text: &str) -> Result<Vec<ReferenceLine>, ReferenceFileError> {
    let at = |line: u64, problem: String| ReferenceFileError::Line {
        file: file.to_owned(),
        line,
        problem,
    };
    let mut reader = csv::ReaderBuilder::new()
        .comment(Some(b'#'))
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let malformed = |error: csv::Error| {
        let line = error.position().map_or(1, csv::Position::line);
        at(line, describe_csv_error(&error))
    };
    let header = reader.headers().map_err(malformed)?.clone();
    let position = |name: &str| header.iter().position(|h| h.eq_ignore_ascii_case(name));
    let mut places = [0; 3];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        *place = position(column).ok_or_else(|| {
            let needed = COLUMNS.join(",");
            at(
                1,
                format!("no column '{column}'; the first line must name {needed}"),
            )
        })?;
    }
    let optional = OPTIONAL.map(position);
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(malformed)?;
        let line = record.position().map_or(1, csv::Position::line);
        lines.push(
            parse_record(&record, places, optional, line).map_err(|problem| at(line, problem))?,
        );
    }
    Ok(lines)
}

fn parse_record(
    record: &StringRecord,
    places: [usize; 3],
    optional: [Option<usize>; 3],
    line: u64,
) -> Result<ReferenceLine, String> {
    let [study, row, value] = places.map(|place| record.get(place).unwrap_or(""));
    for (name, text) in COLUMNS.iter().zip([study, row]) {
        if text.is_empty() {
            return Err(format!("the {name} is empty; give its key"));
        }
    }
    let [column, unit, section] = optional.map(|place| {
        let text = place.and_then(|place| record.get(place));
        text.filter(|text| !text.is_empty()).map(str::to_owned)
    });
    let value = PublishedValue::parse(value)
        .ok_or_else(|| format!("value '{value}' is not a number such as 1.08"))?;
    Ok(ReferenceLine {
        line,
        study: study.to_owned(),
        row: row.to_owned(),
        column,
        value,
        unit,
        section,
    })
}

/// The cause without the position, which the caller adds.
fn describe_csv_error(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => format!("{len} fields where the first line names {expected_len}"),
        csv::ErrorKind::Utf8 { .. } => "not valid utf-8".to_owned(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(text: &str, expect: &str) {
        assert_eq!(parse("f.csv", text).unwrap_err().to_string(), expect);
    }

    #[test]
    fn lines_are_read_in_any_order_of_columns() {
        let text = "# from the paper\nnote,Value,study,column,row\nfig 3, 1.08 ,W3,speedup,a+b\n";
        let lines = parse("f.csv", text).unwrap();
        let expected = ReferenceLine {
            line: 3,
            study: "W3".to_owned(),
            row: "a+b".to_owned(),
            column: Some("speedup".to_owned()),
            value: PublishedValue::Number(1.08),
            unit: None,
            section: None,
        };
        assert_eq!(lines, [expected]);
        assert_eq!(parse("f.csv", "study,row,column,value\n").unwrap(), []);
    }

    #[test]
    fn malformed_line_is_named() {
        let header = "study,row,column,value\n";
        check(
            &format!("{header}W3,a,b,1\nW3,a,b,1.0x\n"),
            "f.csv, line 3: value '1.0x' is not a number such as 1.08",
        );
        check(
            &format!("{header}W3,a,b,inf\n"),
            "f.csv, line 2: value 'inf' is not a number such as 1.08",
        );
        check(
            &format!("{header}W3,,b,1\n"),
            "f.csv, line 2: the row is empty; give its key",
        );
        check(
            &format!("{header}W3,a,1\n"),
            "f.csv, line 2: 3 fields where the first line names 4",
        );
        check(
            "study,row,column\nW3,a,1\n",
            "f.csv, line 1: no column 'value'; the first line must name study,row,value",
        );
    }

    #[test]
    fn ranges_texts_units_and_sections_are_read() {
        let text = "study,row,value,unit,section\nW4,all,-1..6,percent,5.5\nA6,most,fft lu,,\n";
        let lines = parse("f.csv", text).unwrap();
        let range = PublishedValue::Range {
            low: -1.0,
            high: 6.0,
        };
        assert_eq!(lines[0].value, range);
        assert_eq!(lines[0].value.text(), "-1..6");
        assert_eq!(lines[0].unit.as_deref(), Some("percent"));
        assert_eq!(lines[0].section.as_deref(), Some("5.5"));
        assert_eq!(lines[1].value, PublishedValue::Text("fft lu".to_owned()));
        assert_eq!((&lines[1].column, &lines[1].unit), (&None, &None));
        check(
            "study,row,value\nW4,all,6..1\n",
            "f.csv, line 2: value '6..1' is not a number such as 1.08",
        );
    }

    #[test]
    fn missing_file_is_named() {
        let error = read(Path::new("/nonexistent.csv")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read reference file /nonexistent.csv: "));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_its_line_named(text in "(study,row,column,value\n)?[a-z0-9,\"\n#. ]{0,60}") {
            if let Err(error) = parse("f.csv", &text) {
                prop_assert!(error.to_string().starts_with("f.csv, line "), "{}", error);
            }
        }
    }
}
