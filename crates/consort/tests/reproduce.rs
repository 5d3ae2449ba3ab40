//! `consort reproduce`: the list, a study end to end, going on, published figures, bad input.

#![expect(clippy::unwrap_used, reason = "a test fails loudly")]

mod common;

use common::{check_refused_command, consort, folder, json, run, stderr, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Output, Stdio};

fn reproduce(out: &Path, more: &[&str]) -> Output {
    let output = run(consort()
        .arg("reproduce")
        .args(more)
        .args(["--quick", "--out"])
        .arg(out));
    assert!(output.status.success(), "{}", stderr(&output));
    output
}

fn document(out: &Path, more: &[&str]) -> Value {
    json(&reproduce(out, &[more, &["--format", "json"]].concat()))
}

/// Names and contents of a folder's files, without host times and the command at the foot of pages.
fn contents(out: &Path) -> BTreeMap<String, String> {
    let files = std::fs::read_dir(out).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, without_run(&std::fs::read_to_string(path).unwrap()))
    });
    files.collect()
}

/// What a file says of the study: not how long the run took, nor the command at the foot of a page.
fn without_run(text: &str) -> String {
    let Ok(mut value) = serde_json::from_str::<Value>(text) else {
        let lines = text.lines().filter(|line| !line.starts_with("<footer>"));
        return lines.collect::<Vec<_>>().join("\n");
    };
    if let Some(report) = value.get_mut("report") {
        report["seconds"].take();
    }
    value.to_string()
}

fn check_refused(args: &[&str], parts: &[&str]) {
    let folder = folder();
    let mut command = consort();
    command
        .current_dir(folder.path())
        .arg("reproduce")
        .args(args);
    check_refused_command(&mut command, parts);
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 0, "{args:?} wrote");
}

#[test]
fn the_list_names_every_study_with_its_source_and_time() {
    let listed = run(consort().args(["reproduce", "list", "--format", "json"]));
    let listed = json(&listed);
    let ids: Vec<&str> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|s| s["id"].as_str().unwrap())
        .collect();
    assert!(ids.starts_with(&["W1", "W2"]), "{ids:?}");
    for study in listed.as_array().unwrap() {
        assert!(study["full_seconds_hint"].as_u64().unwrap() > 0);
        assert!(
            ["title", "source", "original", "differs"]
                .iter()
                .all(|k| study[*k].is_string())
        );
    }
    let table = run(consort().args(["reproduce", "list", "--wide"]));
    let table = String::from_utf8(table.stdout).unwrap();
    for id in ids {
        let rows = table
            .lines()
            .filter(|line| line.split(' ').next() == Some(id));
        assert_eq!(rows.count(), 1, "{id}: {table}");
    }
    assert!(table.contains("Peternier"), "{table}");
}

/// The study's table of this key.
fn table<'a>(study: &'a Value, key: &str) -> &'a Value {
    let mut tables = study["tables"].as_array().unwrap().iter();
    tables.find(|table| table["key"] == key).unwrap()
}

