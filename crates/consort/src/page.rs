//! Results as a page for a browser: facts, figures and tables in one file that needs no other.

use crate::output::OutputColumn;
use anyhow::Result;
use consort_data::{Cell, Figure, ReportTable};
use std::collections::BTreeSet;

/// Content of a page.
pub(crate) struct HtmlPage {
    pub(crate) title: String,
    /// Sentences above all else.
    pub(crate) facts: Vec<String>,
    pub(crate) figures: Vec<Figure>,
    pub(crate) tables: Vec<ReportTable>,
}

impl HtmlPage {
    /// The page as HTML.
    pub(crate) fn html(&self) -> Result<String> {
        let Self {
            title,
            facts,
            figures,
            tables,
        } = self;
        Ok(consort_data::figures_page(title, facts, tables, figures)?)
    }
}

/// Rows as they are printed; the first column names them.
pub(crate) fn table<R>(
    key: &str,
    title: &str,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<ReportTable> {
    let Some((first, others)) = columns.split_first() else {
        return Ok(ReportTable::new(key, title, Vec::new())?);
    };
    let heads = others.iter().enumerate();
    let heads = heads.map(|(at, c)| consort_data::ReportColumn::plain(&format!("c{at}"), c.header));
    let mut table = ReportTable::new(key, title, heads.collect())?;
    let mut names = BTreeSet::new();
    for row in rows {
        let cells = others.iter().map(|column| cell(column, row));
        table.push(
            &unused_name(&mut names, &(first.text)(row)),
            cells.collect(),
        )?;
    }
    Ok(table)
}

fn cell<R>(column: &OutputColumn<R>, row: &R) -> Cell {
    let text = (column.text)(row);
    if let Ok(count) = text.parse::<u64>() {
        return Cell::Count(count);
    }
    match text.parse::<f64>() {
        Ok(number) if column.numeric && number.is_finite() => Cell::Number(number),
        _ => Cell::Text(text),
    }
}

/// The name, with a number where it is taken.
fn unused_name(names: &mut BTreeSet<String>, name: &str) -> String {
    let mut unused = match name.trim() {
        "" => "-".to_owned(),
        some => some.to_owned(),
    };
    let mut number = 2;
    while !names.insert(unused.clone()) {
        unused = format!("{} ({number})", name.trim());
        number += 1;
    }
    unused
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::{number, text};

    const COLUMNS: &[OutputColumn<(&str, f64)>] = &[
        text("name", |row| row.0.to_owned()),
        number("value", |row| format!("{:.2}", row.1)),
        text("value in words", |row| format!("about {:.0}", row.1)),
    ];

    #[test]
    fn rows_of_one_name_are_told_apart_and_numbers_stay_numbers() {
        let rows = [("a", 1.25), ("a", 2.0), (" ", f64::NAN)];
        let table = table("t", "T", COLUMNS, &rows).unwrap();
        let keys: Vec<&str> = table.rows().iter().map(|row| row.key.as_str()).collect();
        assert_eq!(keys, ["a", "a (2)", "-"]);
        assert_eq!(table.rows()[0].cells[0], Cell::Number(1.25));
        assert_eq!(table.columns().len(), 2);
        assert_eq!(table.rows()[2].cells[0], Cell::Text("NaN".to_owned()));
        assert_eq!(table.rows()[1].cells[1], Cell::Text("about 2".to_owned()));
    }
}
