//! A study's tables and figures as files, and the page about all of them.

use super::csv::{CsvError, write_csv};
use super::html::page;
use super::svg::{SvgError, draw};
use super::table::Table;
use crate::atomic;
use crate::study::StudyReport;
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The page's file name.
const PAGE: &str = "report.html";
/// The comparison's file name.
const COMPARISON: &str = "reference.csv";
/// The page's title.
const TITLE: &str = "Published experiments, run again by Consort";

/// Why files could not be written.
#[derive(Debug, Error)]
pub enum WriteError {
    /// A table.
    #[error(transparent)]
    Csv(#[from] CsvError),
    /// A figure.
    #[error(transparent)]
    Svg(#[from] SvgError),
    /// The file system.
    #[error("cannot write {}: {cause}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
}

/// Writes the tables of these studies as `W3-KEY.csv`, their figures as
/// `W3-KEY.svg`, the comparison as `reference.csv`, and `report.html` about all
/// of them, into a folder that exists. Each file is whole or not there. Gives
/// the paths, the page last.
///
/// # Errors
/// When a figure cannot be drawn or a file cannot be written.
pub fn write(
    folder: &Path,
    reports: &[&StudyReport],
    comparison: Option<&Table>,
) -> Result<Vec<PathBuf>, WriteError> {
    let mut paths = Vec::new();
    for report in reports {
        for (name, content) in files(report)? {
            paths.push(write_one(folder, &name, &content)?);
        }
    }
    if let Some(table) = comparison {
        paths.push(write_one(folder, COMPARISON, &csv_bytes(table)?)?);
    }
    let page = page(TITLE, reports, comparison)?;
    paths.push(write_one(folder, PAGE, page.as_bytes())?);
    Ok(paths)
}

/// Names and contents of one study's files.
fn files(report: &StudyReport) -> Result<Vec<(String, Vec<u8>)>, WriteError> {
    let id = &report.study;
    let mut files = Vec::new();
    for table in &report.output.tables {
        files.push((format!("{id}-{}.csv", table.key()), csv_bytes(table)?));
    }
    for figure in &report.output.figures {
        let content = draw(figure)?.into_bytes();
        files.push((format!("{id}-{}.svg", figure.key()), content));
    }
    Ok(files)
}

fn csv_bytes(table: &Table) -> Result<Vec<u8>, CsvError> {
    let mut content = Vec::new();
    write_csv(&mut content, table)?;
    Ok(content)
}

fn write_one(folder: &Path, name: &str, content: &[u8]) -> Result<PathBuf, WriteError> {
    let path = folder.join(name);
    match atomic::write(folder, name, content) {
        Ok(()) => Ok(path),
        Err(cause) => Err(WriteError::Io { path, cause }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;

    #[test]
    fn each_table_and_figure_gets_a_file_and_all_a_page() {
        let folder = tempfile::tempdir().unwrap();
        let (one, two) = (report("T1"), report("T2"));
        let paths = write(folder.path(), &[&one, &two], None).unwrap();
        let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
        let names: Vec<String> = paths.iter().map(name).collect();
        let expected = [
            "T1-sums.csv",
            "T1-sums.svg",
            "T2-sums.csv",
            "T2-sums.svg",
            PAGE,
        ];
        assert_eq!(names, expected);
        assert!(paths.iter().all(|path| path.is_file()));
        let page = std::fs::read_to_string(folder.path().join(PAGE)).unwrap();
        assert!(page.contains("id=\"T1\"") && page.contains("href=\"#T2\""));
    }

    #[test]
    fn a_comparison_gets_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let table = report("T1").output.tables.remove(0);
        write(folder.path(), &[], Some(&table)).unwrap();
        let text = std::fs::read_to_string(folder.path().join(COMPARISON)).unwrap();
        assert!(text.starts_with("key,sum,sum_ci95,sum_n,kind\n"), "{text}");
    }

    #[test]
    fn the_same_study_gives_the_same_files() {
        let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
        for folder in &folders {
            let mut slow = report("T1");
            slow.seconds = folders.len() as f64;
            write(folder.path(), &[&slow], None).unwrap();
        }
        for name in ["T1-sums.csv", "T1-sums.svg", PAGE] {
            let read = |folder: &tempfile::TempDir| std::fs::read(folder.path().join(name));
            assert_eq!(read(&folders[0]).unwrap(), read(&folders[1]).unwrap());
        }
    }

    #[test]
    fn a_folder_that_is_not_there_is_named() {
        let error = write(Path::new("/nonexistent"), &[&report("T1")], None).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("cannot write /nonexistent/T1-sums.csv: ")
        );
    }
}
