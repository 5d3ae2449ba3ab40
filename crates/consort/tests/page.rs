//! Output for people fits the terminal, and a reader who goes away is no error.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{consort, folder, run, stderr};
use compiled::have;
use std::process::{Command, Output, Stdio};

/// Verbs that print tables, with the widest of their arguments.
const TABLES: [&[&str]; 12] = [
    &["policies"],
    &["programs"],
    &["programs", "hmmer"],
    &["machine"],
    &["machine", "--list"],
    &["machine", "--machine", "power8"],
    &["reproduce", "list"],
    &["bench", "--list"],
    &["validate", "--quick", "--group", "conservation"],
    &[
        "compare",
        "--machine",
        "power7:smt=2",
        "--workload",
        "2*h264ref+2*povray",
        "--policies",
        "aggregate,linux",
        "--runs",
        "2",
        "--alone",
        "1s",
    ],
    &[
        "simulate",
        "--machine",
        "power7:smt=2",
        "--workload",
        "2*h264ref+2*povray",
        "--policy",
        "workover",
        "--alone",
        "1s",
        "--explain",
        "0",
    ],
    &[
        "map",
        "--machine",
        "core2-q9550",
        "--workload",
        "streamcluster@4+facesim@4",
        "--alone",
        "100ms",
    ],
];

fn printed(args: &[&str], columns: Option<&str>) -> String {
    let mut command = consort();
    command.args(args).env_remove("COLUMNS");
    if let Some(columns) = columns {
        command.env("COLUMNS", columns);
    }
    let output = run(&mut command);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

fn widest(text: &str) -> usize {
    text.lines().map(|line| line.chars().count()).max().unwrap()
}

/// Digits and points as they stand, in order: what a broken number would change.
fn numbers(text: &str) -> Vec<&str> {
    let words = text.split(|c: char| !(c.is_ascii_digit() || c == '.'));
    let mut numbers: Vec<&str> = words.filter(|w| w.len() > 2 && w.contains('.')).collect();
    numbers.sort_unstable();
    numbers.dedup();
    numbers
}

#[test]
fn tables_fit_the_terminal_and_no_number_is_broken() {
    for args in TABLES {
        let wide = printed(&[args, &["--wide"]].concat(), None);
        for columns in ["80", "120"] {
            let text = printed(args, Some(columns));
            assert!(
                widest(&text) <= columns.parse().unwrap(),
                "{args:?}:\n{text}"
            );
            let (whole, shown) = (numbers(&wide), numbers(&text));
            // What a run took differs from run to run.
            if !matches!(args[0], "simulate" | "compare" | "validate" | "map") {
                let broken: Vec<_> = shown.iter().filter(|n| !whole.contains(n)).collect();
                assert!(broken.is_empty(), "{args:?}: {broken:?}");
            }
        }
    }
}

#[test]
fn what_goes_to_a_file_is_set_for_a_hundred_columns_and_wide_for_all() {
    let usual = printed(&["policies"], None);
    assert!(widest(&usual) <= 100, "{usual}");
    let wide = printed(&["policies", "--wide"], None);
    assert!(widest(&wide) > 200, "{wide}");
    let json = |columns| printed(&["policies", "--format", "json"], Some(columns));
    assert_eq!(json("40"), json("400"));
    let csv = |columns| printed(&["policies", "--format", "csv"], Some(columns));
    assert_eq!(csv("40"), csv("400"));
}

#[test]
fn the_report_of_a_run_fits_the_terminal_that_it_is_on() {
    if !have("script") {
        return;
    }
    let line = format!(
        "stty rows 24 cols 80; exec {} run -- sh -c 'i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done'",
        consort().get_program().to_str().unwrap()
    );
    let mut script = Command::new("script");
    script.args(["-qec", &line, "/dev/null"]);
    let output = run(script.env("SHELL", "/bin/sh").env_remove("COLUMNS"));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("all affinities restored"), "{text}");
    assert!(widest(&text.replace('\r', "")) <= 80, "{text}");
}

/// Runs the verb with a reader that goes away before it has read anything.
fn unread(args: &[&str]) -> Output {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let command = &mut consort();
    let child = command.args(args).stdin(Stdio::null()).stdout(writer);
    child
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
        .wait_with_output()
        .unwrap()
}

#[test]
fn a_reader_who_goes_away_ends_every_verb_quietly() {
    let folder = folder();
    let out = folder.path().to_str().unwrap();
    let more: [&[&str]; 9] = [
        &["--help"],
        &["--version"],
        &["run", "--help"],
        &["schema", "machine"],
        &["completions", "bash"],
        &["policies", "--format", "json"],
        &["policies", "--format", "csv"],
        &["reproduce", "W1", "--quick", "--out", out],
        &["run", "-q", "--format", "json", "--", "true"],
    ];
    for args in TABLES.iter().copied().chain(more) {
        let output = unread(args);
        assert_eq!(
            output.status.code(),
            Some(0),
            "{args:?}: {}",
            stderr(&output)
        );
        assert_eq!(
            stderr(&output).lines().find(|l| l.contains("ipe")),
            None,
            "{args:?}"
        );
    }
    assert_eq!(
        unread(&["run", "-q", "--format", "csv", "--", "sh", "-c", "exit 7"])
            .status
            .code(),
        Some(7)
    );
}
