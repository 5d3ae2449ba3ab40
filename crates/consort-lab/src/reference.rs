//! Published figures next to ours.
//!
//! A reference file is CSV with the columns `study`, `row`, `column`, `value`;
//! further columns, for example a note, are left alone, and lines that start
//! with `#` are comments. A `row` is a row's key, or `TABLE:ROW` where several
//! tables of the study have that row; keys match in any case.

use crate::study::StudyReport;
use consort_data::{Cell, ReportColumn, ReportTable, ReportTableError};
use csv::StringRecord;
use serde::Serialize;
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

/// A published figure with ours.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedFigure {
    /// Id of the study.
    pub study: String,
    /// Key of the table.
    pub table: String,
    /// Key of the row.
    pub row: String,
    /// Key of the column.
    pub column: String,
    /// The column's unit.
    pub unit: Option<String>,
    /// Our figure, with its interval if it has one.
    pub ours: Cell,
    /// The published figure.
    pub theirs: f64,
    /// Ours less theirs.
    pub difference: f64,
    /// The difference over theirs; `None` if theirs is 0.
    pub relative: Option<f64>,
    /// True if theirs lies in our 95 percent interval; `None` without an interval.
    pub within_ci95: Option<bool>,
}

/// A line of a reference file without a figure of ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmatchedFigure {
    /// Line in the reference file, from 1.
    pub line: u64,
    /// The study, row and column that it names.
    pub names: [String; 3],
    /// Reason, and the name that may have been meant.
    pub reason: String,
}

/// Published figures with ours.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ReferenceComparison {
    /// Figures that could be compared, in the order of the reference.
    pub compared: Vec<ComparedFigure>,
    /// Lines that could not.
    pub unmatched: Vec<UnmatchedFigure>,
}

/// Compares each published figure with ours.
pub fn compare(reference: &[ReferenceLine], reports: &[&StudyReport]) -> ReferenceComparison {
    let mut comparison = ReferenceComparison::default();
    for line in reference {
        match compare_line(line, reports) {
            Ok(compared) => comparison.compared.push(compared),
            Err(reason) => comparison.unmatched.push(UnmatchedFigure {
                line: line.line,
                names: [&line.study, &line.row, &line.column].map(String::clone),
                reason,
            }),
        }
    }
    comparison
}

impl ReferenceComparison {
    /// The comparison as a table, for the terminal, CSV and the page. Lines without a figure of
    /// ours are in it, as missing and with the reason.
    ///
    /// # Errors
    /// None that can occur: the columns are fixed and rows are numbered.
    pub fn table(&self) -> Result<ReportTable, ReportTableError> {
        let plain = [
            ("study", "Study"),
            ("table", "Table"),
            ("row", "Row"),
            ("column", "Column"),
            ("unit", "Unit"),
            ("ours", "Ours"),
            ("theirs", "Published"),
            ("difference", "Difference"),
        ];
        let mut columns = plain
            .map(|(key, title)| ReportColumn::plain(key, title))
            .to_vec();
        let (key, title) = ("relative_percent", "Relative difference");
        columns.push(ReportColumn::with_unit(key, title, "%"));
        let mut table = ReportTable::new("reference", "Ours and published figures", columns)?;
        let mut number = 0;
        let mut push = |cells: [Cell; 9]| {
            number += 1;
            table.push(&number.to_string(), cells.to_vec())
        };
        for one in &self.compared {
            let undefined = || Cell::missing("the published figure is 0");
            push([
                one.study.as_str().into(),
                one.table.as_str().into(),
                one.row.as_str().into(),
                one.column.as_str().into(),
                one.unit.as_deref().unwrap_or("").into(),
                one.ours.clone(),
                one.theirs.into(),
                one.difference.into(),
                one.relative.map_or_else(undefined, |r| (r * 100.0).into()),
            ])?;
        }
        for one in &self.unmatched {
            let [study, row, column] = one.names.each_ref().map(|name| name.as_str().into());
            let gap = || Cell::missing("nothing of ours");
            let why = Cell::missing(format!("line {}: {}", one.line, one.reason));
            let unit = "".into();
            push([study, gap(), row, column, unit, why, gap(), gap(), gap()])?;
        }
        Ok(table)
    }
}

fn compare_line(line: &ReferenceLine, reports: &[&StudyReport]) -> Result<ComparedFigure, String> {
    let id = &line.study;
    let report = reports.iter().find(|report| is_same_key(&report.study, id));
    let report = report.ok_or_else(|| {
        let known = reports.iter().map(|report| report.study.as_str());
        let hint = consort_core::hint(id, known);
        format!("study '{id}' was not run; {hint}")
    })?;
    let (table, row, column) = find_cell(line, &report.output.tables)?;
    let row = &table.rows()[row];
    let (column, ours) = (&table.columns()[column], &row.cells[column]);
    let Some(value) = ours.value() else {
        return Err(match ours {
            Cell::Missing { missing } => format!("ours is missing: {missing}"),
            other => format!("ours is the text '{}'", other.text()),
        });
    };
    let difference = value - line.value;
    Ok(ComparedFigure {
        study: report.study.clone(),
        table: table.key().to_owned(),
        row: row.key.clone(),
        column: column.key.clone(),
        unit: column.unit.clone(),
        ours: ours.clone(),
        theirs: line.value,
        difference,
        relative: (line.value != 0.0).then(|| difference / line.value.abs()),
        within_ci95: ours.ci95().map(|half| difference.abs() <= half),
    })
}

