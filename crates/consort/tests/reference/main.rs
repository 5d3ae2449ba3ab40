//! Promise: every page of `docs/reference/` says what the code says.
//!
//! Each page is built from the program and its sources and compared with the committed file.
//! `CONSORT_UPDATE=1 cargo test -p consort --test reference` writes the pages instead. The metrics
//! come from a snapshot, so update that first if metrics change: `INSTA_UPDATE=always cargo test -p
//! consort --lib metrics`.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

mod lists;
mod schemas;
mod sources;
mod types;
mod verbs;

use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Standard output of the program, as wide as a page of the book.
fn consort(arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
    command.args(arguments).env("COLUMNS", "84");
    let output = command.output().unwrap();
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).unwrap()
}

/// Compares a page with the committed file, or writes it.
fn check(page: &str, text: &str) {
    let path = root().join("docs").join(page);
    let text = format!("{}\n", text.trim_end());
    if std::env::var_os("CONSORT_UPDATE").is_some() {
        std::fs::write(&path, text).unwrap();
        return;
    }
    let committed = std::fs::read_to_string(&path).unwrap_or_default();
    let different = committed
        .lines()
        .zip(text.lines())
        .find(|(old, new)| old != new);
    assert!(
        committed == text,
        "docs/{page} has drifted from the code; run CONSORT_UPDATE=1 cargo test -p consort --test \
         reference. First difference: {different:?}"
    );
}

/// A row of a table in Markdown; cells are in one line and keep their bars.
fn row(cells: &[&str]) -> String {
    let cells = cells.iter().map(|cell| {
        let line = cell.split_whitespace().collect::<Vec<_>>().join(" ");
        line.replace('|', "\\|")
    });
    format!("| {} |\n", cells.collect::<Vec<_>>().join(" | "))
}

/// A table in Markdown, without the columns that are empty in all rows; empty without rows.
fn table(heads: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let is_used = |at: usize| at == 0 || rows.iter().any(|row| !row[at].is_empty());
    let used: Vec<usize> = (0..heads.len()).filter(|at| is_used(*at)).collect();
    let mut text = row(&used.iter().map(|at| heads[*at]).collect::<Vec<_>>());
    text += &format!("|{}\n", "---|".repeat(used.len()));
    for cells in rows {
        text += &row(&used
            .iter()
            .map(|at| cells[*at].as_str())
            .collect::<Vec<_>>());
    }
    text
}

#[test]
fn verbs_are_those_of_the_program() {
    check("reference/verbs.md", &verbs::page());
}

#[test]
fn policies_are_those_of_the_registry() {
    check("reference/policies.md", &lists::policies_page());
}

#[test]
fn metrics_are_those_of_the_code() {
    check("reference/metrics.md", &lists::metrics_page());
}

#[test]
fn errors_are_those_of_the_code() {
    check("reference/errors.md", &lists::errors_page());
}

#[test]
fn schemas_are_those_of_the_files() {
    check("reference/schemas.md", &schemas::page());
}

#[test]
fn configuration_is_that_of_the_code() {
    check("reference/configuration.md", &types::configuration_page());
}

#[test]
fn documents_are_those_of_the_code() {
    check("reference/json.md", &types::documents_page());
}

/// What the types say is what the program prints.
#[test]
fn printed_documents_have_the_keys_of_their_parts() {
    let page = types::documents_page();
    let chip = ["--machine", "core-i7-6700"];
    let load = ["--workload", "hmmer+mcf", "--alone", "100ms"];
    for (part, arguments) in [
        ("list policies", vec!["list", "policies"]),
        ("machine --machine NAME", [&["machine"], &chip[..]].concat()),
        ("simulate", [&["simulate"], &chip[..], &load].concat()),
        (
            "compare",
            [&["compare", "--policies", "linux"], &chip[..], &load].concat(),
        ),
        ("list programs", vec!["list", "programs"]),
    ] {
        let printed = consort(&[&arguments[..], &["--format", "json"]].concat());
        let mut document: serde_json::Value = serde_json::from_str(&printed).unwrap();
        if document.is_array() {
            document = document[0].take();
        }
        let head = format!("\n## `consort {part}`\n");
        let rest = page.split(&head).nth(1).unwrap();
        let described = rest.split("\n## ").next().unwrap();
        for key in document.as_object().unwrap().keys() {
            let row = format!("\n| `{key}` |");
            assert!(described.contains(&row), "{part} has no key {key}");
        }
    }
}

#[test]
fn protocol_is_that_of_the_code() {
    check("reference/protocol.md", &types::protocol_page());
}

/// `docs/figures/current.py` makes the page from `current.csv`; without Python nothing is checked.
#[test]
fn figures_are_those_of_the_table() {
    let mut script = Command::new("python3");
    let script = script.arg(root().join("docs/figures/current.py"));
    match script.arg("--page").output() {
        Ok(output) => {
            assert!(output.status.success(), "{output:?}");
            check("figures.md", &String::from_utf8(output.stdout).unwrap());
        }
        Err(error) => println!("skipped: python3: {error}"),
    }
}
