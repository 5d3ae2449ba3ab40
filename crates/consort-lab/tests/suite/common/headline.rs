//! Checks of the first table of every study.

use consort_data::{Cell, HEADLINE};
use consort_lab::StudyOutput;

/// Asserts that the first table is the headline and has numbers.
pub fn check(id: &str, output: &StudyOutput) {
    let first = &output.tables[0];
    assert_eq!(first.key(), HEADLINE, "{id}");
    let values = first
        .rows()
        .iter()
        .filter_map(|row| first.cell(&row.key, "value"));
    let numbers = values
        .filter_map(Cell::value)
        .filter(|value| value.is_finite());
    assert!(numbers.count() > 0, "{id}");
}
