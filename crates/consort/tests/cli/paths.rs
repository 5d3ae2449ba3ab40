//! Names and paths: a text that names a file is a path in every notation, and quotes let a path
//! contain the signs of a notation.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use crate::common::{consort, folder, json, run, stderr};
use std::path::Path;
use std::process::Output;

const PROGRAM: &str = include_str!("../../../consort-describe/programs/hmmer.toml");
const MACHINE: &str = include_str!("../../../consort-describe/machines/acmp-1+3.toml");

fn in_folder(place: &Path, args: &[&str]) -> Output {
    run(consort().args(args).current_dir(place))
}

fn write(place: &Path, name: &str, text: &str) {
    let path = place.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
}

/// One line, exit code 2, and all of these parts in it.
fn check_refused(place: &Path, args: &[&str], parts: &[&str]) {
    let output = in_folder(place, args);
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {line}");
    assert_eq!(line.lines().count(), 1, "{args:?}: {line}");
    for part in parts {
        assert!(line.contains(part), "{args:?}: '{part}' in {line}");
    }
    assert!(!line.contains("unknown"), "{args:?}: {line}");
}

fn simulated(place: &Path, workload: &str) -> usize {
    let common = ["--alone", "10ms", "--format", "json"];
    let args = ["simulate", "-m", "power7", "-w", workload];
    let output = in_folder(place, &[&args[..], &common].concat());
    assert!(output.status.success(), "{workload}: {}", stderr(&output));
    json(&output)["programs"].as_array().unwrap().len()
}

#[test]
fn paths_with_signs_of_the_notation_are_found_in_workloads() {
    let place = folder();
    let place = place.path();
    for name in [
        "c++.toml",
        "ws@2/a.toml",
        "3*x.toml",
        "d+e/a.toml",
        "a b.toml",
    ] {
        write(place, name, PROGRAM);
    }
    assert_eq!(simulated(place, "./c++.toml+hmmer"), 2);
    assert_eq!(simulated(place, "c++.toml"), 1);
    assert_eq!(simulated(place, "2*./ws@2/a.toml+hmmer"), 3);
    assert_eq!(simulated(place, "./3*x.toml"), 1);
    assert_eq!(simulated(place, "2*./d+e/a.toml@1"), 2);
    assert_eq!(simulated(place, r#"2*"./c++.toml"@1 + "a b.toml""#), 3);
    let absolute = place.join("ws@2/a.toml");
    assert_eq!(simulated(place, absolute.to_str().unwrap()), 1);
    for missing in ["./no+e/a.toml", "./no@2/a.toml", "./3*no.toml"] {
        check_refused(
            place,
            &["simulate", "-m", "power7", "-w", missing],
            &["quotes let a path contain"],
        );
    }
}

#[test]
fn existing_files_are_never_unknown_names() {
    let place = folder();
    let place = place.path();
    write(place, "rec/x.xml", "<?xml version=\"1.0\"?>\n<topology/>\n");
    write(place, "champ.trace.xz", "x");
    write(place, "mine", MACHINE);
    write(place, "prog", PROGRAM);
    let no_machine = ["rec/x.xml", "not TOML"];
    check_refused(
        place,
        &["simulate", "-m", "rec/x.xml", "-w", "hmmer"],
        &no_machine,
    );
    check_refused(place, &["machine", "--machine", "rec/x.xml"], &no_machine);
    check_refused(
        place,
        &["simulate", "-m", "power7", "-w", "rec/x.xml"],
        &no_machine,
    );
    check_refused(place, &["programs", "rec/x.xml"], &no_machine);
    check_refused(place, &["reproduce", "rec/x.xml"], &["rec/x.xml"]);
    for trace in ["champ.trace.xz", "./champ.trace.xz"] {
        check_refused(
            place,
            &[
                "simulate",
                "--fidelity",
                "reference",
                "-m",
                "power7",
                "-w",
                trace,
            ],
            &["champ.trace.xz is no trace"],
        );
    }
    check_refused(
        place,
        &[
            "compare",
            "-m",
            "power8",
            "-w",
            "hmmer",
            "-p",
            "symbiotic:model=champ.trace.xz",
        ],
        &["champ.trace.xz"],
    );
    // By its name alone, without an ending.
    assert!(
        in_folder(place, &["machine", "--machine", "mine"])
            .status
            .success()
    );
    assert_eq!(simulated(place, "prog+hmmer"), 2);
}

#[test]
fn folder_does_not_hide_a_name() {
    let place = folder();
    std::fs::create_dir(place.path().join("hmmer")).unwrap();
    assert_eq!(simulated(place.path(), "hmmer"), 1);
}

#[test]
fn counts_have_units_and_one_error_text_in_every_verb() {
    let place = folder();
    let place = place.path();
    let setup = ["-m", "power7", "-w", "hmmer"];
    let reference = [
        "simulate",
        "--fidelity",
        "reference",
        "-m",
        "power7",
        "-w",
        "gzip",
    ];
    for (verb, option) in [
        (
            &["simulate", "-m", "power7", "-w", "hmmer"][..],
            "--instructions",
        ),
        (&["simulate", "-m", "power7", "-w", "hmmer"], "--seed"),
        (
            &["compare", "-m", "power7", "-w", "hmmer", "-p", "linux"],
            "--runs",
        ),
        (&["map", "-m", "power7", "-w", "hmmer"], "--bound"),
        (&["train", "-m", "power8"], "--folds"),
        (&["profile", "--", "true"], "--skip"),
    ] {
        let wrong = format!("{option}=100x");
        let args = [&[verb[0], wrong.as_str()][..], &verb[1..]].concat();
        check_refused(place, &args, &[option, "for example 20000, 20_000, 20k"]);
    }
    let runs = [
        "compare", "-p", "linux", "--runs", "0.002k", "--alone", "10ms", "--format", "json",
    ];
    let output = in_folder(place, &[&runs[..], &setup].concat());
    assert_eq!(json(&output)["runs"], 2, "{}", stderr(&output));
    let traced = in_folder(
        place,
        &[
            &reference[..],
            &["--instructions", "2k", "--format", "json"],
        ]
        .concat(),
    );
    assert!(traced.status.success(), "{}", stderr(&traced));
    // It ends with the cycle in which the last of them commits.
    let measured = json(&traced)["programs"][0]["instructions"].as_f64();
    assert!(
        measured.is_some_and(|n| (2000.0..2100.0).contains(&n)),
        "{measured:?}"
    );
}
