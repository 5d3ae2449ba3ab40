//! `consort train`: keys, sameness, files, bad input.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{check_refused, consort, folder, json, run, stderr};
use serde_json::Value;
use std::path::Path;

const PROGRAMS: &str = "hmmer,mcf,povray,gcc,lbm,gobmk,namd,milc";

/// A short training on simulated pairs.
fn short(more: &[&str]) -> Vec<String> {
    let args = ["train", "-m", "power8", "-p", PROGRAMS, "--seconds", "1s"];
    let args = args.iter().chain(more).map(|arg| (*arg).to_owned());
    args.collect()
}

fn trained(more: &[&str]) -> Vec<u8> {
    let args = short(&[more, &["--format", "json"]].concat());
    let output = run(consort().args(args).env("SOURCE_DATE_EPOCH", "1000000000"));
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

fn check_error(error: &Value) {
    let (mean, p95) = (&error["mean_abs"], &error["p95"]);
    // Shares, so far below 1 for a model that is of use, and not 0 under read noise.
    assert!((1e-6..1.0).contains(&mean.as_f64().unwrap()), "{mean}");
    assert!(p95.as_f64().unwrap() >= mean.as_f64().unwrap());
    let bins = error["histogram"].as_array().unwrap();
    let counts = bins.iter().map(|bin| bin["count"].as_u64().unwrap());
    assert_eq!(counts.sum::<u64>(), error["count"].as_u64().unwrap());
    assert!(bins[0]["from"].is_null() && bins[0]["to"].is_f64());
}

#[test]
fn a_training_has_its_keys() {
    let document: Value = serde_json::from_slice(&trained(&["--ways", "2,4"])).unwrap();
    assert_eq!(document["machine"], "power8");
    assert!(document["model_file"].is_null());
    for key in ["forward_error", "inverse_error", "held_out_error"] {
        check_error(&document[key]);
    }
    let components = document["components"].as_array().unwrap();
    assert!(components.len() >= 4);
    for component in components {
        assert!(component["name"].is_string());
        for key in ["alpha", "beta", "gamma", "delta"] {
            assert!(component[key].is_f64(), "{key}");
        }
    }
    let levels = document["levels"].as_array().unwrap();
    let ways: Vec<_> = levels.iter().map(|l| l["ways"].as_u64().unwrap()).collect();
    assert_eq!(ways, [2, 4]);
    assert_eq!(levels[0]["components"], document["components"]);
}

#[test]
fn the_same_seed_gives_the_same_bytes_for_any_number_of_workers() {
    let one = trained(&["--ways", "2", "--jobs", "1"]);
    assert_eq!(one, trained(&["--ways", "2", "--jobs", "3"]));
    assert_ne!(one, trained(&["--ways", "2", "--seed", "2"]));
}

#[test]
fn a_model_file_is_written_whole_and_never_replaced_unasked() {
    let folder = folder();
    let file = folder.path().join("mine.toml");
    let name = file.to_str().unwrap();
    let document: Value =
        serde_json::from_slice(&trained(&["--ways", "2", "--out", name])).unwrap();
    assert_eq!(document["model_file"], name);
    let text = std::fs::read_to_string(&file).unwrap();
    for part in ["mine", "power8", "2001-09-09", "seed 1", "hmmer"] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
    let again = short(&["--ways", "2", "--out", name]);
    let again: Vec<&str> = again.iter().map(String::as_str).collect();
    check_refused(&again, &["mine.toml exists", "--force"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    std::fs::write(&file, "old").unwrap();
    trained(&["--ways", "2", "--force", "--out", name]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    assert_eq!(entries(folder.path()), 1);
}

fn entries(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

#[test]
fn measured_rows_give_a_model_with_its_interaction() {
    let folder = folder();
    let out = folder.path().join("host.toml");
    let rows = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/pairs.csv");
    let args = [
        "train",
        "--rows",
        rows,
        "--machine",
        "my-host",
        "--format",
        "json",
        "--out",
    ];
    let output = run(consort().args(args).arg(&out));
    assert!(output.status.success(), "{}", stderr(&output));
    let document = json(&output);
    assert_eq!(document["machine"], "my-host");
    // The file has slowdowns by a model with three decimals.
    assert!(
        document["held_out_error"]["mean_abs"].as_f64().unwrap() < 0.01,
        "{document:#}"
    );
    assert_eq!(document["inverse_error"]["count"], 0);
    let variance = &document["variance"];
    let share = |side: &str, part: &str| variance[side][part].as_f64().unwrap();
    for side in ["measured", "model"] {
        let sum = share(side, "victim") + share(side, "co_runner") + share(side, "interaction");
        assert!((sum - 1.0).abs() < 1e-9, "{variance:#}");
    }
    assert!(
        variance["interaction_r2"].as_f64().unwrap() > 0.9,
        "{variance:#}"
    );
    let text = std::fs::read_to_string(&out).unwrap();
    assert!(text.contains("measured rows"), "{text}");
    let components = ["--components", "/no/such.csv"];
    check_refused(
        &[&["train", "--rows", rows], &components[..]].concat(),
        &["/no/such.csv"],
    );
    check_refused(
        &["train", "--rows", rows, "-p", "mcf"],
        &["--programs", "leave out"],
    );
}

#[test]
fn bad_input_is_one_line_and_writes_nothing() {
    let folder = folder();
    let file = folder.path().join("model.toml");
    let out = ["--out", file.to_str().unwrap()];
    let check = |args: &[&str], parts: &[&str]| {
        check_refused(&[&["train"], args, &out].concat(), parts);
        assert_eq!(entries(folder.path()), 0, "{args:?}");
    };
    check(
        &["-m", "power8", "-p", "hmner"],
        &["hmner", "did you mean 'hmmer'?"],
    );
    check(&["-m", "powr8"], &["powr8", "power8"]);
    check(
        &["-m", "power8", "-p", "hmmer,mcf,povray"],
        &["3 training programs are too few", "at least 5 are needed"],
    );
    check(&["-m", "power8:smt=1"], &["one CPU each", "no co-runners"]);
    check(
        &["-m", "power8:smt=2", "--ways", "4"],
        &["2 CPUs", "use 2 to 2"],
    );
    check(
        &["-m", "power8", "--seconds", "200ms"],
        &["too short", "at least"],
    );
    check(&["-m", "xeon-e5320"], &["no co-runners"]);
    check(&["-p", "itn"], &["itn", "did you mean 'int'?"]);
    check(&["--as-siblings", "0,0"], &["two different CPUs"]);
    check(&["--as-siblings", "0,4000"], &["CPU 4000", "usable are"]);
    check(&["--ways", "4"], &["pairs"]);
}

/// The reason why nothing can be trained on CPUs 0 and 1 here; `None` if it can.
fn missing_for_live_training() -> Option<&'static str> {
    let host = json(&run(consort().args(["machine", "--format", "json"])));
    let pus = host["pus"].as_u64().unwrap();
    if pus < 2 || host["allowed_pus"] != format!("0-{}", pus - 1) {
        return Some("this needs CPUs 0 and 1");
    }
    let offers = |tier: &Value| {
        let signals = tier["signals"].as_array().unwrap();
        tier["available"] == true && signals.iter().any(|s| s == "cycle-stack")
    };
    let has_stacks = host["tiers"].as_array().unwrap().iter().any(offers);
    (!has_stacks).then_some("no tier measures cycle stacks here")
}

#[test]
fn commands_give_rows_and_a_model() {
    if let Some(reason) = missing_for_live_training() {
        return common::skipped(reason);
    }
    let folder = folder();
    let (data, rows) = (folder.path().join("data"), folder.path().join("rows.csv"));
    std::fs::write(&data, vec![b'x'; 20_000_000]).unwrap();
    let loops = "i=0; while [ $i -lt 60000 ]; do i=$((i+1)); done";
    let read = |program: &str| format!("{program} {0} {0}", data.display());
    let commands = [
        format!("sh -c '{loops}'"),
        read("sha256sum"),
        read("md5sum"),
        read("sha512sum"),
        read("wc -l -w"),
    ];
    let mut training = consort();
    training.args(["train", "--as-siblings", "0,1", "--quick"]);
    training
        .args(["--format", "json", "--save-rows"])
        .arg(&rows);
    for command in &commands {
        training.arg("--command").arg(command);
    }
    let output = run(&mut training);
    // The rows are there even if they determine no model, which depends on what was sampled.
    let text = std::fs::read_to_string(&rows).unwrap();
    let head = "program,corunner,slowdown,";
    assert!(text.starts_with(head), "{text} {}", stderr(&output));
    let count = text.lines().count() - 1;
    assert!((1..=30).contains(&count), "{text}");
    for line in text.lines().skip(1) {
        let slowdown: f64 = line.split(',').nth(2).unwrap().parse().unwrap();
        assert!(slowdown > 0.0 && slowdown.is_finite(), "{line}");
    }
    if output.status.code() == Some(2) {
        return common::skipped(&stderr(&output));
    }
    let document = json(&output);
    let source = document["source"].as_str().unwrap();
    assert!(source.contains("5 commands in 15 pairs"), "{source}");
    assert!(source.contains("once alone and together"), "{source}");
    assert_eq!(document["levels"][0]["rows"], count);
    // The model of the rows is that of the runs.
    let again = run(consort()
        .args(["train", "--format", "json", "--rows"])
        .arg(&rows));
    assert!(again.status.success(), "{}", stderr(&again));
    let (one, other) = (&document["levels"][0], &json(&again)["levels"][0]);
    let error = |level: &Value| level["forward_error"]["mean_abs"].as_f64().unwrap();
    assert!((error(one) - error(other)).abs() < 1e-6, "{one} {other}");
}

#[test]
fn commands_that_cannot_be_measured_are_refused() {
    let five = |last: &'static str| {
        let mut args = vec!["train", "--as-siblings", "0,1"];
        for command in ["true", "sh -c 'true'", "true a", "true b", last] {
            args.extend(["--command", command]);
        }
        args
    };
    check_refused(
        &five("no-such-program-here"),
        &["no program no-such-program-here"],
    );
    check_refused(&["train", "--command", "true"], &["too few", "at least 5"]);
    check_refused(
        &["train", "-m", "power8", "--command", "true"],
        &["--command is for the live machine"],
    );
    if let Some(reason) = missing_for_live_training() {
        return common::skipped(reason);
    }
    let output = run(consort().args(five("sh -c 'exit 3'")));
    let text = stderr(&output);
    assert!(!output.status.success(), "{text}");
    assert!(text.contains("sh#2 ended with exit code 3"), "{text}");
}

#[test]
fn kernels_on_two_pus_of_this_machine_give_a_model() {
    if let Some(reason) = missing_for_live_training() {
        return common::skipped(reason);
    }
    let output = run(consort().args([
        "train",
        "--as-siblings",
        "0,1",
        "-p",
        "int,fp,vector,branchy,bigcode,stream",
        "--quick",
        "--format",
        "json",
    ]));
    if output.status.code() == Some(2) {
        // Which rows there are depends on how busy the host is; refusing them is right.
        return common::skipped(&stderr(&output));
    }
    let document = json(&output);
    assert!(
        document["source"]
            .as_str()
            .unwrap()
            .contains("as if they shared a core")
    );
    assert_eq!(document["levels"][0]["ways"], 2);
    assert!(document["levels"][0]["rows"].as_u64().unwrap() > 4);
    check_error(&document["held_out_error"]);
}
