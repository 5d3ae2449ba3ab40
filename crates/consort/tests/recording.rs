//! Recordings of real commands: replayed, simulated, read by others, and what a kill leaves.

mod common;

use common::{consort, folder, json, run, skipped, stderr, wait_for, warnings};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Records two busy shells for about a second.
fn record(path: &Path) -> serde_json::Value {
    let script = "i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done & \
                  i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; wait";
    let output = run(consort()
        .args([
            "record",
            "--interval",
            "50ms",
            "--policy",
            "spread",
            "--format",
            "json",
            "-o",
        ])
        .arg(path)
        .args(["--", "sh", "-c", script]));
    assert!(output.status.success(), "{}", stderr(&output));
    json(&output)
}

#[test]
fn what_was_recorded_is_replayed_and_simulated_elsewhere() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    let report = record(&path);
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o600, "it contains command lines");
    assert_eq!(warnings(&report), [""; 0], "{report:#}");
    let replayed = run(consort()
        .arg("replay")
        .arg(&path)
        .args(["--format", "json"]));
    assert!(replayed.status.success(), "{}", stderr(&replayed));
    let replayed = json(&replayed);
    assert_eq!(replayed["quanta"], report["plans"]);
    assert_eq!(replayed["policy"], "spread");
    // The same policy with the same seed, fed with what it saw then.
    if let Some(agreement) = replayed["agreement"].as_f64() {
        assert!((agreement - 1.0).abs() < 1e-9, "{replayed:#}");
    }
    let none = run(consort()
        .arg("replay")
        .arg(&path)
        .args(["--policy", "none", "--format", "json"]));
    assert_eq!(json(&none)["changes"], 0);
    let elsewhere = run(consort().arg("what-if").arg(&path).args([
        "--machine",
        "core-i7-6700",
        "--policies",
        "linux,spread",
        "--runs",
        "2",
        "--format",
        "json",
    ]));
    assert!(elsewhere.status.success(), "{}", stderr(&elsewhere));
    let elsewhere = json(&elsewhere);
    assert_eq!(
        elsewhere["comparison"]["results"].as_array().unwrap().len(),
        2
    );
    assert_eq!(elsewhere["stands"][0]["name"], "sh", "{elsewhere:#}");
    let share = |key: &str| elsewhere[key].as_f64().unwrap();
    let simulated: f64 = 1.0 - share("dropped_share");
    assert!((share("guessed_share") - simulated).abs() < 1e-9 && simulated > 0.5);
}

/// The Python that `.ci/install-tables` made, where it has.
fn python_with_tables() -> Option<PathBuf> {
    let place = match (
        std::env::var_os("CONSORT_TABLES_VENV"),
        std::env::var_os("XDG_CACHE_HOME"),
    ) {
        (Some(place), _) => PathBuf::from(place),
        (None, Some(cache)) => PathBuf::from(cache).join("consort/tables"),
        (None, None) => PathBuf::from(std::env::var_os("HOME")?).join(".cache/consort/tables"),
    };
    Some(place.join("bin/python")).filter(|python| python.exists())
}

