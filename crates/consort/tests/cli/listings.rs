//! `consort list`, its older spellings, the plain names of policies, and the glossary.

use crate::check_refused;
use crate::common::{consort, json, run, stderr};

fn stdout(args: &[&str]) -> String {
    let output = run(consort().args(args));
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).expect("output is text")
}

#[test]
fn older_spellings_print_the_same() {
    let pairs: [(&[&str], &[&str]); 11] = [
        (&["list", "policies"], &["policies"]),
        (
            &["list", "policies", "--format", "csv"],
            &["policies", "--format", "csv"],
        ),
        (&["list", "programs"], &["programs"]),
        (
            &["list", "programs", "--suite", "splash2"],
            &["programs", "--suite", "splash2"],
        ),
        (&["list", "programs", "hmmer"], &["programs", "hmmer"]),
        (&["list", "schemas", "study"], &["schema", "study"]),
        (&["list", "studies"], &["reproduce", "list"]),
        (&["list", "machines"], &["machine", "--list"]),
        (
            &["list", "machines", "power7:smt=2"],
            &["machine", "--machine", "power7:smt=2"],
        ),
        (
            &["list", "machines", "power7:smt=2"],
            &["machine", "power7:smt=2"],
        ),
        (&["list", "benches"], &["bench", "--list"]),
    ];
    for (now, before) in pairs {
        assert_eq!(stdout(now), stdout(before), "{now:?}");
    }
}

#[test]
fn one_item_is_one_json_object() {
    for (args, key) in [
        (["list", "machines", "power8"], "sources"),
        (["list", "programs", "hmmer"], "phase"),
        (["list", "policies", "workover"], "options"),
        (["list", "studies", "w3"], "differs"),
        (["list", "schemas", "machine"], "properties"),
    ] {
        let output = run(consort().args(args).args(["--format", "json"]));
        assert!(!json(&output)[key].is_null(), "{args:?}");
    }
}

#[test]
fn unknown_items_get_the_nearest_name() {
    check_refused(&["list"], &["consort list needs one of machines, programs"]);
    check_refused(
        &["list", "polcies"],
        &["of consort list", "did you mean 'policies'"],
    );
    check_refused(
        &["list", "policies", "workovr"],
        &["did you mean 'workover'"],
    );
    check_refused(&["list", "schemas", "machin"], &["did you mean 'machine'"]);
    check_refused(
        &["list", "studies", "W99"],
        &["unknown study 'W99'; known: W1"],
    );
    check_refused(&["list", "benches", "slove-16"], &["slove-16"]);
}

#[test]
fn citation_stands_once_per_source() {
    let text = stdout(&["list", "studies"]);
    assert_eq!(text.matches("Peternier, Ansaloni").count(), 1, "{text}");
    assert!(text.lines().count() < 160, "{text}");
}

#[test]
fn policies_say_what_can_run_here() {
    let document = json(&run(
        consort().args(["list", "policies", "--format", "json"])
    ));
    for policy in document.as_array().unwrap() {
        let here = &policy["here"];
        let available = here["available"].as_bool().unwrap();
        assert_eq!(available, here["reason"].is_null(), "{policy}");
        assert!(!available || policy["live"] == true, "{policy}");
    }
    let one = stdout(&["list", "policies", "pair-fpu"]);
    assert!(one.starts_with("workover (also pair-fpu): "), "{one}");
    assert!(one.contains("margin"), "{one}");
}

#[test]
fn plain_policy_names_are_accepted_and_reported_as_published() {
    let args = [
        "-m",
        "bulldozer-6282se",
        "-w",
        "hmmer+povray",
        "--alone",
        "50ms",
    ];
    let simulate = ["simulate", "--format", "json", "-p", "pair-fpu:margin=0.2"];
    let document = json(&run(consort().args(simulate).args(args)));
    assert_eq!(document["policy"], "workover:margin=0.2");
    let policies = ["-p", "linux,pair-fpu", "--baseline", "pair-fpu"];
    let compare = consort()
        .args(["compare", "-n", "1", "--format", "json"])
        .args(args)
        .args(policies)
        .output();
    let document = json(&compare.unwrap());
    assert_eq!(document["baseline"], "workover");
    // A host without large cores refuses the policy, by its published name.
    let live = [
        "run",
        "-q",
        "--no-daemon",
        "--format",
        "json",
        "-p",
        "round-robin",
        "--",
        "true",
    ];
    let output = run(consort().args(live));
    match output.status.success() {
        true => assert_eq!(json(&output)["policy"], "hrrs"),
        false => assert!(stderr(&output).contains("policy hrrs ")),
    }
}

#[test]
fn glossary_explains_words_in_any_case() {
    assert!(stdout(&["glossary", "antt"]).starts_with("ANTT: "));
    assert!(stdout(&["glossary"]).lines().count() > 50);
    let one = json(&run(
        consort().args(["glossary", "nudge", "--format", "json"])
    ));
    assert_eq!(one[0]["word"], "nudge");
    check_refused(&["glossary", "nuge"], &["unknown word 'nuge'", "nudge"]);
}
