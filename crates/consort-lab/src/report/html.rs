//! Studies as one HTML page that opens from disk.
//!
//! Everything is inside: style, figures as SVG, no script, nothing from a
//! network. Light or dark follows the reader's setting; figures stay light, as
//! they are files of their own too.

use super::cell::Cell;
use super::figure::Figure;
use super::svg::{SvgError, draw};
use super::table::{Column, Row, Table};
use crate::study::StudyReport;

const STYLE: &str = include_str!("page.css");

/// A page of these studies in this order; `comparison` is set in front of them
/// when there is one, for example ours against published figures.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn page(
    title: &str,
    reports: &[&StudyReport],
    comparison: Option<&Table>,
) -> Result<String, SvgError> {
    let contents: String = reports.iter().map(|report| entry(report)).collect();
    let compared = comparison.map_or_else(String::new, table);
    let studies: Result<String, SvgError> = reports.iter().map(|report| study(report)).collect();
    let title = escape(title);
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n\
         <h1>{title}</h1>\n<nav>\n<ul>\n{contents}</ul>\n</nav>\n{compared}{}\
         </body>\n</html>\n",
        studies?
    ))
}

/// Text that is nothing but text in HTML, inside and outside of quotes.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

fn entry(report: &StudyReport) -> String {
    let (id, title) = (escape(&report.study), escape(&report.title));
    format!("<li><a href=\"#{id}\">{id}: {title}</a></li>\n")
}

fn study(report: &StudyReport) -> Result<String, SvgError> {
    let output = &report.output;
    let figures: Result<String, SvgError> = output.figures.iter().map(figure).collect();
    let tables: String = output.tables.iter().map(table).collect();
    let (id, title) = (escape(&report.study), escape(&report.title));
    Ok(format!(
        "<section id=\"{id}\">\n<h2>{id}: {title}</h2>\n{}{tables}{}{}</section>\n",
        about(report),
        figures?,
        notes(&output.notes)
    ))
}

fn about(report: &StudyReport) -> String {
    let stands_on = format!(
        "{} runs of each workload and policy, seed {}, {} scale",
        report.output.runs, report.seed, report.scale
    );
    let facts = [
        ("Source", format!("{}, {}", report.source, report.section)),
        ("What the source did", report.original.clone()),
        ("What differs here", report.differs.clone()),
        ("Stands on", stands_on),
    ];
    let line =
        |(term, text): &(&str, String)| format!("<dt>{term}</dt><dd>{}</dd>\n", escape(text));
    let lines: String = facts.iter().map(line).collect();
    format!("<dl>\n{lines}</dl>\n")
}

fn notes(notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let item = |note: &String| format!("<li>{}</li>\n", escape(note));
    let items: String = notes.iter().map(item).collect();
    format!("<h3>Notes</h3>\n<ul>\n{items}</ul>\n")
}

fn figure(figure: &Figure) -> Result<String, SvgError> {
    Ok(format!("<figure>\n{}</figure>\n", draw(figure)?))
}

fn table(table: &Table) -> String {
    let heading = |column: &Column| format!("<th scope=\"col\">{}</th>", escape(&column.heading()));
    let headings: String = table.columns().iter().map(heading).collect();
    let rows: String = table.rows().iter().map(row).collect();
    format!(
        "<div class=\"wide\"><table>\n<caption>{}</caption>\n\
         <thead><tr><th></th>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(table.title())
    )
}

fn row(row: &Row) -> String {
    let cells: String = row.cells.iter().map(cell).collect();
    format!(
        "<tr><th scope=\"row\">{}</th>{cells}</tr>\n",
        escape(&row.key)
    )
}

fn cell(cell: &Cell) -> String {
    let text = escape(&cell.text());
    match cell {
        Cell::Text(_) => format!("<td>{text}</td>"),
        Cell::Missing { missing } => {
            format!(
                "<td class=\"missing\">{text} <small>{}</small></td>",
                escape(missing)
            )
        }
        Cell::Count(_) | Cell::Number(_) => format!("<td class=\"number\">{text}</td>"),
        Cell::Interval(interval) => {
            let n = interval.n;
            format!("<td class=\"number\">{text} <small>n={n}</small></td>")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let report = report("T1");
        let page = page("Studies", &[&report], None).unwrap();
        for outside in ["<script", "<link", "src=", "url(", "@import", "https:"] {
            assert!(!page.contains(outside), "{outside}");
        }
        let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
        assert!(!page.replace(namespace, "").contains("http:"));
    }

    #[test]
    fn text_from_studies_stays_text() {
        let report = report("T1");
        let table = report.output.tables[0].clone();
        let page = page("a <b> & c", &[&report], Some(&table)).unwrap();
        assert!(page.contains("<title>a &lt;b&gt; &amp; c</title>"));
        assert!(page.contains("Sums &lt;of&gt; small numbers"));
        assert!(page.contains("A &amp; B, &quot;On sums&quot;, section 1"));
        assert!(page.contains("<li>a &lt; b</li>"));
        assert!(page.contains("<td>&lt;first&gt;</td>"));
        assert!(!page.contains("<of>") && !page.contains("<first>"));
    }

    #[test]
    fn a_page_says_what_numbers_stand_on() {
        let report = report("T1");
        let page = page("Studies", &[&report], None).unwrap();
        assert!(page.contains("3 runs of each workload and policy, seed 7, quick scale"));
        assert!(page.contains("<th scope=\"col\">Sum (units)</th>"));
        assert!(page.contains("<small>n=3</small>"));
        assert!(page.contains("Two sums on paper."));
    }
}
