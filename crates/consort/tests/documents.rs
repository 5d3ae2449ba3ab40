//! Promise: what the documents name is there. Words of the glossary, terms of papers and metrics
//! lead to items of the code, experiments to studies, and nothing refers to a document that a reader
//! does not have.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use consort_core::policies;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files below a folder with one of these extensions.
fn files(folder: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let extension = path.extension().and_then(|e| e.to_str());
        if path.is_dir() && !path.ends_with("target") {
            files(&path, extensions, found);
        } else if extension.is_some_and(|e| extensions.contains(&e)) {
            found.push(path);
        }
    }
}

/// README and what lies at its side, and everything below `docs`.
fn documents() -> Vec<PathBuf> {
    let mut all = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"]
        .map(|name| root().join(name))
        .to_vec();
    files(&root().join("docs"), &["md"], &mut all);
    assert!(all.len() > 30, "found only {}", all.len());
    all
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Rows of all tables with so many columns, without headers and their rules.
fn rows(text: &str, columns: usize) -> Vec<Vec<String>> {
    let cells = |line: &str| -> Vec<String> {
        let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
        inner
            .split('|')
            .map(|cell| cell.trim().to_owned())
            .collect()
    };
    let lines: Vec<&str> = text.lines().collect();
    let is_rule = |line: Option<&&str>| line.is_some_and(|l| l.starts_with("|---"));
    let kept = lines.iter().enumerate().filter(|(at, line)| {
        line.starts_with('|') && !is_rule(Some(line)) && !is_rule(lines.get(at + 1))
    });
    kept.map(|(_, line)| cells(line))
        .filter(|row| row.len() == columns)
        .collect()
}

fn papers() -> Vec<PathBuf> {
    let mut papers = Vec::new();
    files(&root().join("docs/papers"), &["md"], &mut papers);
    assert_eq!(papers.len(), 5);
    papers
}

fn is_of_a_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Returns true where a text has a word, not only as a part of another.
fn has_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        !before.is_some_and(is_of_a_word) && !after.is_some_and(is_of_a_word)
    })
}

/// Returns true where a Rust source defines an item: by a keyword, as a field or variant, or as the
/// key of an entry.
fn defines(code: &str, item: &str) -> bool {
    let keywords = ["fn", "struct", "enum", "trait", "const", "type", "mod"];
    let by_keyword = |line: &str| {
        keywords.iter().any(|keyword| {
            let rest = line.split_once(&format!("{keyword} {item}"));
            rest.is_some_and(|(_, rest)| !rest.starts_with(is_of_a_word))
        })
    };
    let by_name = |line: &str| {
        let rest = line.trim_start().trim_start_matches("pub ");
        let rest = rest.strip_prefix(item);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([',', ':', '(', ' ']))
    };
    let mut lines = code.lines().filter(|l| !l.trim_start().starts_with("//"));
    lines.any(|line| by_keyword(line) || by_name(line)) || code.contains(&format!("\"{item}\""))
}

/// Fails unless the file is there and has the item.
fn resolve(document: &Path, row: &[String], item: &str, file: &str) {
    let name = document.display();
    let item = item.trim_matches('`');
    let read = std::fs::read_to_string(root().join(file));
    assert!(read.is_ok(), "{name}: no such file: {row:?}");
    let code = read.unwrap();
    let there = match file.ends_with(".rs") {
        true => defines(&code, item),
        false => has_word(&code, item),
    };
    assert!(there, "{name}: {file} has no {item}: {row:?}");
}

#[test]
fn every_term_of_a_paper_leads_to_an_item() {
    for paper in papers() {
        let rows = rows(&text(&paper), 4);
        assert!(rows.len() >= 15, "{}: {}", paper.display(), rows.len());
        for row in rows {
            resolve(&paper, &row, &row[2], &row[3]);
        }
    }
}

#[test]
fn every_fault_leads_to_its_test() {
    let document = root().join("docs/use/safety.md");
    let mut rows = rows(&text(&document), 3);
    rows.retain(|row| row[2].ends_with(".rs"));
    assert!(rows.len() >= 20, "{}", rows.len());
    for row in rows {
        resolve(&document, &row, &row[1], &row[2]);
    }
}

#[test]
fn policies_systems_machines_and_programs_of_the_papers_are_there() {
    let known = |kind: &str, name: &str| {
        let file =
            |folder: &str| root().join(format!("crates/consort-describe/{folder}/{name}.toml"));
        match kind {
            "policy" => policies::find(name).is_ok(),
            "operating system" => consort_sim::os::find(name).is_ok(),
            "machine" => file("machines").exists(),
            "program" => file("programs").exists(),
            _ => true,
        }
    };
    for paper in papers() {
        for row in rows(&text(&paper), 4) {
            let Some((kind, rest)) = row[1].split_once(" `") else {
                continue;
            };
            let name = rest.split('`').next().unwrap();
            assert!(known(kind, name), "{}: {row:?}", paper.display());
        }
    }
}

