//! A study's tables and figures as files, and the pages about them.

use super::html::{INDEX, index, page, page_name};
use crate::study::StudyReport;
use consort_data::{ReportTable, WriteError, file_contents, write_files};
use std::path::{Path, PathBuf};

/// The comparison's file name.
const COMPARISON: &str = "reference.csv";
/// The index's title.
const TITLE: &str = "Published experiments, run again by Consort";

/// Writes a study's tables as `W3-KEY.csv`, its figures as `W3-KEY.svg`, and its
/// page `W3.html`, into a folder that exists. Each file is whole or not there.
/// Gives the paths, the page last. `comparison` goes into the page.
///
/// # Errors
/// When a figure cannot be drawn or a file cannot be written.
pub fn write(
    folder: &Path,
    report: &StudyReport,
    comparison: Option<&ReportTable>,
) -> Result<Vec<PathBuf>, WriteError> {
    let output = &report.output;
    let prefix = format!("{}-", report.study);
    let mut files = file_contents(&prefix, &output.tables, &output.figures)?;
    files.push((page_name(report), page(report, comparison)?.into_bytes()));
    write_files(folder, &files)
}

/// Writes `index.html` about these studies, and the comparison as
/// `reference.csv`, into a folder that exists. Gives the path of the index.
///
/// # Errors
/// When a file cannot be written.
pub fn write_index(
    folder: &Path,
    reports: &[&StudyReport],
    comparison: Option<&ReportTable>,
) -> Result<PathBuf, WriteError> {
    let mut files = Vec::new();
    if let Some(table) = comparison {
        files.push((COMPARISON.to_owned(), table.to_csv().into_bytes()));
    }
    files.push((
        INDEX.to_owned(),
        index(TITLE, reports, comparison).into_bytes(),
    ));
    write_files(folder, &files)?;
    Ok(folder.join(INDEX))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;

    #[test]
    fn each_table_and_figure_gets_a_file_and_the_study_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let paths = write(folder.path(), &report("T1"), None).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names: Vec<String> = paths.iter().map(name).collect();
        assert_eq!(
            names,
            ["T1-headline.csv", "T1-sums.csv", "T1-sums.svg", "T1.html"]
        );
        assert!(paths.iter().all(|path| path.is_file()));
    }

    #[test]
    fn the_index_leads_to_the_pages_and_keeps_the_comparison() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (report("T1"), report("T2"));
        let table = report("T1").output.tables.remove(1);
        let index = write_index(folder.path(), &[&one, &two], Some(&table)).unwrap();
        let page = std::fs::read_to_string(index).unwrap();
        assert!(page.contains("href=\"T1.html\"") && page.contains("href=\"T2.html\""));
        let text = std::fs::read_to_string(folder.path().join(COMPARISON)).unwrap();
        assert!(text.starts_with("key,sum,sum_ci95,sum_n,kind\n"), "{text}");
    }

    #[test]
    fn the_same_study_gives_the_same_files() {
        let folders = [1.0, 2.0].map(|seconds| {
            let folder = tempfile::tempdir().unwrap();
            let mut report = report("T1");
            report.seconds = seconds;
            write(folder.path(), &report, None).unwrap();
            folder
        });
        for name in ["T1-sums.csv", "T1-sums.svg", "T1.html"] {
            let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join(name));
            assert_eq!(read(&folders[0]).unwrap(), read(&folders[1]).unwrap());
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write(Path::new("/nonexistent"), &report("T1"), None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write /nonexistent/T1-headline.csv: ")
        );
    }
}