fn is_same_key(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// The one table that has the cell of a line, and the cell's row and column.
fn find_cell<'a>(
    line: &ReferenceLine,
    tables: &'a [ReportTable],
) -> Result<(&'a ReportTable, usize, usize), String> {
    let (wanted, row) = match line.row.split_once(':') {
        Some((table, row)) if tables.iter().any(|t| is_same_key(t.key(), table)) => {
            (Some(table), row)
        }
        // Keys of rows may have colons, too.
        _ => (None, line.row.as_str()),
    };
    let is_searched = |t: &&ReportTable| wanted.is_none_or(|key| is_same_key(t.key(), key));
    let searched: Vec<&'a ReportTable> = tables.iter().filter(is_searched).collect();
    let mut places = searched.iter().filter_map(|&table| {
        let mut rows = table.rows().iter();
        let mut columns = table.columns().iter();
        let at = rows.position(|r| is_same_key(&r.key, row))?;
        let column = columns.position(|c| is_same_key(&c.key, &line.column))?;
        Some((table, at, column))
    });
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some((one, ..)), Some((other, ..))) => {
            let (one, other) = (one.key(), other.key());
            Err(format!(
                "tables '{one}' and '{other}' both have it; write '{one}:{row}'"
            ))
        }
        (None, _) => Err(describe_absence(row, &line.column, &searched)),
    }
}

/// Names the row or column that does not exist, and the nearest one.
fn describe_absence(row: &str, column: &str, tables: &[&ReportTable]) -> String {
    let with_row = tables
        .iter()
        .filter(|t| t.rows().iter().any(|r| is_same_key(&r.key, row)));
    let columns: Vec<&str> = with_row
        .flat_map(|t| t.columns().iter().map(|c| c.key.as_str()))
        .collect();
    if columns.is_empty() {
        let rows = tables.iter().flat_map(|t| t.rows().iter());
        let hint = consort_core::hint(row, rows.map(|r| r.key.as_str()));
        return format!("no row '{row}'; {hint}");
    }
    let hint = consort_core::hint(column, columns.into_iter());
    format!("no column '{column}'; {hint}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;
    use consort_core::stats::ConfidenceInterval;
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
            "study,row,value\nW3,a,1\n",
            "f.csv, line 1: no column 'column'; the first line must name study,row,column,value",
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

    /// Table `speed` has rows `a+b` and `c`; table `misses` has `c`, too.
    fn study() -> StudyReport {
        let mut report = report("W3");
        let unit = |key: &str| ReportColumn::with_unit(key, key, "s");
        let mut speed = ReportTable::new("speed", "", vec![unit("time"), unit("rest")]).unwrap();
        let interval = ConfidenceInterval::from_values(&[1.0, 2.0, 3.0]).unwrap();
        speed
            .push("a+b", vec![interval.into(), "text".into()])
            .unwrap();
        speed
            .push("c", vec![0.5.into(), Cell::missing("not run")])
            .unwrap();
        let mut misses = ReportTable::new("misses", "", vec![unit("time")]).unwrap();
        misses.push("c", vec![7.0.into()]).unwrap();
        report.output.tables = vec![speed, misses];
        report
    }

    fn comparison(line: &str) -> ReferenceComparison {
        let text = format!("study,row,column,value\n{line}\n");
        compare(&parse("f.csv", &text).unwrap(), &[&study()])
    }

    fn matched(line: &str) -> ComparedFigure {
        comparison(line).compared.remove(0)
    }

    fn check_unmatched(line: &str, expect: &str) {
        let comparison = comparison(line);
        assert_eq!(comparison.compared, []);
        assert_eq!(comparison.unmatched[0].line, 2);
        assert_eq!(comparison.unmatched[0].reason, expect);
    }

    #[test]
    fn figures_are_compared_with_their_difference() {
        let one = matched("w3,A+B,Time,4");
        assert_eq!((one.study.as_str(), one.row.as_str()), ("W3", "a+b"));
        assert_eq!((one.table.as_str(), one.column.as_str()), ("speed", "time"));
        assert_eq!(one.unit.as_deref(), Some("s"));
        assert_eq!((one.ours.value(), one.theirs), (Some(2.0), 4.0));
        assert_eq!((one.difference, one.relative), (-2.0, Some(-0.5)));
        // The interval is 2 ± 2.48.
        assert_eq!(one.within_ci95, Some(true));
        assert_eq!(matched("W3,a+b,time,5").within_ci95, Some(false));
        assert_eq!(matched("W3,a+b,time,0").relative, None);
    }

    #[test]
    fn row_of_two_tables_needs_its_table() {
        let reason = "tables 'speed' and 'misses' both have it; write 'speed:c'";
        check_unmatched("W3,c,time,1", reason);
        assert_eq!(matched("W3,misses:c,time,7").difference, 0.0);
        assert_eq!(matched("W3,speed:c,time,1").within_ci95, None);
    }

    #[test]
    fn unmatched_figure_has_a_reason() {
        check_unmatched(
            "W4,a+b,time,1",
            "study 'W4' was not run; did you mean 'W3'?",
        );
        check_unmatched("W3,a+d,time,1", "no row 'a+d'; did you mean 'a+b'?");
        check_unmatched("W3,a+b,times,1", "no column 'times'; did you mean 'time'?");
        check_unmatched("W3,a+b,rest,1", "ours is the text 'text'");
        check_unmatched("W3,speed:c,rest,1", "ours is missing: not run");
    }

    #[test]
    fn table_holds_every_line() {
        let table = comparison("W3,a+b,time,4\nW3,a+b,times,1").table().unwrap();
        assert_eq!(table.rows().len(), 2);
        let percent = table.cell("1", "relative_percent").unwrap();
        assert_eq!(percent.value(), Some(-50.0));
        let gap = table.cell("2", "ours").unwrap();
        assert_eq!(
            gap,
            &Cell::missing("line 3: no column 'times'; did you mean 'time'?")
        );
    }
}