#[test]
fn every_word_and_every_metric_leads_to_an_item() {
    for (document, columns) in [("docs/glossary.md", 4), ("docs/metrics.md", 6)] {
        let path = root().join(document);
        let rows = rows(&text(&path), columns);
        assert!(rows.len() > 25, "{document}: {}", rows.len());
        for row in rows {
            resolve(&path, &row, &row[columns - 2], &row[columns - 1]);
        }
    }
}

#[test]
fn every_study_of_a_paper_is_on_its_page_with_its_time() {
    let registry = consort_lab::registry().unwrap();
    let mut of_papers = BTreeSet::new();
    for paper in papers() {
        for row in rows(&text(&paper), 5) {
            let command = row[2].trim_matches('`');
            let id = command.strip_prefix("consort reproduce ").unwrap();
            let info = registry.list().find(|info| info.id == id);
            assert!(info.is_some(), "{}: no study {id}", paper.display());
            let info = info.unwrap();
            let time = format!("{} s", info.full_seconds_hint);
            assert_eq!(row[3], time, "{id}: {}", paper.display());
            let file = format!("/{}.toml)", id.to_lowercase());
            assert!(row[0].starts_with(&format!("[{}]", info.title)), "{row:?}");
            assert!(row[0].ends_with(&file), "{row:?}");
            assert!(
                !row[4].is_empty() && of_papers.insert(id.to_owned()),
                "{id}"
            );
        }
    }
    // Those that begin with X are ours and have no paper.
    let all = registry.list().map(|info| info.id.clone());
    let expected: BTreeSet<String> = all.filter(|id| !id.starts_with('X')).collect();
    assert_eq!(of_papers, expected);
}

#[test]
fn what_rustdoc_finds_by_another_word_is_a_word_of_a_paper_or_a_metric() {
    let mut pages: String = papers().iter().map(|paper| text(paper)).collect();
    pages += &text(&root().join("docs/metrics.md"));
    let pages = pages.to_lowercase();
    let mut sources = Vec::new();
    files(&root().join("crates"), &["rs"], &mut sources);
    let attribute = ["#[doc(alias = ", "\""].concat();
    let mut found = 0;
    for path in sources {
        let code = text(&path);
        for alias in code.split(attribute.as_str()).skip(1) {
            let alias = alias.split('"').next().unwrap().to_lowercase();
            assert!(pages.contains(&alias), "{}: {alias}", path.display());
            found += 1;
        }
    }
    assert!(found > 50, "{found}");
}

/// A text in one line, without what begins the lines of comments.
fn in_one_line(text: &str) -> String {
    let mark = ['/', '!', '#', '*', ' '];
    let lines = text
        .lines()
        .map(|line| line.trim_start().trim_start_matches(mark));
    lines.collect::<Vec<_>>().join(" ").to_lowercase()
}

/// Returns true where a text has the word followed by a number, as in "chapter 9".
fn is_numbered(text: &str, word: &str) -> bool {
    let mut after = text.split(word).skip(1);
    after.any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

#[test]
fn nothing_refers_to_a_document_that_nobody_has() {
    let mut all = documents();
    let extensions = ["rs", "toml", "py", "pyi", "c", "h"];
    files(&root().join("crates"), &extensions, &mut all);
    files(&root().join("rtl"), &["sv", "py"], &mut all);
    let missing = [
        "of the specification",
        "the specification says",
        "the specification promises",
        "in the spec ",
        "the spec says",
        "spec chapter",
        "shared/spec",
        "shared/data",
    ];
    // The house's own words, so a number after them is of nothing that is here.
    let numbered = [
        "(issue ",
        "see issue ",
        "of issue ",
        " issue #",
        "see chapter ",
    ];
    for path in all.iter().filter(|path| !path.ends_with("documents.rs")) {
        let text = in_one_line(&text(path));
        for words in missing {
            assert!(!text.contains(words), "{}: \"{words}\"", path.display());
        }
        for words in numbered {
            let found = is_numbered(&text, words);
            assert!(!found, "{}: \"{words}\" and a number", path.display());
        }
        // A possessive chapter is one of a book that is not named.
        let chapters = text.split("chapter ").skip(1);
        for rest in chapters {
            let rest = rest.trim_start_matches(|c: char| c.is_ascii_digit());
            assert!(!rest.starts_with("'s "), "{}: chapter's", path.display());
        }
    }
}

#[test]
fn words_are_found() {
    assert!(defines("pub struct Core {", "Core") && !defines("struct Cores;", "Core"));
    assert!(has_word("a core.", "core") && !has_word("score cores", "core"));
}
