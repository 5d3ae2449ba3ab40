//! `consort validate`: its keys, its groups, bad input.

mod common;

use common::{consort, folder, json, run, stderr};
use serde_json::Value;

fn validate(more: &[&str]) -> Value {
    let args = [&["validate", "--quick", "--format", "json"], more].concat();
    let output = run(consort().args(args));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    json(&output)
}

#[test]
fn every_check_has_its_keys_and_every_group_its_line() {
    let all = validate(&[]);
    let checks = all["checks"].as_array().unwrap();
    for check in checks {
        for key in [
            "group",
            "id",
            "what",
            "source",
            "unit",
            "error_kind",
            "note",
        ] {
            assert!(check[key].is_string(), "{key} in {check}");
        }
        assert!(check["published"].is_object(), "{check}");
        assert!(
            check["ours"].is_f64() && check["agrees"].is_boolean(),
            "{check}"
        );
    }
    let summary = all["summary"].as_array().unwrap();
    let groups: Vec<&str> = summary
        .iter()
        .map(|g| g["group"].as_str().unwrap())
        .collect();
    assert_eq!(
        groups,
        [
            "consistency",
            "independent",
            "conservation",
            "placement",
            "smt",
            "speed"
        ]
    );
    for group in summary {
        let of = |key: &str| group[key].as_u64().unwrap();
        assert!(of("checks") > 0, "{group}");
        assert_eq!(of("agree") + of("disagree"), of("checks"), "{group}");
    }
    let disagree = checks.iter().filter(|c| c["agrees"] == false).count();
    assert_eq!(all["disagreements"].as_array().unwrap().len(), disagree);
}

#[test]
fn the_fast_engine_stands_beside_the_reference_in_one_object() {
    let folder = folder();
    let out = folder.path().join("made/here");
    let document = validate(&["--group", "reference", "-o", out.to_str().unwrap()]);
    for key in [
        "stp_error_mean",
        "antt_error_mean",
        "slowdown_error_mean",
        "rank_correlation",
        "best_over_random_fast",
        "best_over_random_reference",
    ] {
        assert!(document["reference"][key].is_f64(), "{key}");
    }
    assert!(document["reference"]["pairs"].as_u64() > Some(0));
    for file in [
        "reference-cases.csv",
        "reference-worst.csv",
        "reference.svg",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
}

#[test]
fn same_seed_same_bytes_for_any_number_of_workers() {
    let with = |jobs: &str| {
        validate(&[
            "--group",
            "placement",
            "--group",
            "conservation",
            "--jobs",
            jobs,
        ])
    };
    assert_eq!(with("1"), with("3"));
}

#[test]
fn the_page_names_disagreements_in_sentences_and_still_succeeds() {
    let output = run(consort().args(["validate", "--quick", "--group", "consistency"]));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let page = String::from_utf8(output.stdout).unwrap();
    // Without prefetchers streams run a third too fast (docs/research/profiles-of-programs.md); that stays listed.
    assert!(page.contains("Disagreements ("), "{page}");
    assert!(
        page.contains("- consistency/cpi-mean/off: CPI of 29 programs"),
        "{page}"
    );
    assert!(
        page.contains("sources:") && page.contains("Summary"),
        "{page}"
    );
    assert!(page.contains("A disagreement is a finding"), "{page}");
}

#[test]
fn csv_has_a_line_per_check() {
    let output = run(consort().args([
        "validate",
        "--quick",
        "--group",
        "placement",
        "--format",
        "csv",
    ]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("group,id,what,source,unit,published,ours,error,agrees,note\n"));
    assert_eq!(text.lines().count(), 37);
}

#[test]
fn an_unknown_group_is_refused_with_the_nearest() {
    let output = run(consort().args(["validate", "--group", "independant"]));
    let line = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{line}");
    assert_eq!(
        line,
        "consort: unknown group 'independant'; did you mean 'independent'?\n"
    );
    assert!(output.stdout.is_empty());
}
