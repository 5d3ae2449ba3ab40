//! The value of a study that stands for a published figure.

use super::file::ReferenceLine;
use crate::study::StudyReport;
use crate::study::file::OutcomeSpec;
use consort_core::stats::ConfidenceInterval;
use consort_data::{Cell, HEADLINE, ReportTable};

/// Column of the headline with the figures.
pub(super) const VALUE: &str = "value";

/// Number of names that stand for `{top}`.
const TOP: usize = 3;

/// A value of a study with the keys of its table, row and column.
pub(super) struct FoundValue {
    pub(super) table: String,
    pub(super) row: String,
    pub(super) column: String,
    pub(super) cell: Cell,
    pub(super) unit: Option<String>,
}

impl OutcomeSpec {
    /// The text that the entry's `*` stands for in a name; empty if it has none. `None` if the entry
    /// is about another figure.
    fn star<'a>(&self, name: &'a str) -> Option<&'a str> {
        match self.row.split_once('*') {
            None => is_same_key(&self.row, name).then_some(""),
            Some((before, after)) => name.strip_prefix(before)?.strip_suffix(after),
        }
    }
}

/// The entry about a published figure.
pub(super) fn find_entry<'a>(specs: &'a [OutcomeSpec], name: &str) -> Option<&'a OutcomeSpec> {
    specs.iter().find(|spec| spec.star(name).is_some())
}

/// Finds the value of a published figure.
///
/// # Errors
/// That there is none; the text names what is missing.
pub(super) fn find_value(
    line: &ReferenceLine,
    entry: Option<&OutcomeSpec>,
    report: &StudyReport,
) -> Result<FoundValue, String> {
    let tables = &report.output.tables;
    if let Some(column) = &line.column {
        let (table, row, column) = find_cell(&line.row, column, tables)?;
        return Ok(read_value(table, row, column));
    }
    let none = OutcomeSpec::default();
    let entry = entry.unwrap_or(&none);
    let star = entry.star(&line.row).unwrap_or_default();
    let key = entry
        .table
        .as_deref()
        .unwrap_or(HEADLINE)
        .replace('*', star);
    let column = entry.column.as_deref().unwrap_or(VALUE).replace('*', star);
    let absent = || "not measured".to_owned();
    let table = tables.iter().find(|table| table.key() == key);
    let table = table.ok_or_else(absent)?;
    let column = table.columns().iter().position(|c| c.key == column);
    let column = column.ok_or_else(absent)?;
    let read = |name: &String| {
        let name = name.replace('*', star);
        let row = table
            .rows()
            .iter()
            .position(|r| is_same_key(&r.key, &name))?;
        Some(read_value(table, row, column))
    };
    let read_all =
        |names: &[String]| -> Option<Vec<FoundValue>> { names.iter().map(read).collect() };
    if !entry.among.is_empty() {
        let mut ranked: Vec<(f64, &str)> = Vec::new();
        for name in &entry.among {
            let rows = entry.at.iter().map(|row| row.replace("{name}", name));
            let found = average(rows.filter_map(|row| read(&row)).collect());
            if let Some(value) = found.and_then(|found| found.cell.value()) {
                ranked.push((value, name));
            }
        }
        ranked.sort_by(|one, other| other.0.total_cmp(&one.0));
        let names: Vec<&str> = ranked.iter().map(|(_, name)| *name).collect();
        let (Some(most), Some(least)) = (names.first(), names.last()) else {
            return Err(absent());
        };
        let top = names
            .iter()
            .take(TOP)
            .copied()
            .collect::<Vec<_>>()
            .join(" ");
        let text = { entry.text.replace("{most}", most) }.replace("{least}", least);
        return Ok(FoundValue {
            table: table.key().to_owned(),
            row: entry.at.join(" + "),
            column: table.columns()[column].key.clone(),
            cell: Cell::Text(text.replace("{top}", &top)),
            unit: None,
        });
    }
    let found = match entry.at.as_slice() {
        [] => read_all(std::slice::from_ref(&line.row)),
        names => read_all(names),
    };
    let found = found.and_then(average).ok_or_else(absent)?;
    if entry.over.is_empty() {
        return Ok(found);
    }
    let base = read_all(&entry.over).and_then(average).ok_or_else(absent)?;
    let ratio = |value: &FoundValue| match value.unit.as_deref() {
        Some("percent" | "%") => value.cell.value().map(|percent| 1.0 + percent / 100.0),
        _ => value.cell.value(),
    };
    let quotient = { ratio(&found).zip(ratio(&base)) }.map(|(above, below)| above / below);
    Ok(FoundValue {
        row: format!("{} over {}", found.row, base.row),
        cell: quotient.ok_or_else(absent)?.into(),
        unit: Some("ratio".to_owned()),
        ..found
    })
}