#[test]
fn a_study_has_its_keys_and_files() {
    let folder = folder();
    let study = document(folder.path(), &["w2"]);
    assert_eq!(study["study"], "W2");
    assert_eq!(study["runs"], 2);
    assert!(study["seconds"].as_f64().unwrap() > 0.0);
    assert!(!study["notes"].as_array().unwrap().is_empty());
    assert_eq!(study["tables"][0]["key"], "headline");
    let table = table(&study, "profiles");
    assert_eq!(table["columns"].as_array().unwrap().len(), 4);
    let rows = table["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 19);
    let usage = |key: &str| {
        let row = rows.iter().find(|row| row["key"] == key).unwrap();
        row["bulldozer_fpu_usage"]["mean"].as_f64().unwrap()
    };
    assert!(usage("povray") > 3.0 * usage("gobmk"));
    let files = contents(folder.path());
    let keys = |field: &str| -> Vec<String> {
        let all = study[field].as_array().unwrap().iter();
        all.map(|one| one["key"].as_str().unwrap().to_owned())
            .collect()
    };
    for table in keys("tables") {
        assert!(files[&format!("W2-{table}.csv")].starts_with("key,"));
    }
    for figure in keys("figures") {
        let svg = &files[&format!("W2-{figure}.svg")];
        assert!(svg.starts_with("<svg") && files["W2.html"].contains(svg.trim_end()));
    }
    assert!(files["index.html"].contains("href=\"W2.html\""));
}

#[test]
fn counters_tell_the_two_products_apart() {
    let folder = folder();
    let study = document(folder.path(), &["W1"]);
    let rows = table(&study, "counters")["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 16);
    for row in rows {
        let usage = row["fpu_usage"]["mean"].as_f64().unwrap();
        let is_fp = row["key"].as_str().unwrap().contains("matmul-fp");
        assert_eq!(usage > 0.1, is_fp, "{row}");
    }
}

#[test]
fn any_number_of_jobs_gives_the_same_files() {
    let folders = [folder(), folder()];
    for (folder, jobs) in folders.iter().zip(["1", "3"]) {
        reproduce(folder.path(), &["W1", "W2", "--jobs", jobs]);
    }
    let [one, other] = folders.each_ref().map(|folder| contents(folder.path()));
    assert_eq!(one, other);
}

#[test]
fn several_studies_are_an_array_and_finished_ones_are_not_run_again() {
    let folder = folder();
    let first = document(folder.path(), &["W1"]);
    let both = document(folder.path(), &["W2", "W1"]);
    assert_eq!(both[0]["study"], "W2");
    // Host time tells: a study that ran again would have another one.
    assert_eq!(both[1], first);
    let shown = reproduce(folder.path(), &["W1"]);
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("finished earlier"), "{shown}");
    let index = &contents(folder.path())["index.html"];
    assert!(index.contains("W1.html") && index.contains("W2.html"));
    let other_seed = document(folder.path(), &["W1", "--seed", "9"]);
    assert_eq!(other_seed["seed"], 9);
    assert_ne!(other_seed["tables"], first["tables"]);
}

#[test]
fn first_table_has_published_figures_with_verdicts() {
    let folder = folder();
    let study = document(folder.path(), &["W2"]);
    let score = &study["reference"]["score"];
    assert_eq!(score["within_third"]["of"], 59);
    // Usage and misses are levels.
    assert_eq!(score["direction"]["of"], 0);
    let compared = study["reference"]["compared"].as_array().unwrap();
    assert_eq!(compared.len(), 59);
    let find = |name: &str| {
        compared
            .iter()
            .find(|one| one["published"] == name)
            .unwrap()
    };
    // The source's table 2 is per cycle, ours per 100 cycles.
    let misses = find("power7 L2 misses mcf");
    assert_eq!(
        (&misses["unit"], &misses["section"]),
        (&"per cycle".into(), &"table 2".into())
    );
    let rows = table(&study, "profiles")["rows"].as_array().unwrap();
    let mcf = rows.iter().find(|row| row["key"] == "mcf").unwrap();
    let per_100 = mcf["power7_l2_miss_rate"]["mean"].as_f64().unwrap();
    let ours = misses["ours"]["mean"].as_f64().unwrap();
    assert!((ours / per_100 - 0.01).abs() < 1e-9);

    let both = reproduce(folder.path(), &["W2", "W1"]);
    let shown = String::from_utf8(both.stdout).unwrap();
    let place = |text: &str| {
        shown
            .find(text)
            .unwrap_or_else(|| panic!("{text}: {shown}"))
    };
    let verdicts = place("Published and ours: direction 0 of 0, size within a third");
    assert!(verdicts < place("Headline results"));
    for heading in [
        "Published",
        "Ours",
        "Difference",
        "Within a third",
        "Source",
    ] {
        assert!(shown[verdicts..].contains(heading), "{heading}: {shown}");
    }
    let score = place("Published and ours over all studies: ");
    assert!(shown[score..].contains("power7 L2 misses mcf; "), "{shown}");
    let files = contents(folder.path());
    assert!(files["W2-reference.csv"].contains("power7 L2 misses mcf"));
    assert!(files["W2.html"].contains("Why published figures and ours disagree"));
    assert!(files["W2-published-share.svg"].starts_with("<svg"));
}

#[test]
fn published_figures_stand_beside_ours() {
    let folder = folder();
    let file = folder.path().join("published.csv");
    let row = "power7/smt4/matmul-fp/4";
    let lines =
        format!("study,row,column,value\nW1,{row},ipc,1.5\nW1,nothing,ipc,1\nW9,elsewhere,x,1\n");
    std::fs::write(&file, lines).unwrap();
    let out = folder.path().join("out");
    let reference = ["W1", "--reference", file.to_str().unwrap()];
    let study = document(&out, &reference);
    let compared = &study["reference"]["compared"][0];
    let ours = compared["ours"]["mean"].as_f64().unwrap();
    assert_eq!(compared["row"], row);
    assert_eq!(compared["difference"].as_f64().unwrap(), ours - 1.5);
    assert_eq!(study["reference"]["unmatched"][0]["line"], 3);
    let shown = reproduce(&out, &reference);
    assert!(stderr(&shown).contains("reference line 3 (W1, nothing, ipc)"));
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(
        shown.contains("Published and ours: direction 1 of 2") && shown.contains("Difference"),
        "{shown}"
    );
    let files = contents(&out);
    assert!(files["reference.csv"].contains(row) && files["W1.html"].contains("Published"));
}

#[test]
fn the_csv_form_can_serve_as_a_reference() {
    let folder = folder();
    let csv = reproduce(folder.path(), &["W1", "--format", "csv"]).stdout;
    let file = folder.path().join("ours.csv");
    std::fs::write(&file, csv).unwrap();
    let study = document(
        folder.path(),
        &["W1", "--reference", file.to_str().unwrap()],
    );
    let compared = study["reference"]["compared"].as_array().unwrap();
    // Of the table 64 numbers, of the headline value, interval and runs of four figures.
    assert_eq!(compared.len(), 64 + 12);
    assert!(compared.iter().all(|one| one["difference"] == 0.0));
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    check_refused(
        &["W22", "--out", "out"],
        &["unknown study 'W22'", "did you mean 'W2'?"],
    );
    check_refused(
        &["W1", "nonsense", "--out", "out"],
        &["unknown study 'nonsense'", "known: "],
    );
    check_refused(&["W1", "list"], &["'list' stands alone", "'W1'"]);
    check_refused(&[], &["<ID>"]);
    check_refused(&["W1", "--jobs", "0"], &["--jobs"]);
    check_refused(&["W1", "--out", "/dev/null/x"], &["/dev/null/x"]);
    check_refused(
        &["W1", "--out", "/proc"],
        &["cannot write to the folder /proc"],
    );
    check_refused(&["W1", "--reference", "gone.csv"], &["gone.csv"]);
}

#[test]
fn a_broken_reference_is_named_with_its_line() {
    let folder = folder();
    let file = folder.path().join("r.csv");
    std::fs::write(&file, "study,row,column,value\nW1,a,b,much\n").unwrap();
    check_refused(
        &["W1", "--out", "out", "--reference", file.to_str().unwrap()],
        &["r.csv, line 2", "'much' is not a number"],
    );
}

#[test]
fn an_interruption_leaves_what_was_finished() {
    let folder = folder();
    let mut child = consort()
        .args(["reproduce", "W1", "W2", "--jobs", "1", "--out"])
        .arg(folder.path())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let index = folder.path().join("index.html");
    wait_for("the first study", || index.exists().then_some(()));
    let pid = nix::unistd::Pid::from_raw(child.id().cast_signed());
    nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGINT).unwrap();
    child.wait().unwrap();
    let files = contents(folder.path());
    let whole = [
        "W1.html",
        "W1-counters.csv",
        "W1-cycles.svg",
        "W1-full.json",
    ];
    assert!(
        whole.iter().all(|name| !files[*name].is_empty()),
        "{:?}",
        files.keys()
    );
    let kept: Value = serde_json::from_str(&files["W1-full.json"]).unwrap();
    assert_eq!(kept["report"]["study"], "W1");
    assert!(files["index.html"].contains("W1.html"));
}

