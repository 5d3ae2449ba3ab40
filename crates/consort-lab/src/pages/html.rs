//! Studies as HTML pages that open from disk: an index, and a page per study.

use crate::study::StudyReport;
use consort_data::html::{collapsed_table, escape, figure, html_document, html_list, table};
use consort_data::{ReportTable, SvgError};

/// The index's file name.
pub const INDEX: &str = "index.html";

/// File name of a study's page.
pub(crate) fn page_name(report: &StudyReport) -> String {
    format!("{}.html", report.study)
}

/// The page that leads to those of these studies, in this order; `comparison` is
/// set beneath when there is one, for example ours against published figures.
pub fn index(title: &str, reports: &[&StudyReport], comparison: Option<&ReportTable>) -> String {
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
    html_document(title, &body)
}

/// The page of a study; `comparison` is that of its figures with published ones.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn page(report: &StudyReport, comparison: Option<&ReportTable>) -> Result<String, SvgError> {
    let title = format!("{}: {}", report.study, report.title);
    let body = format!(
        "<nav><a href=\"{INDEX}\">All studies</a></nav>\n<h1>{}</h1>\n{}",
        escape(&title),
        study_body(report, comparison)?
    );
    Ok(html_document(&title, &body))
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

fn study_body(report: &StudyReport, comparison: Option<&ReportTable>) -> Result<String, SvgError> {
    let output = &report.output;
    let figures: Result<String, SvgError> = output.figures.iter().map(figure).collect();
    let mut tables = output.tables.iter();
    let headline: String = tables.by_ref().take(1).map(table).collect();
    let compared = comparison.map_or_else(String::new, table);
    let others: String = tables.map(collapsed_table).collect();
    Ok(format!(
        "{}{headline}{compared}{}{others}{}{}",
        study_facts(report),
        figures?,
        html_list("Notes", &output.notes),
        mechanism(report)
    ))
}

fn study_facts(report: &StudyReport) -> String {
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
    let list = html_list("Mechanism", &report.mechanism);
    format!("{list}<p><small>{}</small></p>\n", StudyReport::BY_HAND)
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
}
