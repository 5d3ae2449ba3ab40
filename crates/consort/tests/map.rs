//! `consort map`: simulated and live, every format, bad input.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

mod common;

use common::{check_refused_command, consort, folder, json, own_mask, run, skipped, stderr};
use serde_json::Value;
use std::path::Path;
use std::process::Output;

/// A pair of programs on the chip of the source, in a second.
const PAIR: [&str; 7] = [
    "map",
    "--machine",
    "core2-q9550",
    "--workload",
    "blackscholes@4+swaptions@4",
    "--alone",
    "100ms",
];

fn map(more: &[&str]) -> Output {
    let output = run(consort().args([&PAIR[..], more].concat()));
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn table<'a>(document: &'a Value, key: &str) -> &'a Value {
    let tables = document["tables"].as_array().unwrap();
    tables.iter().find(|t| t["key"] == key).unwrap()
}

fn rows(table: &Value) -> &Vec<Value> {
    table["rows"].as_array().unwrap()
}

fn check_refused(args: &[&str], parts: &[&str]) {
    check_refused_command(consort().arg("map").args(args), parts);
}

#[test]
fn a_simulated_pair_has_every_answer_and_the_same_seed_gives_the_same() {
    let mut one = json(&map(&["--format", "json"]));
    let mut two = json(&map(&["--format", "json", "--jobs", "1"]));
    for document in [&mut one, &mut two] {
        document["seconds"] = Value::Null;
    }
    assert_eq!(one, two);
    assert_eq!(one["tier"], "simulated");
    let verdict = &one["verdict"];
    assert!(
        verdict["effect"].is_number() && verdict["low"].is_null(),
        "{verdict}"
    );
    assert_eq!(rows(table(&one, "programs")).len(), 8);
    for key in [
        "best",
        "characteristics",
        "attribution",
        "importance",
        "l2mp",
    ] {
        assert!(!rows(table(&one, key)).is_empty(), "{key}");
    }
    for question in one["questions"].as_array().unwrap() {
        assert_eq!(question["answered"], true, "{question}");
    }
    // The simulation has no mechanism for it, and says so.
    let resources = rows(table(&one, "key-resources"));
    let of = |key: &str| resources.iter().find(|row| row["key"] == key).unwrap();
    assert!(of("disambiguation").to_string().contains("does not model"));
    assert_eq!(resources.len(), 9);
}

#[test]
fn all_mappings_are_those_that_differ() {
    let document = json(&map(&["--mappings", "all", "--format", "json"]));
    assert_eq!(document["mappings_up_to_symmetry"], 5);
    assert_eq!(document["mappings"].as_array().unwrap().len(), 6);
}

