//! `consort machine --machine`: described machines.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::check_refused;
use crate::common::{consort, folder, json, run, stderr};
use std::path::{Path, PathBuf};
use std::process::Output;

/// With no descriptions of the user's own.
fn machine(args: &[&str]) -> Output {
    let mut command = consort();
    command.env("XDG_CONFIG_HOME", env!("CARGO_TARGET_TMPDIR"));
    let output = run(command.arg("machine").args(args));
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    output
}

fn text(args: &[&str]) -> String {
    String::from_utf8(machine(args).stdout).unwrap()
}

#[test]
fn a_described_machine_has_the_keys_of_a_live_one_and_its_description() {
    let described = json(&machine(&["--machine", "power7", "--format", "json"]));
    let live = json(&machine(&["--machine", "live", "--format", "json"]));
    for key in live.as_object().unwrap().keys() {
        assert!(described.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(described["name"], "power7");
    assert_eq!(described["tier"], "counters");
    assert!(described["hypervisor"].is_null());
    assert!(!described["title"].as_str().unwrap().is_empty());
    assert!(!described["sources"].as_object().unwrap().is_empty());
    let counters = described["counters"].as_array().unwrap();
    assert_eq!(
        counters.len(),
        described["pmu"]["events"].as_array().unwrap().len()
    );
    let tiers = described["tiers"].as_array().unwrap();
    assert_eq!(tiers.len(), 4);
    for tier in tiers {
        assert!(
            tier["reason"].as_str().unwrap().starts_with("simulated"),
            "{tier}"
        );
        let has_signals = !tier["signals"].as_array().unwrap().is_empty();
        assert_eq!(tier["available"], has_signals, "{tier}");
    }
}

#[test]
fn smt_limits_the_pus_of_each_core() {
    let of = |machine_text: &str| {
        let document = json(&machine(&["--machine", machine_text, "--format", "json"]));
        let number = |key: &str| document[key].as_u64().unwrap();
        (number("cores"), number("pus"), number("smt"))
    };
    let (cores, pus, smt) = of("power7");
    assert_eq!((pus, smt), (4 * cores, 4));
    assert_eq!(of("power7:smt=2"), (cores, 2 * cores, 2));
}

#[test]
fn core_types_and_llc_domains_are_told() {
    let document = json(&machine(&["--machine", "acmp-1+3", "--format", "json"]));
    let types = document["core_types"].as_array().unwrap();
    let cores: Vec<_> = types
        .iter()
        .map(|t| (t["name"].as_str().unwrap(), t["cores"].as_u64().unwrap()))
        .collect();
    assert_eq!(cores, [("big", 1), ("small", 3)]);
    let llcs = document["llc_domains"].as_array().unwrap();
    assert_eq!(llcs.len(), 1);
    assert_eq!(llcs[0]["pus"], document["allowed_pus"]);
    assert!(llcs[0]["size_bytes"].as_u64().unwrap() >= 1 << 20);
}

#[test]
fn the_tree_of_a_small_machine_reads_well() {
    insta::assert_snapshot!(text(&["--machine", "acmp-1+1"]));
}

#[test]
fn every_level_of_the_tree_is_drawn() {
    let check = |name: &str, lines: &[&str]| {
        let drawn = text(&["--machine", name]);
        for line in lines {
            assert!(
                drawn.lines().any(|l| l.trim() == *line),
                "'{line}' in:\n{drawn}"
            );
        }
    };
    check(
        "epyc-7763",
        &[
            "package 1",
            "node 7",
            "LLC 15, 32 MiB, 14.8 ns > 8 x L2 512 KiB, 12 cycles > 1 zen3 core {2 CPUs}: 240-255",
        ],
    );
    check(
        "core-i9-12900k",
        &[
            "package 0 > node 0",
            "2 x L2 2 MiB, 17 cycles > 4 e-cores {1 CPU}: 16-23",
        ],
    );
    check(
        "core2-q9550",
        &["LLC 1, 6 MiB, 5.3 ns > 2 x core {1 CPU}: 2-3"],
    );
}

#[test]
fn every_machine_can_be_drawn_and_listed_as_csv() {
    let list = json(&machine(&["--list", "--format", "json"]));
    let rows = list.as_array().unwrap();
    assert!(rows.len() >= 15, "{rows:?}");
    for row in rows {
        let name = row["name"].as_str().unwrap();
        assert_eq!(row["origin"], "built in");
        let pus = row["pus"].as_u64().unwrap() as usize;
        let drawn = text(&["--machine", name]);
        let title = row["title"].as_str().unwrap();
        assert!(drawn.starts_with(&format!("{name}: {title}\n")), "{drawn}");
        let csv = text(&["--machine", name, "--format", "csv"]);
        assert!(csv.starts_with("pu,core,llc,node,package,core_type\n"));
        assert_eq!(csv.lines().count(), pus + 1, "{name}");
    }
}

#[test]
fn what_is_no_machine_is_told_in_one_line() {
    check_refused(
        &["machine", "--machine", "powr7"],
        &["'powr7'", "did you mean 'power7'"],
    );
    check_refused(
        &["machine", "--machine", "power7:smt=9"],
        &["smt=9", "one of 1, 2, 4"],
    );
    check_refused(&["machine", "--machine", "power7:smt=x"], &["smt=N"]);
    check_refused(
        &["machine", "--machine", "/no/such.toml"],
        &["/no/such.toml"],
    );
    check_refused(&["machine", "--machine", "power7", "--check"], &["--check"]);
    check_refused(&["machine", "--machine", "power7", "--list"], &["--list"]);
}

/// A preset in a file, changed.
fn own_machine(path: &Path, changes: &[(&str, &str)]) {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../consort-describe/machines");
    let mut text = std::fs::read_to_string(PathBuf::from(folder).join("acmp-1+1.toml")).unwrap();
    for (from, to) in changes {
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn a_broken_file_is_told_with_line_and_key() {
    let folder = folder();
    let file = folder.path().join("mine.toml");
    own_machine(
        &file,
        &[("acmp-1+1", "mine"), ("size_kib = 4096", "size_kib = -1")],
    );
    check_refused(
        &["machine", "--machine", file.to_str().unwrap()],
        &["mine.toml:", "llc.size_kib"],
    );
}

#[test]
fn the_users_own_machines_are_listed_and_drawn() {
    let home = folder();
    let own = home.path().join("consort/machines");
    std::fs::create_dir_all(&own).unwrap();
    let file = own.join("mine.toml");
    own_machine(
        &file,
        &[("acmp-1+1", "mine"), ("Asymmetric chip", "My chip")],
    );
    let with_home = |args: &[&str]| {
        let mut command = consort();
        command.arg("machine").args(args);
        run(command.env("XDG_CONFIG_HOME", home.path()))
    };
    let list = json(&with_home(&["--list", "--format", "json"]));
    let rows = list.as_array().unwrap();
    let mine = rows.iter().find(|row| row["name"] == "mine").unwrap();
    assert_eq!(mine["origin"], file.to_str().unwrap());
    assert_eq!(
        (mine["cores"].as_u64(), mine["pus"].as_u64()),
        (Some(2), Some(2))
    );
    let drawn = with_home(&["--machine", "mine"]);
    let drawn = String::from_utf8(drawn.stdout).unwrap();
    assert!(drawn.starts_with("mine: My chip"), "{drawn}");

    own_machine(
        &own.join("bad.toml"),
        &[("size_kib = 4096", "size_kib = -1")],
    );
    let refused = with_home(&["--list"]);
    let line = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{line}");
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(
        line.contains("bad.toml:") && line.contains("llc.size_kib"),
        "{line}"
    );
}
