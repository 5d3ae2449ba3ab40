//! `consort programs`: what can be simulated.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::check_refused;
use crate::common::{consort, folder, json, run, stderr};
use std::path::Path;
use std::process::Output;

fn programs(args: &[&str]) -> Output {
    let output = run(consort().arg("programs").args(args));
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

fn text(args: &[&str]) -> String {
    String::from_utf8(programs(args).stdout).unwrap()
}

#[test]
fn every_program_has_its_keys() {
    let document = json(&programs(&["--format", "json"]));
    let rows = document.as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "hmmer"));
    let keys = ["name", "suite", "threads", "phases", "title", "origin"];
    for row in rows {
        for key in keys {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
        assert!(row["length_ginstr"].as_f64().unwrap() > 0.0, "{row}");
        let threads = &row["threads"];
        assert!(threads["default"].as_u64().unwrap() <= threads["max"].as_u64().unwrap());
    }
}

#[test]
fn a_suite_has_its_programs_only() {
    let document = json(&programs(&["--suite", "parsec", "--format", "json"]));
    let rows = document.as_array().unwrap();
    assert!(rows.iter().any(|row| row["name"] == "streamcluster"));
    assert!(rows.iter().all(|row| row["suite"] == "parsec"));
    let table = text(&["--suite", "parsec", "--wide"]);
    assert_eq!(table.lines().count(), rows.len() + 1, "{table}");
    let csv = text(&["--suite", "parsec", "--format", "csv"]);
    assert!(csv.starts_with("name,suite,threads,phases,length_Ginstr,title,origin\n"));
    assert_eq!(csv.lines().count(), rows.len() + 1);
}

#[test]
fn one_program_is_described_with_phases_and_sources() {
    let table = text(&["streamcluster"]);
    for part in [
        "PARSEC",
        "threads: 4, at most 64",
        "branch mpki",
        "Bienia et al.",
    ] {
        assert!(table.contains(part), "'{part}' is missing in:\n{table}");
    }
    let csv = text(&["hmmer", "--format", "csv"]);
    let (header, row) = csv.split_once('\n').unwrap();
    let header: Vec<&str> = header.split(',').collect();
    let row: Vec<&str> = row.trim().split(',').collect();
    let of = |name: &str| row[header.iter().position(|h| *h == name).unwrap()];
    let document = json(&programs(&["hmmer", "--format", "json"]));
    let misses = &document["phase"][0]["data_mpki"];
    for (name, index) in [
        ("mpki_at_32_KiB", 2),
        ("mpki_at_256_KiB", 5),
        ("mpki_at_4_MiB", 9),
    ] {
        let reported: f64 = of(name).parse().unwrap();
        assert!(
            (reported - misses[index].as_f64().unwrap()).abs() <= 0.005,
            "{name}"
        );
    }
}

#[test]
fn what_is_not_there_is_told_with_the_nearest() {
    check_refused(&["programs", "hmmr"], &["'hmmr'", "did you mean 'hmmer'"]);
    check_refused(
        &["programs", "--suite", "parsek"],
        &["'parsek'", "did you mean 'parsec'"],
    );
    check_refused(&["programs", "/no/such.toml"], &["/no/such.toml"]);
    check_refused(&["programs", "hmmer", "--suite", "parsec"], &["--suite"]);
}

/// `hmmer` under another name, changed.
fn own_program(path: &Path, name: &str, from: &str, to: &str) {
    let preset = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../consort-describe/programs/hmmer.toml"
    );
    let text = std::fs::read_to_string(preset).unwrap();
    let text = text.replacen("\"hmmer\"", &format!("\"{name}\""), 1);
    assert!(text.contains(from), "{text}");
    std::fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn the_users_own_programs_are_found_and_broken_ones_told() {
    let home = folder();
    let own = home.path().join("consort/programs");
    std::fs::create_dir_all(&own).unwrap();
    own_program(&own.join("mine.toml"), "mine", "spec2006", "own-suite");
    let list = |suite: &str| {
        let mut command = consort();
        command.env("XDG_CONFIG_HOME", home.path());
        run(command.args(["programs", "--suite", suite, "--format", "json"]))
    };
    let rows = json(&list("own-suite"));
    assert_eq!(rows[0]["name"], "mine");
    let origin = rows[0]["origin"].as_str().unwrap();
    assert!(origin.ends_with("consort/programs/mine.toml"), "{origin}");
    assert_eq!(json(&list("parsec"))[0]["origin"], "built in");

    own_program(
        &own.join("bad.toml"),
        "bad",
        "page_spread = 0.05",
        "page_spread = 5",
    );
    let refused = list("own-suite");
    assert_eq!(refused.status.code(), Some(2));
    let line = stderr(&refused);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(
        line.contains("bad.toml:") && line.contains("page_spread"),
        "{line}"
    );
}
