//! Tables of studies for data frames.

use crate::study::StudyReport;
use consort_data::{Cell, Table, Values};
use consort_experiment::long::{LongRows, RowOwner};

/// Every number of a study in the long format: the case is `STUDY:TABLE:ROW`, the measure the
/// column, and half widths of intervals are measures that end in `_ci95`.
pub fn study_to_long_table(report: &StudyReport) -> Table {
    let mut rows = LongRows::default();
    for table in &report.output.tables {
        for row in table.rows() {
            let case = format!("{}:{}:{}", report.study, table.key(), row.key);
            for (column, cell) in table.columns().iter().zip(&row.cells) {
                let of = RowOwner {
                    case: &case,
                    policy: None,
                    seed: Some(report.seed),
                    program: None,
                };
                add(&mut rows, of, column, cell);
            }
        }
    }
    rows.table()
}

fn add(rows: &mut LongRows, of: RowOwner<'_>, column: &consort_data::ReportColumn, cell: &Cell) {
    let unit = column.unit.as_deref();
    if let Some(value) = cell.value() {
        rows.push(of, &column.key, value, unit);
    }
    if let Some(half) = cell.ci95() {
        rows.push(of, &format!("{}_ci95", column.key), half, unit);
    }
}

/// A report's table as it is: the rows' keys and a column for each of its own; half widths of
/// intervals stand beside their means. A column with any text in it is one of texts.
pub fn report_to_wide_table(table: &consort_data::ReportTable) -> Table {
    let keys = table.rows().iter().map(|row| Some(row.key.clone()));
    let wide = Table::default().with_text("key", keys);
    let columns = table.columns().iter().enumerate();
    columns.fold(wide, |wide, (n, column)| {
        let cells: Vec<&Cell> = table.rows().iter().map(|row| &row.cells[n]).collect();
        let unit = column.unit.as_deref();
        if cells.iter().any(|cell| matches!(cell, Cell::Text(_))) {
            return wide.with_column(&column.key, unit, Values::Text(cell_texts(&cells)));
        }
        let wide = wide.with_numbers(&column.key, unit, cells.iter().map(|cell| cell.value()));
        match cells.iter().any(|cell| cell.ci95().is_some()) {
            true => wide.with_numbers(
                &format!("{}_ci95", column.key),
                unit,
                cells.iter().map(|cell| cell.ci95()),
            ),
            false => wide,
        }
    })
}

fn cell_texts(cells: &[&Cell]) -> Vec<Option<String>> {
    let text = |cell: &&Cell| match cell {
        Cell::Missing { .. } => None,
        cell => Some(cell.text()),
    };
    cells.iter().map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::stats::ConfidenceInterval;
    use consort_data::ReportColumn;

    fn table() -> consort_data::ReportTable {
        let columns = vec![
            ReportColumn::plain("who", "Who"),
            ReportColumn::with_unit("time", "Time", "s"),
        ];
        let mut table = consort_data::ReportTable::new("times", "Times", columns).unwrap();
        let interval = ConfidenceInterval::from_values(&[1.0, 2.0, 3.0]).unwrap();
        table
            .push("a", vec![Cell::Text("mcf".to_owned()), interval.into()])
            .unwrap();
        table
            .push("b", vec![Cell::missing("none"), 7.5.into()])
            .unwrap();
        table
    }

    #[test]
    fn intervals_have_a_column_of_their_own() {
        let wide = report_to_wide_table(&table());
        let names: Vec<&str> = wide.columns().iter().map(|c| c.name.as_str()).collect();
        assert_eq!(names, ["key", "who", "time", "time_ci95"]);
        let time = wide.column("time").unwrap();
        assert_eq!(time.values, Values::Number(vec![Some(2.0), Some(7.5)]));
        assert_eq!(time.unit.as_deref(), Some("s"));
        let who = Values::Text(vec![Some("mcf".to_owned()), None]);
        assert_eq!(wide.column("who").unwrap().values, who);
    }
}
