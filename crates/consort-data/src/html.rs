//! HTML pages that open from disk, and what they are put together from.
//!
//! Everything is inside: style, figures as SVG, a script that sorts tables, nothing
//! from a network. Light or dark follows the reader's setting, in figures as well;
//! without scripts, and on paper, nothing but the sorting is missing.

use crate::cell::Cell;
use crate::figure::Figure;
use crate::report_table::{ReportColumn, ReportRow, ReportTable};
use crate::svg::{SvgError, draw};
use std::sync::OnceLock;

pub use crate::escape::escape;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// A page of facts, figures and tables.
///
/// # Errors
/// If a figure cannot be drawn.
pub fn figures_page(
    title: &str,
    facts: &[String],
    tables: &[ReportTable],
    figures: &[Figure],
) -> Result<String, SvgError> {
    let figures: Result<String, SvgError> = figures.iter().map(figure).collect();
    let tables: String = tables.iter().map(table).collect();
    let (verdict, facts) = match facts {
        [verdict, facts @ ..] => (html_verdict(verdict), facts),
        [] => (String::new(), facts),
    };
    let body = format!(
        "<h1>{}</h1>\n{verdict}{}{}{tables}",
        escape(title),
        html_list("What this is", facts),
        figures?
    );
    Ok(html_document(title, &body))
}

/// Foot of every page: the program's version, the date and the command.
static FOOT: OnceLock<String> = OnceLock::new();

/// Sets the foot of all pages that this process writes; only the first one counts.
pub fn set_page_foot(text: String) {
    let _ = FOOT.set(text);
}

/// The sentence that a reader needs first.
pub fn html_verdict(text: &str) -> String {
    format!("<p class=\"verdict\">{}</p>\n", prose(text))
}

/// A text with code between backticks.
fn prose(text: &str) -> String {
    let mut parts = text.split('`').map(escape).collect::<Vec<_>>();
    if parts.len() % 2 == 0 {
        return escape(text);
    }
    for code in parts.iter_mut().skip(1).step_by(2) {
        *code = format!("<code>{code}</code>");
    }
    parts.concat()
}

/// A whole page; the body is HTML already.
pub fn html_document(title: &str, body: &str) -> String {
    let title = escape(title);
    let foot = FOOT.get().map_or_else(String::new, |text| {
        format!("<footer><p>{}</p></footer>\n", escape(text))
    });
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}{foot}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// A list of texts with a heading; empty if there are no texts.
pub fn html_list(title: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let item = |note: &String| format!("<li>{}</li>\n", prose(note));
    let items: String = notes.iter().map(item).collect();
    format!("<h2>{title}</h2>\n<ul>\n{items}</ul>\n")
}

/// A figure, drawn in place.
///
/// # Errors
/// If it cannot be drawn.
pub fn figure(figure: &Figure) -> Result<String, SvgError> {
    Ok(format!("<figure>\n{}</figure>\n", draw(figure)?))
}

/// A table that shows its title only, until a reader opens it.
pub fn collapsed_table(of: &ReportTable) -> String {
    let title = escape(of.title());
    let table = table(of);
    format!("<details>\n<summary>{title}</summary>\n{table}</details>\n")
}

/// A table, which a reader can sort by a column.
pub fn table(table: &ReportTable) -> String {
    let heading =
        |column: &ReportColumn| format!("<th scope=\"col\">{}</th>", escape(&column.heading()));
    let headings: String = table.columns().iter().map(heading).collect();
    // The number of runs behind every interval; each cell names its own if they differ.
    let cells = table.rows().iter().flat_map(|row| &row.cells);
    let mut counts = cells.filter_map(Cell::n);
    let common = counts.next().filter(|n| counts.all(|other| other == *n));
    let rows = table.rows().iter().map(|r| row(r, common.is_none()));
    let rows: String = rows.collect();
    let n = common.map_or_else(String::new, |n| format!(" <small>n={n}</small>"));
    let class = match table.columns().len() > MOST_COLUMNS {
        true => " class=\"many\"",
        false => "",
    };
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table{class}>\n<caption>{}{n}</caption>\n\
         <thead><tr><th></th>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(table.title())
    )
}

fn row(row: &ReportRow, with_n: bool) -> String {
    let cells: String = row.cells.iter().map(|c| cell(c, with_n)).collect();
    format!(
        "<tr><th scope=\"row\">{}</th>{cells}</tr>\n",
        escape(&row.key)
    )
}

/// Columns beyond which a table is printed in smaller letters, so that it fits the paper.
const MOST_COLUMNS: usize = 7;

fn cell(cell: &Cell, with_n: bool) -> String {
    let text = escape(&cell.text());
    match cell {
        Cell::Text(raw) if raw.parse::<f64>().is_ok() => {
            format!("<td class=\"number\">{text}</td>")
        }
        Cell::Text(_) => format!("<td>{text}</td>"),
        Cell::Missing { missing } => {
            format!(
                "<td class=\"missing\">{text} <small>{}</small></td>",
                escape(missing)
            )
        }
        Cell::Interval(interval) if with_n => {
            let n = interval.n;
            format!("<td class=\"number\">{text} <small>n={n}</small></td>")
        }
        Cell::Count(_) | Cell::Number(_) | Cell::Interval(_) => {
            format!("<td class=\"number\">{text}</td>")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unequal_run_counts_are_next_to_figures() {
        let mut table = ReportTable::new("t", "T", vec![ReportColumn::plain("x", "X")]).unwrap();
        for runs in [&[1.0, 2.0, 4.0][..], &[1.0, 2.0, 4.0, 5.0]] {
            let interval = consort_core::stats::ConfidenceInterval::from_values(runs).unwrap();
            table
                .push(&runs.len().to_string(), vec![interval.into()])
                .unwrap();
        }
        let html = super::table(&table);
        assert!(html.contains("n=3</small></td>") && html.contains("n=4</small></td>"));
        assert!(!html.contains("</small></caption>"));
    }

    #[test]
    fn numbers_in_texts_keep_their_digits() {
        let html = |text: &str| cell(&Cell::Text(text.to_owned()), false);
        assert_eq!(html("0.62"), "<td class=\"number\">0.62</td>");
        assert_eq!(html("idle"), "<td>idle</td>");
    }
}