#[test]
fn pages_and_timelines_are_whole_and_need_no_other_file() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    let (recording, run_page) = (at("r.parquet"), at("run.html"));
    let script = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    let recorded = run(consort()
        .args(["record", "--interval", "50ms", "-o"])
        .arg(&recording)
        .arg("--report-html")
        .arg(&run_page)
        .args(["--", "sh", "-c", script]));
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let replayed = run(consort()
        .arg("replay")
        .arg(&recording)
        .args(["--policy", "spread", "--report-html"])
        .arg(at("replay.html"))
        .arg("--timeline")
        .arg(at("timeline.json")));
    assert!(replayed.status.success(), "{}", stderr(&replayed));
    let simulated = run(consort()
        .arg("what-if")
        .arg(&recording)
        .args(["--machine", "power8", "--policies", "linux,random"])
        .args(["--runs", "2", "--report-html"])
        .arg(at("if.html")));
    assert!(simulated.status.success(), "{}", stderr(&simulated));
    for (page, holds) in [("run", "Run of sh"), ("replay", "spread on"), ("if", "STP")] {
        let page = std::fs::read_to_string(at(&format!("{page}.html"))).unwrap();
        assert!(
            page.contains(holds) && page.ends_with("</html>\n"),
            "{holds}"
        );
        assert!(!page.contains("<link") && !page.contains("src="), "{holds}");
    }
    let text = std::fs::read_to_string(at("timeline.json")).unwrap();
    let timeline: serde_json::Value = serde_json::from_str(&text).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let slices: Vec<_> = events.iter().filter(|e| e["ph"] == "X").collect();
    assert!(slices.len() > 3, "{text}");
    assert!(slices.iter().all(|e| e["dur"].as_f64().unwrap() > 0.0));
    let refused = run(consort()
        .arg("replay")
        .arg(&recording)
        .args(["--timeline", "/nowhere/t.json"]));
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
fn others_read_it_as_parquet() {
    let Some(python) = python_with_tables() else {
        return skipped("no pandas and DuckDB here (.ci/install-tables)");
    };
    let folder = folder();
    let path = folder.path().join("r.parquet");
    let report = record(&path);
    let script = "import sys, duckdb, pandas, polars\n\
        path = sys.argv[1]\n\
        table = pandas.read_parquet(path)\n\
        assert {'time_ns', 'tid', 'cpu_ns', 'placed', 'class'} <= set(table.columns)\n\
        plans, cpu_ns = duckdb.sql(f\"select count(distinct plan), sum(cpu_ns) from '{path}'\").fetchall()[0]\n\
        assert plans == table['plan'].nunique() and cpu_ns == table['cpu_ns'].sum()\n\
        assert cpu_ns == polars.read_parquet(path)['cpu_ns'].sum()\n\
        print(plans, cpu_ns / 1e9)";
    let python = run(Command::new(python).args(["-c", script]).arg(&path));
    assert!(python.status.success(), "{}", stderr(&python));
    let reported = String::from_utf8(python.stdout).unwrap();
    let mut reported = reported.split_whitespace();
    assert_eq!(reported.next().unwrap(), report["plans"].to_string());
    let cpu_s: f64 = reported.next().unwrap().parse().unwrap();
    assert!(cpu_s > 0.1, "{cpu_s}");
}

#[test]
fn a_killed_recording_is_read_up_to_its_last_part() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    let mut child = consort()
        .args(["record", "--interval", "20ms", "-o"])
        .arg(&path)
        // Ends with the folder, which the test removes.
        .args(["--", "sh", "-c", "while [ -d \"$0\" ]; do :; done"])
        .arg(folder.path())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let parts = folder.path().join("r.parquet.parts");
    wait_for("a part", || {
        parts.join("000000.parquet").exists().then_some(())
    });
    child.kill().unwrap();
    child.wait().unwrap();
    let replayed = run(consort()
        .arg("replay")
        .arg(&parts)
        .args(["--format", "json"]));
    assert!(replayed.status.success(), "{}", stderr(&replayed));
    assert!(json(&replayed)["quanta"].as_u64().unwrap() > 10);
    let again = run(consort()
        .args(["record", "-o"])
        .arg(&path)
        .args(["--", "true"]));
    assert_eq!(again.status.code(), Some(2));
    assert!(
        stderr(&again).contains("was not finished"),
        "{}",
        stderr(&again)
    );
}

#[test]
fn where_nothing_can_be_written_nothing_is_started() {
    let folder = folder();
    let mark = folder.path().join("mark");
    let output = run(consort()
        .args(["record", "-o", "/proc/r.parquet", "--", "touch"])
        .arg(&mark));
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("/proc/r.parquet"),
        "{}",
        stderr(&output)
    );
    assert!(!mark.exists());
}

