//! Reading reference files.

use csv::StringRecord;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The columns that a reference file must have, in any order.
const COLUMNS: [&str; 4] = ["study", "row", "column", "value"];

/// One published figure.
#[derive(Clone, Debug, PartialEq)]
pub struct ReferenceLine {
    /// Line in the file, from 1.
    pub line: u64,
    /// Id of the study.
    pub study: String,
    /// Key of the row, or `TABLE:ROW`.
    pub row: String,
    /// Key of the column.
    pub column: String,
    /// The figure, in the column's unit.
    pub value: f64,
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
/// empty, or a value is not a finite number.
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
    let places = column_positions(&header).map_err(|problem| at(1, problem))?;
    let mut lines = Vec::new();
    for record in reader.records() {
        let record = record.map_err(malformed)?;
        let line = record.position().map_or(1, csv::Position::line);
        lines.push(parse_record(&record, places, line).map_err(|problem| at(line, problem))?);
    }
    Ok(lines)
}

/// Places of the four columns in a record.
fn column_positions(header: &StringRecord) -> Result<[usize; 4], String> {
    let mut places = [0; 4];
    for (place, column) in places.iter_mut().zip(COLUMNS) {
        let found = header.iter().position(|h| h.eq_ignore_ascii_case(column));
        *place = found.ok_or_else(|| {
            let needed = COLUMNS.join(",");
            format!("no column '{column}'; the first line must name {needed}")
        })?;
    }
    Ok(places)
}

fn parse_record(
    record: &StringRecord,
    places: [usize; 4],
    line: u64,
) -> Result<ReferenceLine, String> {
    let [study, row, column, value] = places.map(|place| record.get(place).unwrap_or(""));
    for (name, text) in COLUMNS.iter().zip([study, row, column]) {
        if text.is_empty() {
            return Err(format!("the {name} is empty; give its key"));
        }
    }
    let number: Option<f64> = value.parse().ok().filter(|v: &f64| v.is_finite());
    let value = number.ok_or_else(|| format!("value '{value}' is not a number such as 1.08"))?;
    Ok(ReferenceLine {
        line,
        study: study.to_owned(),
        row: row.to_owned(),
        column: column.to_owned(),
        value,
    })
}

/// The cause without the position, which is told already.
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
            column: "speedup".to_owned(),
            value: 1.08,
        };
        assert_eq!(lines, [expected]);
        assert_eq!(parse("f.csv", "study,row,column,value\n").unwrap(), []);
    }

    #[test]
    fn a_malformed_line_is_named() {
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
            "study,row,value\nW3,a,1\n",
            "f.csv, line 1: no column 'column'; the first line must name study,row,column,value",
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = read(Path::new("/nonexistent.csv")).unwrap_err().to_string();
        assert!(error.starts_with("cannot read reference file /nonexistent.csv: "));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused_with_its_place(text in "(study,row,column,value\n)?[a-z0-9,\"\n#. ]{0,60}") {
            if let Err(error) = parse("f.csv", &text) {
                prop_assert!(error.to_string().starts_with("f.csv, line "), "{}", error);
            }
        }
    }
}
