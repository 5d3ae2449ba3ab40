//! Studies as HTML pages that open from disk: an index, and a page per study.
//!
//! Everything is inside: style, figures as SVG, a script that sorts tables, nothing
//! from a network. Light or dark follows the reader's setting, in figures as well;
//! without scripts, and on paper, nothing but the sorting is missing.

use super::cell::Cell;
use super::figure::Figure;
use super::svg::{SvgError, draw};
use super::table::{Column, Row, Table};
use crate::study::StudyReport;
use consort_core::visible;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");
/// The index's file name.
pub const INDEX: &str = "index.html";

/// File name of a study's page.
pub(super) fn page_name(report: &StudyReport) -> String {
    format!("{}.html", report.study)
}

/// The page that leads to those of these studies, in this order; `comparison` is
/// set beneath when there is one, for example ours against published figures.
pub fn index(title: &str, reports: &[&StudyReport], comparison: Option<&Table>) -> String {
    let entries: String = reports.iter().map(|report| entry(report)).collect();
    let compared = comparison.map_or_else(String::new, table);
    let headings: String = ["Study", "Source", "Scale", "Runs", "Tables", "Figures"]
        .map(|heading| format!("<th scope=\"col\">{heading}</th>"))
        .concat();
    let body = format!(
        "<h1>{}</h1>\n<div class=\"wide\"><table>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody>\n{entries}</tbody>\n</table></div>\n{compared}",
        escape(title)
    );
    document(title, &body)
}

/// The page of a study; `comparison` is that of its figures with published ones.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn page(report: &StudyReport, comparison: Option<&Table>) -> Result<String, SvgError> {
    let title = format!("{}: {}", report.study, report.title);
    let body = format!(
        "<nav><a href=\"{INDEX}\">All studies</a></nav>\n<h1>{}</h1>\n{}",
        escape(&title),
        study(report, comparison)?
    );
    Ok(document(&title, &body))
}

/// A page that belongs to no study: facts, figures, tables.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn sheet(
    title: &str,
    facts: &[String],
    tables: &[Table],
    figures: &[Figure],
) -> Result<String, SvgError> {
    let figures: Result<String, SvgError> = figures.iter().map(figure).collect();
    let tables: String = tables.iter().map(table).collect();
    let body = format!(
        "<h1>{}</h1>\n{}{}{tables}",
        escape(title),
        list("What this is", facts),
        figures?
    );
    Ok(document(title, &body))
}