/// The average of several values, or the only one as it is; `None` if one of them is no number. Its
/// interval is that of a mean of independent means: half widths add as squares.
fn average(mut values: Vec<FoundValue>) -> Option<FoundValue> {
    if values.len() == 1 {
        return values.pop();
    }
    let count = values.len() as f64;
    let numbers = values.iter().map(|value| value.cell.value());
    let mean = numbers.sum::<Option<f64>>()? / count;
    let halves = values.iter().map(|value| value.cell.ci95());
    let squares: Option<f64> = halves.map(|half| Some(half? * half?)).sum();
    let n = values.iter().filter_map(|value| value.cell.n()).min();
    let cell = match (squares, n) {
        (Some(squares), Some(n)) => Cell::Interval(ConfidenceInterval {
            mean,
            ci95: Some(squares.sqrt() / count),
            n,
        }),
        _ => mean.into(),
    };
    let rows: Vec<&str> = values.iter().map(|value| value.row.as_str()).collect();
    let row = rows.join(" + ");
    let last = values.pop()?;
    Some(FoundValue { row, cell, ..last })
}

/// A cell; that of the headline with the interval and the unit of its row.
fn read_value(table: &ReportTable, row: usize, column: usize) -> FoundValue {
    let row = &table.rows()[row];
    let (cell, column) = (row.cells[column].clone(), &table.columns()[column]);
    let is_headline = table.key() == HEADLINE && column.key == VALUE;
    let part = |key| table.cell(&row.key, key).filter(|_| is_headline);
    let number = |key| part(key).and_then(Cell::value);
    let cell = match (cell, number("ci95"), number("runs")) {
        (Cell::Number(mean), ci95 @ Some(_), Some(runs)) => {
            let n = runs as usize;
            Cell::Interval(ConfidenceInterval { mean, ci95, n })
        }
        (cell, ..) => cell,
    };
    let own = part("unit").map(Cell::text).filter(|unit| !unit.is_empty());
    FoundValue {
        table: table.key().to_owned(),
        row: row.key.clone(),
        column: column.key.clone(),
        cell,
        unit: column.unit.clone().or(own),
    }
}

pub(super) fn is_same_key(one: &str, other: &str) -> bool {
    one.to_lowercase() == other.to_lowercase()
}

/// The one table that has a cell, and the cell's row and column.
fn find_cell<'a>(
    name: &str,
    column: &str,
    tables: &'a [ReportTable],
) -> Result<(&'a ReportTable, usize, usize), String> {
    let (wanted, row) = match name.split_once(':') {
        Some((table, row)) if tables.iter().any(|t| is_same_key(t.key(), table)) => {
            (Some(table), row)
        }
        // Keys of rows may have colons, too.
        _ => (None, name),
    };
    let is_searched = |t: &&ReportTable| wanted.is_none_or(|key| is_same_key(t.key(), key));
    let searched: Vec<&'a ReportTable> = tables.iter().filter(is_searched).collect();
    let mut places = searched.iter().filter_map(|&table| {
        let mut rows = table.rows().iter();
        let mut columns = table.columns().iter();
        let row = rows.position(|r| is_same_key(&r.key, row))?;
        let column = columns.position(|c| is_same_key(&c.key, column))?;
        Some((table, row, column))
    });
    match (places.next(), places.next()) {
        (Some(place), None) => Ok(place),
        (Some(one), Some(other)) => {
            let (one, other) = (one.0.key(), other.0.key());
            Err(format!(
                "tables '{one}' and '{other}' both have it; write '{one}:{row}'"
            ))
        }
        (None, _) => Err(describe_absence(row, column, &searched)),
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

    #[test]
    fn average_has_the_interval_of_independent_means() {
        let value = |mean, ci95, n| FoundValue {
            table: HEADLINE.to_owned(),
            row: "a".to_owned(),
            column: VALUE.to_owned(),
            cell: Cell::Interval(ConfidenceInterval { mean, ci95, n }),
            unit: None,
        };
        let both = average(vec![value(1.0, Some(3.0), 10), value(5.0, Some(4.0), 8)]).unwrap();
        let (mean, ci95, n) = (3.0, Some(2.5), 8);
        assert_eq!(
            both.cell,
            Cell::Interval(ConfidenceInterval { mean, ci95, n })
        );
        let one_run = average(vec![value(1.0, Some(3.0), 10), value(5.0, None, 1)]).unwrap();
        assert_eq!(one_run.cell, Cell::Number(3.0));
    }
}
