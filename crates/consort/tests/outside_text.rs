//! Text from outside reaches a terminal, a table and a CSV file as text that does nothing.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{consort, folder, json, run, stderr};
use compiled::compiled;
use std::process::Output;

/// Name that `names.c` gives its thread, and below it the text that stands for it.
const NAME: &str = "\u{1b}[2J\nx\u{202e}\u{9b}";
const SHOWN: &str = r"\x1b[2J\nx\u{202e}\x9b";

/// Characters that a terminal acts on or that turn the direction of text.
fn acts(character: char) -> bool {
    let turns = matches!(character, '\u{200e}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (character.is_control() && character != '\n') || turns
}

fn check_inert(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let found = text.chars().find(|c| acts(*c));
    assert_eq!(found, None, "{what}: {text:?}");
}

fn check_output(what: &str, output: &Output) {
    check_inert(what, &output.stdout);
    check_inert(what, &output.stderr);
}

#[test]
fn a_thread_s_name_is_shown_and_does_nothing() {
    let Some(program) = compiled("names", &[]) else {
        return;
    };
    let of = |format: &str| {
        run(consort()
            .args(["run", "--interval", "100ms", "--format", format, "--"])
            .arg(program.path()))
    };
    let table = of("table");
    check_output("table", &table);
    assert!(stderr(&table).contains(SHOWN), "{}", stderr(&table));
    let csv = of("csv");
    check_output("csv", &csv);
    let lines = String::from_utf8_lossy(&csv.stdout).into_owned();
    assert!(lines.contains(SHOWN), "{lines}");
    let document = of("json");
    check_output("json", &document);
    let report = json(&document);
    let threads = report["threads"].as_array().unwrap();
    assert!(threads.iter().any(|t| t["name"] == NAME), "{report:#}");
}

#[test]
fn words_of_the_command_line_come_back_inert() {
    let strange = "a\u{1b}[31m\u{202e}\u{9b}b\nc";
    let all: [&[&str]; 9] = [
        &["run", "--", strange],
        &["run", "--policy", strange, "--", "true"],
        &["run", "--config", strange, "--", "true"],
        &["run", "--topology", strange, "--", "true"],
        &["run", "--report", strange, "--", strange],
        &[strange],
        &["policies", strange],
        &["machine", "--machine", strange],
        &["programs", strange],
    ];
    for args in all {
        let output = run(consort().args(args));
        assert!(!output.status.success(), "{args:?}");
        check_output(&format!("{args:?}"), &output);
        assert_eq!(stderr(&output).lines().count(), 1, "{args:?}");
        assert!(stderr(&output).contains(r"\u{202e}"), "{}", stderr(&output));
    }
}

#[test]
fn descriptions_are_shown_and_do_nothing() {
    let folder = folder();
    let path = folder.path().join("s\u{1b}[31m.toml");
    let shown = run(consort().args(["programs", "hmmer", "--format", "json"]));
    let title = json(&shown)["title"].as_str().unwrap().to_owned();
    let source = include_str!("../../consort-describe/programs/hmmer.toml");
    let strange = source.replacen(&title, r"T\u001b[2J\nU\u202e", 1);
    assert_ne!(source, strange);
    std::fs::write(&path, strange).unwrap();
    for format in ["table", "csv", "json"] {
        let output = run(consort()
            .arg("programs")
            .arg(&path)
            .args(["--format", format]));
        assert!(output.status.success(), "{}", stderr(&output));
        check_output(format, &output);
    }
}