fn document(title: &str, body: &str) -> String {
    let title = escape(title);
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n{body}\
         <script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

/// Text that is nothing but text in HTML, inside and outside of quotes, all of it visible.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in visible(text).chars() {
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

/// A study's row in the index.
fn entry(report: &StudyReport) -> String {
    let output = &report.output;
    let link = format!(
        "<a href=\"{}\">{}: {}</a>",
        escape(&page_name(report)),
        escape(&report.study),
        escape(&report.title)
    );
    let counts = [output.runs, output.tables.len(), output.figures.len()];
    let counts = counts.map(|count| format!("<td class=\"number\">{count}</td>"));
    format!(
        "<tr><td>{link}</td><td>{}</td><td>{}</td>{}</tr>\n",
        escape(&report.source),
        report.scale,
        counts.concat()
    )
}

fn study(report: &StudyReport, comparison: Option<&Table>) -> Result<String, SvgError> {
    let output = &report.output;
    let figures: Result<String, SvgError> = output.figures.iter().map(figure).collect();
    let mut tables = output.tables.iter();
    let headline: String = tables.by_ref().take(1).map(table).collect();
    let compared = comparison.map_or_else(String::new, table);
    let others: String = tables.map(folded).collect();
    Ok(format!(
        "{}{headline}{compared}{}{others}{}{}",
        about(report),
        figures?,
        list("Notes", &output.notes),
        mechanism(report)
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

fn mechanism(report: &StudyReport) -> String {
    if report.mechanism.is_empty() {
        return String::new();
    }
    let list = list("Mechanism", &report.mechanism);
    format!("{list}<p><small>{}</small></p>\n", StudyReport::BY_HAND)
}

fn list(title: &str, notes: &[String]) -> String {
    if notes.is_empty() {
        return String::new();
    }
    let item = |note: &String| format!("<li>{}</li>\n", escape(note));
    let items: String = notes.iter().map(item).collect();
    format!("<h2>{title}</h2>\n<ul>\n{items}</ul>\n")
}

fn figure(figure: &Figure) -> Result<String, SvgError> {
    Ok(format!("<figure>\n{}</figure>\n", draw(figure)?))
}

/// A table of which the title alone is shown until a reader opens it.
fn folded(of: &Table) -> String {
    let title = escape(of.title());
    let table = table(of);
    format!("<details>\n<summary>{title}</summary>\n{table}</details>\n")
}

fn table(table: &Table) -> String {
    let heading = |column: &Column| format!("<th scope=\"col\">{}</th>", escape(&column.heading()));
    let headings: String = table.columns().iter().map(heading).collect();
    let common = common_n(table);
    let rows = table.rows().iter().map(|r| row(r, common.is_none()));
    let rows: String = rows.collect();
    let n = common.map_or_else(String::new, |n| format!(" <small>n={n}</small>"));
    format!(
        "<div class=\"wide\" tabindex=\"0\"><table>\n<caption>{}{n}</caption>\n\
         <thead><tr><th></th>{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        escape(table.title())
    )
}

/// The number of runs behind every interval, where it is one.
fn common_n(table: &Table) -> Option<usize> {
    let cells = table.rows().iter().flat_map(|row| &row.cells);
    let mut all = cells.filter_map(|cell| match cell {
        Cell::Interval(interval) => Some(interval.n),
        _ => None,
    });
    let first = all.next()?;
    all.all(|n| n == first).then_some(first)
}

fn row(row: &Row, with_n: bool) -> String {
    let cells: String = row.cells.iter().map(|c| cell(c, with_n)).collect();
    format!(
        "<tr><th scope=\"row\">{}</th>{cells}</tr>\n",
        escape(&row.key)
    )
}

fn cell(cell: &Cell, with_n: bool) -> String {
    let text = escape(&cell.text());
    match cell {
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
    use crate::testing::report;

    #[test]
    fn a_page_needs_nothing_from_outside() {
        let report = report("T1");
        let pages = [
            page(&report, None).unwrap(),
            index("Studies", &[&report], None),
        ];
        for page in pages {
            assert_eq!(page.matches("<script").count(), 1);
            for outside in ["<link", "src=", "url(", "@import", "https:"] {
                assert!(!page.contains(outside), "{outside}");
            }
            let namespace = "xmlns=\"http://www.w3.org/2000/svg\"";
            assert!(!page.replace(namespace, "").contains("http:"));
        }
    }

    #[test]
    fn text_from_studies_stays_text() {
        let report = report("T1");
        let table = report.output.tables[1].clone();
        let index = index("a <b> & c", &[&report], Some(&table));
        assert!(index.contains("<title>a &lt;b&gt; &amp; c</title>"));
        assert!(index.contains("<a href=\"T1.html\">T1: Sums &lt;of&gt;"));
        assert!(index.contains("<td>&lt;first&gt;</td>"));
        let page = page(&report, Some(&table)).unwrap();
        assert!(page.contains("Sums &lt;of&gt; small numbers"));
        assert!(page.contains("A &amp; B, &quot;On sums&quot;, section 1"));
        assert!(page.contains("<li>a &lt; b</li>"));
        assert!(page.contains("<td>&lt;first&gt;</td>"));
        assert!(!page.contains("<of>") && !page.contains("<first>"));
    }

    #[test]
    fn a_page_says_what_numbers_stand_on() {
        let report = report("T1");
        let page = page(&report, None).unwrap();
        assert!(page.contains("3 runs of each workload and policy, seed 7, quick scale"));
        assert!(page.contains("<th scope=\"col\">Sum (units)</th>"));
        assert!(page.contains("<small>n=3</small></caption>"));
        assert!(page.contains("Two sums on paper."));
    }

    #[test]
    fn numbers_of_runs_that_differ_stand_beside_each_figure() {
        let mut table = Table::new("t", "T", vec![Column::plain("x", "X")]).unwrap();
        for runs in [&[1.0, 2.0, 4.0][..], &[1.0, 2.0, 4.0, 5.0]] {
            let interval = consort_core::stats::Interval::of(runs).unwrap();
            table
                .push(&runs.len().to_string(), vec![interval.into()])
                .unwrap();
        }
        let html = super::table(&table);
        assert!(html.contains("n=3</small></td>") && html.contains("n=4</small></td>"));
        assert!(!html.contains("</small></caption>"));
    }
}
