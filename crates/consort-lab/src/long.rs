//! Tables of studies for data frames.

use crate::study::StudyReport;
use consort_data::Table;
use consort_data::long::{LongRows, RowOwner};

/// Every number of a study in the long format: the case is `STUDY:TABLE:ROW`, the measure the
/// column, and half widths of intervals are measures that end in `_ci95`.
pub fn study_to_long_table(report: &StudyReport) -> Table {
    let mut rows = LongRows::default();
    for table in &report.output.tables {
        for (row, column, cell) in table.cells() {
            let case = format!("{}:{}:{}", report.study, table.key(), row.key);
            let owner = RowOwner {
                case: &case,
                seed: Some(report.seed),
                ..RowOwner::default()
            };
            let unit = column.unit.as_deref();
            rows.push_if_some(owner, &column.key, cell.value(), unit);
            rows.push_if_some(owner, &format!("{}_ci95", column.key), cell.ci95(), unit);
        }
    }
    rows.table()
}
