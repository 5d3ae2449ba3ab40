//! Promise: what the documents name is there. Links lead to files, terms of papers to items of the
//! code, experiments to studies, and nothing refers to a document that a reader does not have.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below a folder with this extension.
fn files(folder: &Path, extension: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            files(&path, extension, found);
        } else if path.extension().is_some_and(|e| e == extension) {
            found.push(path);
        }
    }
}

/// README and what lies at its side, and everything below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut all = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .to_vec();
    files(&root().join("docs"), "md", &mut all);
    assert!(all.len() > 30, "found only {}", all.len());
    all
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Rows of all tables with so many columns, without headers' rules.
fn rows(text: &str, columns: usize) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let lines = text.lines().filter(|line| line.starts_with('|'));
    lines
        .map(cells)
        .filter(|row| row.len() == columns && !row[0].starts_with("---"))
        .collect()
}

fn papers() -> Vec<PathBuf> {
    let mut papers = Vec::new();
    files(&root().join("docs/papers"), "md", &mut papers);
    assert_eq!(papers.len(), 5);
    papers
}

#[test]
fn every_term_of_a_paper_leads_to_an_item() {
    for paper in papers() {
        let rows = rows(&text(&paper), 4);
        assert!(rows.len() > 10, "{}", paper.display());
        for row in rows.iter().skip(1) {
            let file = root().join(&row[3]);
            let item = row[2].trim_matches('`');
            let found = std::fs::read_to_string(&file).is_ok_and(|text| text.contains(item));
            assert!(found, "{}: {row:?}", paper.display());
        }
    }
}

#[test]
fn every_study_is_on_the_page_of_its_paper() {
    let pages: String = papers().iter().map(|paper| text(paper)).collect();
    let mut studies = Vec::new();
    files(
        &root().join("crates/consort-lab/studies"),
        "toml",
        &mut studies,
    );
    // Ours alone have no paper.
    let ours = |id: &str| id.starts_with('X');
    let names = studies
        .iter()
        .filter(|path| path.parent().unwrap().ends_with("studies"));
    for path in names {
        let id = path.file_stem().unwrap().to_string_lossy().to_uppercase();
        let command = format!("`consort reproduce {id}`");
        assert!(ours(&id) || pages.contains(&command), "{id} has no page");
    }
}

#[test]
fn every_word_of_the_glossary_is_in_the_code() {
    let mut sources = Vec::new();
    files(&root().join("crates"), "rs", &mut sources);
    let code: String = sources.iter().map(|path| text(path)).collect();
    let glossary = text(&root().join("docs/glossary.md"));
    let words: Vec<_> = [3, 4].map(|n| rows(&glossary, n)).concat();
    assert!(words.len() > 30);
    let items = words
        .iter()
        .filter_map(|row| row.last().unwrap().strip_prefix('`'));
    for item in items.map(|item| item.trim_end_matches('`')) {
        let kinds = ["struct", "enum", "trait", "fn"];
        let is_there = kinds
            .iter()
            .any(|kind| code.contains(&format!("{kind} {item}")));
        assert!(is_there || code.contains(&format!("{item}:")), "{item}");
    }
}

#[test]
fn links_lead_somewhere() {
    for document in documents() {
        let text = text(&document);
        for link in text
            .split("](")
            .skip(1)
            .filter_map(|rest| rest.split(')').next())
        {
            let target = link.split('#').next().unwrap();
            if target.is_empty() || target.contains("://") {
                continue;
            }
            let path = document.parent().unwrap().join(target);
            assert!(path.exists(), "{}: {link}", document.display());
        }
    }
}

#[test]
fn nothing_refers_to_a_document_that_nobody_has() {
    let mut all = documents();
    files(&root().join("crates"), "rs", &mut all);
    let missing = [
        "the specification says",
        "spec chapter",
        "see issue ",
        "spec/",
    ];
    for path in all.iter().filter(|path| !path.ends_with("documents.rs")) {
        let text = text(path);
        for words in missing {
            assert!(!text.contains(words), "{}: \"{words}\"", path.display());
        }
    }
}