/// A study of one's own, as small as can be.
const OWN: &str = r#"id = "mine"
title = "Two programs"
source = "notes"
section = "page 1"
original = "Two programs."
differs = "Simulated."
seed = 3
full_seconds = 1

[experiments.pair]
machine = "core2-q9550"
policies = ["linux", "random"]
alone_s = { quick = 0.05, full = 0.05 }
runs = { quick = 2, full = 2 }
cases = [{ workload = "2*hmmer+2*mcf" }]

[[headline]]
rows = [{ row = "random over linux", unit = "gain", measure = "stp", policy = "random", over = "linux" }]

[[tables]]
key = "policies"
title = "Throughput"
policies = ["linux", "random"]
row = "{policy}"
columns = [{ measure = "stp" }, { measure = "antt", view = "mean" }]
"#;

#[test]
fn a_study_of_one_s_own_runs_from_its_file_and_is_resumed() {
    let folder = folder();
    let file = folder.path().join("own.toml");
    std::fs::write(&file, OWN).unwrap();
    let (file, out) = (file.to_str().unwrap(), folder.path().join("out"));
    let study = |more: &[&str]| document(&out, &[&[file], more].concat());
    let document = study(&[]);
    assert_eq!(document["study"], "mine");
    assert_eq!(
        (&document["runs"], &document["seed"]),
        (&2.into(), &3.into())
    );
    assert_eq!(document["tables"][0]["rows"][0]["key"], "random over linux");
    let rows = document["tables"][1]["rows"].as_array().unwrap();
    let stp: Vec<f64> = rows
        .iter()
        .map(|r| r["stp"]["mean"].as_f64().unwrap())
        .collect();
    assert!(stp.len() == 2 && stp.iter().all(|stp| (1.0..4.1).contains(stp)));
    for name in ["mine.html", "mine-policies.csv", "index.html"] {
        assert!(out.join(name).is_file(), "{name}");
    }
    let index = std::fs::read_to_string(out.join("index.html")).unwrap();
    assert!(index.contains("mine.html"));
    // Host time tells: a study that ran again would have another one.
    assert_eq!(study(&[]), document);
    // Another file is another study, whatever its id.
    std::fs::write(
        file,
        OWN.replace("runs = { quick = 2", "runs = { quick = 3"),
    )
    .unwrap();
    assert_eq!(study(&[])["runs"], 3);
}

