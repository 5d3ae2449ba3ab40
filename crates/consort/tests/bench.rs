//! `consort bench`: the list, the rows, bad names. Nothing here depends on how fast the host is.

mod common;

use common::{consort, json, run, stderr};

#[test]
fn the_list_names_every_policy_and_runs_nothing() {
    let listed = json(&run(consort().args(["bench", "--list", "--format", "json"])));
    let has = |name: &str| listed.as_array().unwrap().iter().any(|b| b["name"] == name);
    for name in [
        "simulate-power8-100ms",
        "simulate-acmp-1ms",
        "reuse",
        "solve",
        "quantum",
    ] {
        assert!(has(name), "{name}");
    }
    let policies = json(&run(consort().args(["policies", "--format", "json"])));
    for policy in policies.as_array().unwrap() {
        let name = format!("decide-{}", policy["name"].as_str().unwrap());
        assert!(has(&name), "{name}");
    }
}

#[test]
fn rows_have_their_keys_and_positive_values() {
    let quick = [
        "bench",
        "simulate-acmp-1ms",
        "decide-random",
        "--quick",
        "--format",
        "json",
    ];
    let rows = json(&run(consort().args(quick)));
    let names: Vec<&str> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["name"].as_str().unwrap())
        .collect();
    let expected = [
        "simulate-acmp-1ms",
        "decide-random-80",
        "decide-random-1024",
    ];
    assert_eq!(names, expected);
    for row in rows.as_array().unwrap() {
        assert!(row["value"].as_f64().unwrap() > 0.0, "{row}");
        assert!(row["unit"].is_string() && row["n"] == 3, "{row}");
        assert!(row["low"].as_f64() <= row["high"].as_f64(), "{row}");
    }
    assert_eq!(rows[0]["target"], 5e11);
}

#[test]
fn the_table_says_what_its_figures_are_of() {
    let output = run(consort().args(["bench", "reuse", "--quick"]));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.starts_with("name"), "{table}");
    assert!(
        table.contains("reuse-acmp-1ms") && table.contains("on this host"),
        "{table}"
    );
}

#[test]
fn an_unknown_bench_is_answered_with_the_nearest_and_nothing_runs() {
    let output = run(consort().args(["bench", "solve", "simulate-acmp-2ms"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let line = stderr(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.contains("did you mean 'simulate-acmp-1ms'?"), "{line}");
}