#[test]
fn the_answer_comes_first_with_its_interval() {
    let output = map(&["--runs", "3", "--mappings", "os,iso"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let answer: String = text.split("\n\n").next().unwrap().replace('\n', " ");
    for part in [
        "each program on caches of its own (iso) is",
        "than the OS (95 % interval",
        "3 runs)",
    ] {
        assert!(answer.contains(part), "'{part}' is missing in: {answer}");
    }
}

#[test]
fn the_table_is_for_people_and_csv_has_a_line_per_value() {
    let output = map(&[]);
    assert!(
        stderr(&output).contains("will take about"),
        "{}",
        stderr(&output)
    );
    let people = String::from_utf8(output.stdout).unwrap();
    for part in ["Key resources", "most important resource", "L2MP", "spr"] {
        assert!(people.contains(part), "'{part}' is missing in: {people}");
    }
    let csv = String::from_utf8(map(&["--format", "csv"]).stdout).unwrap();
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("table,row,column,value,unit,missing"));
    assert!(lines.clone().count() > 100);
    assert!(lines.all(|line| line.split(',').count() >= 6));
}

#[test]
fn the_folder_has_tables_figures_and_a_page() {
    let folder = folder();
    let out = folder.path().join("made");
    map(&["--out", out.to_str().unwrap()]);
    for file in [
        "map.html",
        "map-best.csv",
        "map-gain.svg",
        "map-attribution.svg",
        "map-l2mp.svg",
    ] {
        let size = std::fs::metadata(out.join(file)).map_or(0, |found| found.len());
        assert!(size > 100, "{file}");
    }
    let page = std::fs::read_to_string(out.join("map.html")).unwrap();
    for link in page.split("href=\"").skip(1) {
        let target = link.split('"').next().unwrap();
        assert!(out.join(target).exists(), "dead link to {target}");
    }
}

#[test]
fn bad_input_is_one_line_and_nothing_is_written() {
    let folder = folder();
    let out = folder.path().join("never");
    let q9550 = ["--machine", "core2-q9550", "--workload", "2*mcf"];
    check_refused(&["--machine", "core2-q9550"], &["--workload"]);
    check_refused(&["--workload", "2*mcf"], &["--command", "--machine"]);
    check_refused(&[], &["--command"]);
    check_refused(
        &[&q9550[..], &["--mappings", "os,isso"]].concat(),
        &["isso", "iso"],
    );
    check_refused(
        &[&q9550[..], &["--mappings", "all", "--bound", "1"]].concat(),
        &["--bound"],
    );
    check_refused(
        &["--command", "no-such-thing-here"],
        &["no-such-thing-here"],
    );
    check_refused(&["--command", "sh 'x"], &["sh 'x"]);
    check_refused(&["--command", "true", "--threads", "1,2"], &["--threads"]);
    let made = ["--out", out.to_str().unwrap(), "--mappings", "x"];
    check_refused(&[&q9550[..], &made].concat(), &["'x'"]);
    assert!(!out.exists());
}

/// Some megabytes that can be compressed, but not to nothing.
fn text(place: &Path) {
    let words = (0u32..300_000).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761) >> 12));
    std::fs::write(place, words.collect::<String>()).unwrap();
}

fn have(program: &str) -> bool {
    let found = std::process::Command::new(program)
        .arg("--version")
        .output();
    found.is_ok_and(|output| output.status.success())
}

#[test]
fn two_foreign_programs_are_mapped_here_and_what_cannot_be_told_is_said() {
    if let Some(missing) = ["xz", "sha256sum"].into_iter().find(|p| !have(p)) {
        return skipped(&format!("there is no {missing}"));
    }
    let folder = folder();
    let file = folder.path().join("text");
    text(&file);
    let file = file.display();
    let before = own_mask();
    let output = run(consort().args([
        "map",
        "--command",
        &format!("xz -qkc -1 -T2 {file}"),
        "--command",
        &format!("sh -c 'for i in 1 2 3 4 5 6 7 8; do sha256sum {file}; done'"),
        "--times",
        "2",
        "--format",
        "json",
    ]));
    assert!(output.status.success(), "{}", stderr(&output));
    let found = json(&output);
    assert_eq!(found["workload"], "xz+sh");
    let programs = rows(table(&found, "programs"));
    assert_eq!(programs.len(), 8);
    let counted = found["tier"] == "counters";
    for row in programs {
        assert!(row["time"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["utilisation"].as_f64().unwrap() > 0.0, "{row}");
        // What is not counted is absent, with its reason, whatever else might stand for it.
        assert_eq!(row["cycles"].is_number(), counted, "{row}");
        assert!(counted || row["cycles"]["missing"].is_string(), "{row}");
    }
    let reported = stderr(&output);
    assert!(
        reported.contains("4 mappings") && reported.contains("will take about"),
        "{reported}"
    );
    for question in found["questions"].as_array().unwrap() {
        let answered = question["answered"] == true;
        assert!(answered || question["reason"].is_string(), "{question}");
    }
    assert_eq!(own_mask(), before);
}

#[test]
fn a_program_that_fails_fails_the_run_and_is_named() {
    let output = run(consort().args(["map", "--command", "false", "--mappings", "os,iso"]));
    assert_eq!(output.status.code(), Some(1));
    let line = stderr(&output);
    assert!(line.contains("false ended with exit code 1"), "{line}");
}
