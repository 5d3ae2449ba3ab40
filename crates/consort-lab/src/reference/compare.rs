//! Matching published figures with ours.

use super::file::ReferenceLine;
use crate::study::StudyReport;
use consort_data::{Cell, ReportColumn, ReportTable, ReportTableError};
use serde::Serialize;

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
    /// Our figure, with its interval where it has one.
    pub ours: Cell,
    /// The published figure.
    pub theirs: f64,
    /// Ours less theirs.
    pub difference: f64,
    /// The difference over theirs; none where theirs is 0.
    pub relative: Option<f64>,
    /// True where theirs lies in our 95 percent interval; none without one.
    pub within_ci95: Option<bool>,
}

/// A reference line that nothing of ours answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnmatchedFigure {
    /// Line in the reference file, from 1.
    pub line: u64,
    /// The study, row and column that it names.
    pub names: [String; 3],
    /// Reason for which nothing answers it, and the name that may have been meant.
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

/// Sets each published figure beside ours.
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
    /// The comparison as a table, for the terminal, CSV and the page. Lines that
    /// nothing answers are in it, as missing and with the reason.
    ///
    /// # Errors
    /// None that can occur: the columns are fixed and rows are numbered.
    pub fn table(&self) -> Result<ReportTable, ReportTableError> {
        let mut table = ReportTable::new("reference", "Ours and published figures", columns())?;
        let rows = self.compared.iter().map(compared_cells);
        let gaps = self.unmatched.iter().map(unmatched_cells);
        for (number, cells) in rows.chain(gaps).enumerate() {
            table.push(&(number + 1).to_string(), cells)?;
        }
        Ok(table)
    }
}

fn columns() -> Vec<ReportColumn> {
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
    let plain = plain.map(|(key, title)| ReportColumn::plain(key, title));
    let relative = ReportColumn::with_unit("relative_percent", "Relative difference", "%");
    plain.into_iter().chain([relative]).collect()
}

fn compared_cells(one: &ComparedFigure) -> Vec<Cell> {
    let undefined = || Cell::missing("the published figure is 0");
    let percent = one.relative.map_or_else(undefined, |r| (r * 100.0).into());
    let texts = [&one.study, &one.table, &one.row, &one.column];
    let unit = one.unit.as_deref().unwrap_or("");
    let numbers = [
        one.ours.clone(),
        one.theirs.into(),
        one.difference.into(),
        percent,
    ];
    let texts = texts.into_iter().map(|text| text.as_str().into());
    texts.chain([unit.into()]).chain(numbers).collect()
}

fn unmatched_cells(one: &UnmatchedFigure) -> Vec<Cell> {
    let [study, row, column] = one.names.each_ref().map(|name| name.as_str().into());
    let gap = || Cell::missing("nothing of ours");
    let why = Cell::missing(format!("line {}: {}", one.line, one.reason));
    vec![
        study,
        gap(),
        row,
        column,
        "".into(),
        why,
        gap(),
        gap(),
        gap(),
    ]
}

fn compare_line(line: &ReferenceLine, reports: &[&StudyReport]) -> Result<ComparedFigure, String> {
    let report = find_study(&line.study, reports)?;
    let place = find_cell(line, &report.output.tables)?;
    let ours = place.cell();
    let Some(value) = ours.value() else {
        return Err(match ours {
            Cell::Missing { missing } => format!("ours is missing: {missing}"),
            other => format!("ours is the text '{}'", other.text()),
        });
    };
    let difference = value - line.value;
    Ok(ComparedFigure {
        study: report.study.clone(),
        table: place.table.key().to_owned(),
        row: place.table.rows()[place.row].key.clone(),
        column: place.table.columns()[place.column].key.clone(),
        unit: place.table.columns()[place.column].unit.clone(),
        ours: ours.clone(),
        theirs: line.value,
        difference,
        relative: (line.value != 0.0).then(|| difference / line.value.abs()),
        within_ci95: ours.ci95().map(|half| difference.abs() <= half),
    })
}

/// A cell of a table. Row and column exist.
struct CellPosition<'a> {
    table: &'a ReportTable,
    row: usize,
    column: usize,
}

impl<'a> CellPosition<'a> {
    fn find(table: &'a ReportTable, row: &str, column: &str) -> Option<Self> {
        let mut rows = table.rows().iter();
        let mut columns = table.columns().iter();
        Some(Self {
            table,
            row: rows.position(|r| is_same_key(&r.key, row))?,
            column: columns.position(|c| is_same_key(&c.key, column))?,
        })
    }

    fn cell(&self) -> &'a Cell {
        &self.table.rows()[self.row].cells[self.column]
    }
}

fn is_same_key(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

fn find_study<'a>(id: &str, reports: &[&'a StudyReport]) -> Result<&'a StudyReport, String> {
    let found = reports.iter().find(|report| is_same_key(&report.study, id));
    found.copied().ok_or_else(|| {
        let known = reports.iter().map(|report| report.study.as_str());
        format!(
            "study '{id}' was not run; {}",
            consort_core::hint(id, known)
        )
    })
}

fn find_cell<'a>(
    line: &ReferenceLine,
    tables: &'a [ReportTable],
) -> Result<CellPosition<'a>, String> {
    let (wanted, row) = match line.row.split_once(':') {
        Some((table, row)) if tables.iter().any(|t| is_same_key(t.key(), table)) => {
            (Some(table), row)
        }
        _ => (None, line.row.as_str()),
    };
    let searched = || {
        tables
            .iter()
            .filter(|t| wanted.is_none_or(|key| is_same_key(t.key(), key)))
    };
    let mut places = searched().filter_map(|t| CellPosition::find(t, row, &line.column));
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(one), Some(other)) => {
            let (one, other) = (one.table.key(), other.table.key());
            Err(format!(
                "tables '{one}' and '{other}' both have it; write '{one}:{row}'"
            ))
        }
        (None, _) => Err(describe_absence(
            row,
            &line.column,
            &searched().collect::<Vec<_>>(),
        )),
    }
}

/// Names the row or column that does not exist, and the one that may have been meant.
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
mod tests;