#[test]
fn bad_input_is_one_line_that_says_what_would_be_right() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    record(&path);
    let refused = |args: &[&str]| {
        let output = run(consort().args(args));
        assert_eq!(
            output.status.code(),
            Some(2),
            "{args:?}: {}",
            stderr(&output)
        );
        stderr(&output)
    };
    let file = path.to_str().unwrap();
    assert!(refused(&["replay", file, "--policy", "sprad"]).contains("spread"));
    let machine = refused(&["what-if", file, "--machine", "live", "--policies", "linux"]);
    assert!(machine.contains("cannot be simulated"), "{machine}");
    let profile = [
        "what-if",
        file,
        "-m",
        "core-i7-6700",
        "-p",
        "linux",
        "--profile",
    ];
    assert!(refused(&[&profile[..], &["x"]].concat()).contains("NAME=FILE"));
    std::fs::write(folder.path().join("x.toml"), "").unwrap();
    let named = format!("shh={}", folder.path().join("x.toml").display());
    assert!(refused(&[&profile[..], &[named.as_str()]].concat()).contains("no recorded thread"));
    assert!(refused(&["replay", "/dev/null"]).contains("no ordinary file"));
}

#[test]
fn existing_recording_is_kept_unless_forced() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    let ran = folder.path().join("ran");
    std::fs::write(&path, "mine").unwrap();
    let record = |more: &[&str]| {
        let mut command = consort();
        command.args([
            "record",
            "--no-daemon",
            "--quiet",
            "--interval",
            "20ms",
            "-o",
        ]);
        command
            .arg(&path)
            .args(more)
            .args(["--", "touch"])
            .arg(&ran);
        run(&mut command)
    };
    let refused = record(&[]);
    assert_eq!(refused.status.code(), Some(2), "{}", stderr(&refused));
    let line = stderr(&refused);
    assert!(
        line.contains("r.parquet exists; --force replaces it"),
        "{line}"
    );
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "mine");
    assert!(!ran.exists(), "the command was run");
    let forced = record(&["--force"]);
    assert!(
        forced.status.success() && ran.exists(),
        "{}",
        stderr(&forced)
    );
}

#[test]
fn threads_that_what_if_drops_are_named() {
    let folder = folder();
    let path = folder.path().join("r.parquet");
    // A busy shell, and a second one that sleeps beside it from beginning to end.
    let script = "sleep 60 & i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; kill $!";
    let recorded = run(consort()
        .args([
            "record",
            "--no-daemon",
            "--quiet",
            "--interval",
            "20ms",
            "-o",
        ])
        .arg(&path)
        .args(["--", "sh", "-c", script]));
    assert!(recorded.status.success(), "{}", stderr(&recorded));
    let what_if = |format: &str| {
        let output = run(consort().arg("what-if").arg(&path).args([
            "--machine",
            "power8",
            "--policies",
            "linux",
            "--runs",
            "2",
            "--format",
            format,
        ]));
        assert!(output.status.success(), "{}", stderr(&output));
        output
    };
    let document = json(&what_if("json"));
    let dropped = document["dropped"].as_array().unwrap();
    let sleep = dropped.iter().find(|group| group["name"] == "sleep");
    let sleep = sleep.unwrap_or_else(|| panic!("{document:#}"));
    assert_eq!(sleep["threads"], 1);
    assert!(!sleep["why"].as_str().unwrap().is_empty());
    // By hand, from the CPU times of the groups.
    let cpu_s = |key: &str| -> f64 {
        let groups = document[key].as_array().unwrap().iter();
        groups.map(|group| group["cpu_s"].as_f64().unwrap()).sum()
    };
    let share = cpu_s("dropped") / (cpu_s("dropped") + cpu_s("stands"));
    assert!((document["dropped_share"].as_f64().unwrap() - share).abs() < 1e-9);
    let nothing = document["nothing_to_decide"].as_str().unwrap();
    assert!(nothing.contains("on 10 alike cores"), "{nothing}");
    let text = String::from_utf8(what_if("table").stdout).unwrap();
    for part in [
        "Not simulated: ",
        "sleep",
        "% of the recorded CPU time: ",
        "Nothing to decide: ",
    ] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
}
