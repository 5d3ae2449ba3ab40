//! Studies as HTML pages that open from disk: an index, a page per study, and the files of all
//! tables and figures.

use crate::reference::ReferenceView;
use crate::study::StudyReport;
use consort_data::html::{
    collapsed_table, escape, figure, html_document, html_list, html_verdict, table,
};
use consort_data::{SvgError, WriteError, file_contents, write_files};
use std::path::{Path, PathBuf};

/// The index's file name.
pub const INDEX: &str = "index.html";

/// File name of a study's page.
pub(crate) fn page_name(report: &StudyReport) -> String {
    format!("{}.html", report.study)
}

/// The page that leads to those of these studies, in this order. Published figures are below,
/// next to ours.
pub fn index(title: &str, reports: &[&StudyReport], published: Option<&ReferenceView>) -> String {
    let entries: String = reports.iter().map(|report| entry(report)).collect();
    let compared = published.map_or_else(String::new, |view| {
        let misses = html_list(MISSES, &view.misses);
        format!("{}{misses}", table(&view.verdicts))
    });
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

/// The page of a study, with published figures next to its own. It links to the index if there is
/// one.
///
/// # Errors
/// When a figure cannot be drawn.
pub fn page(
    report: &StudyReport,
    published: Option<&ReferenceView>,
    has_index: bool,
) -> Result<String, SvgError> {
    let title = format!("{}: {}", report.study, report.title);
    let way_back = match has_index {
        true => format!("<nav><a href=\"{INDEX}\">All studies</a></nav>\n"),
        false => String::new(),
    };
    let body = format!(
        "{way_back}<h1>{}</h1>\n{}",
        escape(&title),
        study_body(report, published)?
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

fn study_body(report: &StudyReport, published: Option<&ReferenceView>) -> Result<String, SvgError> {
    let output = &report.output;
    let verdict = published.map(|view| html_verdict(view.verdicts.title()));
    let mut body = verdict.unwrap_or_default();
    if let Some(answer) = &report.answer {
        body += &html_verdict(answer);
    }
    body += &study_facts(report);
    if let Some(view) = published {
        body += &table(&view.verdicts);
        for one in &view.figures {
            body += &figure(one)?;
        }
        body += &html_list(MISSES, &view.misses);
    }
    let figures: Result<String, SvgError> = output.figures.iter().map(figure).collect();
    let mut tables = output.tables.iter();
    body.extend(tables.by_ref().take(1).map(table));
    body += &figures?;
    body.extend(tables.map(collapsed_table));
    Ok(body + &html_list("Notes", &output.notes) + &mechanism(report))
}

fn study_facts(report: &StudyReport) -> String {
    let runs = match report.output.runs {
        1 => "1 run".to_owned(),
        runs => format!("{runs} runs"),
    };
    let (seed, scale) = (report.seed, report.scale);
    let based_on = format!("{runs} of each workload and policy, seed {seed}, {scale} scale");
    let facts = [
        ("Source", format!("{}, {}", report.source, report.section)),
        ("What the source did", report.original.clone()),
        ("What differs here", report.differs.clone()),
        ("Based on", based_on),
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

/// The comparison's file name.
const COMPARISON: &str = "reference.csv";
/// Heading of the published figures that disagree with ours.
pub const MISSES: &str = "Why published figures and ours disagree";
/// The index's title.
const TITLE: &str = "Published experiments, run again by Consort";

/// Writes a study's tables as `W3-KEY.csv`, its figures as `W3-KEY.svg`, and its page `W3.html`,
/// into a folder that exists. Each file is whole or not there. Returns the paths, the page last.
/// Published figures go into the page and, as `W3-reference.csv` and figures, into files. With
/// `has_index` the page links to the file that [`write_index`] writes.
///
/// # Errors
/// When a figure cannot be drawn or a file cannot be written.
pub fn write(
    folder: &Path,
    report: &StudyReport,
    published: Option<&ReferenceView>,
    has_index: bool,
) -> Result<Vec<PathBuf>, WriteError> {
    let output = &report.output;
    let prefix = format!("{}-", report.study);
    let mut files = file_contents(&prefix, &output.tables, &output.figures)?;
    if let Some(view) = published {
        let table = std::slice::from_ref(&view.table);
        files.extend(file_contents(&prefix, table, &view.figures)?);
    }
    let page = page(report, published, has_index)?;
    files.push((page_name(report), page.into_bytes()));
    write_files(folder, &files)
}

/// Writes `index.html` about these studies, and published figures next to ours as
/// `reference.csv`, into a folder that exists. Returns the path of the index.
///
/// # Errors
/// When a file cannot be written.
pub fn write_index(
    folder: &Path,
    reports: &[&StudyReport],
    published: Option<&ReferenceView>,
) -> Result<PathBuf, WriteError> {
    let mut files = Vec::new();
    if let Some(view) = published {
        files.push((COMPARISON.to_owned(), view.table.to_csv().into_bytes()));
    }
    files.push((
        INDEX.to_owned(),
        index(TITLE, reports, published).into_bytes(),
    ));
    write_files(folder, &files)?;
    Ok(folder.join(INDEX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::{compare, parse};
    use crate::testing::report;

    /// A published figure that the study has, and one that it lacks.
    fn published(report: &StudyReport) -> ReferenceView {
        let lines = "study,row,value,unit\nT1,all sums,40,ratio\nT1,<none> of ours,2,percent\n";
        let lines = parse("f.csv", lines).unwrap();
        compare(&lines, &[(report, &[])]).view().unwrap().unwrap()
    }

    #[test]
    fn page_needs_no_other_files() {
        let report = report("T1");
        let pages = [
            page(&report, None, true).unwrap(),
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
        let view = published(&report);
        let index = index("a <b> & c", &[&report], Some(&view));
        assert!(index.contains("<title>a &lt;b&gt; &amp; c</title>"));
        assert!(index.contains("<a href=\"T1.html\">T1: Sums &lt;of&gt;"));
        assert!(index.contains("&lt;none&gt; of ours: not measured"));
        let page = page(&report, Some(&view), true).unwrap();
        assert!(page.contains("Sums &lt;of&gt; small numbers"));
        assert!(page.contains("A &amp; B, &quot;On sums&quot;, section 1"));
        assert!(page.contains("<li>a &lt; b</li>"));
        assert!(page.contains("<td>&lt;first&gt;</td>"));
        assert!(!page.contains("<of>") && !page.contains("<first>"));
    }

    #[test]
    fn page_shows_runs_seed_and_source() {
        let report = report("T1");
        let page = page(&report, None, true).unwrap();
        assert!(page.contains("3 runs of each workload and policy, seed 7, quick scale"));
        assert!(page.contains("<th scope=\"col\">Sum (units)</th>"));
        assert!(page.contains("<small>n=3</small></caption>"));
        assert!(page.contains("Two sums on paper."));
    }

    #[test]
    fn tables_figures_and_page_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(folder.path(), &report("T1"), None, true).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names: Vec<String> = paths.iter().map(name).collect();
        assert_eq!(
            names,
            ["T1-headline.csv", "T1-sums.csv", "T1-sums.svg", "T1.html"]
        );
        assert!(paths.iter().all(|path| path.is_file()));
    }

    #[test]
    fn published_figures_come_first_on_the_page_and_in_files() {
        let folder = tempfile::tempdir().unwrap();
        let report = report("T1");
        write(folder.path(), &report, Some(&published(&report)), true).unwrap();
        let read = |name| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let page = read("T1.html");
        let place = |text: &str| page.find(text).unwrap();
        assert!(place("direction 1 of 2, size within a third 0 of 2") < place("Sum (units)"));
        assert!(read("T1-reference.csv").contains("all sums"));
        assert!(read("T1-published-ratio.svg").starts_with("<svg"));
    }

    #[test]
    fn index_links_pages_and_writes_the_comparison() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (report("T1"), report("T2"));
        let view = published(&one);
        let index = write_index(folder.path(), &[&one, &two], Some(&view)).unwrap();
        let page = std::fs::read_to_string(index).unwrap();
        assert!(page.contains("href=\"T1.html\"") && page.contains("href=\"T2.html\""));
        let text = std::fs::read_to_string(folder.path().join(COMPARISON)).unwrap();
        assert!(text.starts_with("key,study,published,table,row,"), "{text}");
    }

    #[test]
    fn same_study_gives_same_files() {
        let folders = [1.0, 2.0].map(|seconds| {
            let folder = tempfile::tempdir().unwrap();
            let mut report = report("T1");
            report.seconds = seconds;
            write(folder.path(), &report, None, true).unwrap();
            folder
        });
        for name in ["T1-sums.csv", "T1-sums.svg", "T1.html"] {
            let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join(name));
            assert_eq!(read(&folders[0]).unwrap(), read(&folders[1]).unwrap());
        }
    }

    #[test]
    fn page_without_index_links_to_none() {
        let has_link = |has_index| {
            let page = page(&report("T1"), None, has_index).unwrap();
            page.contains(INDEX)
        };
        assert!(has_link(true) && !has_link(false));
    }

    #[test]
    fn missing_folder_is_named() {
        let error = write(Path::new("/nonexistent"), &report("T1"), None, true).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write /nonexistent/T1-headline.csv: ")
        );
    }
}