/// The study with one text in place of another is refused at this line and key.
fn check_own_refused(text: &str, instead: &str, parts: &[&str]) {
    assert!(OWN.contains(text), "{text}");
    let folder = folder();
    let file = folder.path().join("own.toml");
    std::fs::write(&file, OWN.replacen(text, instead, 1)).unwrap();
    let parts = [parts, &["own.toml:"]].concat();
    check_refused(&[file.to_str().unwrap(), "--out", "out"], &parts);
}

#[test]
fn what_is_wrong_in_a_study_of_one_s_own_is_named_with_file_line_and_key() {
    let unknown = "unknown policy 'workovr'";
    let key = ":12: experiments.pair.policies[1]: ";
    check_own_refused("\"random\"]", "\"workovr\"]", &[key, unknown, "'workover'"]);
    let view = [":25: tables[0].columns[1].view: ", "middle", "geometric"];
    check_own_refused("\"mean\"", "\"middle\"", &view);
    check_own_refused(
        "row = \"{policy}\"",
        "rwo = \"x\"",
        &[":24: tables[0].rwo: "],
    );
    let measure = [":25: tables[0].columns[0].measure: ", "did you mean 'stp'?"];
    check_own_refused("{ measure = \"stp\" }", "{ measure = \"sttp\" }", &measure);
    let other = [
        ":23: tables[0].policies[0]: ",
        "policy of this study 'hrrs'",
    ];
    check_own_refused(
        "policies = [\"linux\", \"random\"]\nrow",
        "policies = [\"hrrs\"]\nrow",
        &other,
    );
    let machine = [
        ":11: experiments.pair.machine: ",
        "core2-q9551",
        "'core2-q9550'",
    ];
    check_own_refused("core2-q9550", "core2-q9551", &machine);
    let program = [
        ":15: experiments.pair.cases[0].workload: ",
        "unknown program 'mfc'",
    ];
    check_own_refused("2*mcf", "2*mfc", &program);
    check_own_refused("id = \"mine\"", "id = \"A6\"", &["comes with Consort"]);
    check_refused(&["./none.toml"], &["./none.toml: "]);
}
