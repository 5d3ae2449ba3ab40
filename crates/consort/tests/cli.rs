//! The command line is a contract: names, keys, exit codes, one-line errors.

mod common;
#[path = "cli/examples.rs"]
mod examples;
#[path = "cli/listings.rs"]
mod listings;
#[path = "cli/machines.rs"]
mod machines;
#[path = "cli/paths.rs"]
mod paths;
#[path = "cli/programs.rs"]
mod programs;
#[path = "cli/schema.rs"]
mod schema;
#[path = "cli/workloads.rs"]
mod workloads;

use common::{check_refused, consort, folder, json, run, skipped, stderr};
use serde_json::Value;

/// Every verb, as the help lists them.
fn verbs() -> Vec<String> {
    let output = run(consort().arg("--help"));
    let help = String::from_utf8_lossy(&output.stdout);
    let listed = help.lines().take_while(|line| *line != "Options:");
    let verbs = listed.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let verbs: Vec<String> = verbs.map(str::to_owned).collect();
    assert!(verbs.len() > 20, "{help}");
    verbs
}

#[test]
fn bad_input_is_one_line_and_exit_code_2() {
    check_refused(&[], &["verb is required"]);
    check_refused(&["rnu"], &["rnu", "did you mean 'run'"]);
    check_refused(&["run"], &["CMD"]);
    check_refused(&["run", "--"], &["CMD"]);
    check_refused(
        &["run", "--polcy", "none", "--", "true"],
        &["--polcy", "--policy"],
    );
    check_refused(
        &["run", "--policy", "workovr", "--", "true"],
        &["did you mean 'workover'"],
    );
    check_refused(
        &["run", "--policy", "none:x=1", "--", "true"],
        &["no option 'x'"],
    );
    check_refused(
        &["run", "--policy", "workover:margin=7", "--", "true"],
        &["from 0 to 1"],
    );
    check_refused(&["run", "--policy", ":", "--", "true"], &["name:key=value"]);
    check_refused(
        &["run", "--interval", "5", "--", "true"],
        &["--interval", "200ms"],
    );
    check_refused(
        &["run", "--interval", "1us", "--", "true"],
        &["from 1ms to 1h"],
    );
    check_refused(
        &["run", "--report", "/no/such/folder/r.json", "--", "true"],
        &["report /no/such/folder/r.json: there is no such folder\n"],
    );
    check_refused(
        &["run", "--report", "/", "--", "true"],
        &["report", "folder"],
    );
    check_refused(
        &["run", "--config", "/no/such/file", "--", "true"],
        &["/no/such/file"],
    );
    check_refused(&["policies", "--format", "yaml"], &["yaml", "json"]);
    check_refused(&["completions", "tcsh"], &["tcsh", "bash"]);
    check_refused(&["man", "/dev/null/man"], &["/dev/null/man"]);
}

#[test]
fn a_command_that_cannot_be_started_has_the_status_that_shells_give_it() {
    let folder = folder();
    let plain = folder.path().join("plain");
    std::fs::write(&plain, "true").unwrap();
    let check = |command: &str, code: i32, part: &str| {
        let output = run(consort().args(["run", "--", command]));
        let line = stderr(&output);
        assert_eq!(output.status.code(), Some(code), "{command}: {line}");
        assert_eq!(line.lines().count(), 1, "{command}: {line}");
        assert!(line.contains(part) && line.contains(command), "{line}");
        assert!(output.stdout.is_empty(), "{command}");
    };
    check("/no/such/command", 127, "not found");
    check("no-such-command-here", 127, "not found");
    check("/etc/passwd", 126, "not executable");
    check("/", 126, "not executable");
    check(plain.to_str().unwrap(), 126, "not executable");
}

#[test]
fn files_that_do_not_end_are_refused_at_once() {
    for option in ["--config", "--topology", "--profile"] {
        check_refused(
            &["run", option, "/dev/zero", "--", "true"],
            &["/dev/zero", "it is a device, not a file or a pipe"],
        );
        check_refused(&["run", option, "/", "--", "true"], &["it is a folder"]);
    }
    let folder = folder();
    let file = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (zero, endless) = (file("zero.toml"), file("endless.toml"));
    std::os::unix::fs::symlink("/dev/zero", &zero).unwrap();
    let sparse = std::fs::File::create(&endless).unwrap();
    sparse.set_len(1 << 40).unwrap();
    for (file, part) in [(&zero, "it is a device"), (&endless, "larger than 16 MiB")] {
        check_refused(&["machine", "--machine", file], &[part]);
        check_refused(&["programs", file], &[part]);
        check_refused(&["run", "--model", file, "--", "true"], &[part]);
        check_refused(
            &[
                "run",
                "--policy",
                &format!("symbiotic:model={file}"),
                "--",
                "true",
            ],
            &[part],
        );
        let reference = ["reproduce", "W1", "--quick", "--reference", file];
        check_refused(&reference, &[part]);
    }
    assert!(
        run(consort().args(["run", "-q", "--config", "/dev/null", "--", "true"]))
            .status
            .success()
    );
}

#[test]
fn a_bad_value_from_a_configuration_names_the_file_and_the_key() {
    let folder = folder();
    let config = folder.path().join("config.toml");
    let check = |content: &str, parts: &[&str]| {
        std::fs::write(&config, content).unwrap();
        let args = ["run", "--config", config.to_str().unwrap(), "--", "true"];
        check_refused(&args, &[parts, &["config.toml"]].concat());
    };
    check(
        "[run]\npolicy = \"workovr\"\n",
        &["run.policy", "did you mean 'workover'"],
    );
    check(
        "[run]\npolicy = \"none:x=1\"\n",
        &["run.policy", "no option 'x'"],
    );
    check(
        "[run]\ntopology = \"/no/file\"\n",
        &["run.topology", "/no/file"],
    );
}

#[test]
fn no_error_says_the_same_thing_twice() {
    let bad: [&[&str]; 6] = [
        &["run", "--config", "/no/file", "--", "true"],
        &["run", "--profile", "/no/file", "--", "true"],
        &["run", "--", "/etc/passwd"],
        &["machine", "--machine", "/no/file.toml"],
        &["reproduce", "W1", "--reference", "/no/file"],
        &["man", "/dev/null/man"],
    ];
    for args in bad {
        let line = stderr(&run(consort().args(args)));
        for part in line.split(": ").map(str::trim) {
            assert_eq!(
                line.matches(part).count(),
                1,
                "{args:?}: '{part}' in {line}"
            );
        }
    }
}

#[test]
fn a_bad_configuration_names_file_line_and_key_and_starts_nothing() {
    let folder = folder();
    let config = folder.path().join("config.toml");
    let witness = folder.path().join("started");
    std::fs::write(&config, "[run]\npolcy = \"none\"\n").unwrap();
    let output = run(consort()
        .args(["run", "--config"])
        .arg(&config)
        .args(["--", "touch"])
        .arg(&witness));
    assert_eq!(output.status.code(), Some(2));
    let line = stderr(&output);
    assert!(line.contains("config.toml") && line.contains("line 2") && line.contains("polcy"));
    assert!(!witness.exists(), "the command was started");
}

#[test]
fn policies_have_every_key_of_the_contract() {
    let output = run(consort().args(["policies", "--format", "json"]));
    assert!(output.status.success());
    let document = json(&output);
    let rows = document.as_array().unwrap();
    assert!(rows.len() >= 5);
    let keys = [
        "name",
        "family",
        "source",
        "needs",
        "tier_min",
        "quantum_ms",
        "live",
        "simulated",
        "summary",
    ];
    for row in rows {
        for key in keys {
            assert!(row.get(key).is_some(), "{key} is missing in {row}");
        }
        assert!(row["needs"].is_array());
    }
}

#[test]
fn the_help_reads_well() {
    let output = run(consort().args(["run", "--help"]).env("COLUMNS", "100"));
    insta::assert_snapshot!(String::from_utf8(output.stdout).unwrap());
}

#[test]
fn machine_has_every_key_of_the_contract() {
    let output = run(consort().args(["machine", "--format", "json"]));
    assert!(output.status.success(), "{}", stderr(&output));
    let machine = json(&output);
    let keys = [
        "tier",
        "tiers",
        "packages",
        "nodes",
        "cores",
        "pus",
        "smt",
        "llc_domains",
        "core_types",
        "counters",
        "hypervisor",
    ];
    for key in keys {
        assert!(machine.get(key).is_some(), "{key} is missing");
    }
    assert_eq!(machine["pus"].as_u64().unwrap() as usize, common::pus());
    let tiers = machine["tiers"].as_array().unwrap();
    let names: Vec<&str> = tiers.iter().map(|t| t["name"].as_str().unwrap()).collect();
    for name in ["counters", "sampling", "software", "proc"] {
        assert!(names.contains(&name), "{name} is not told of");
    }
    for tier in tiers {
        let reason = tier["reason"].as_str().unwrap();
        assert!(!reason.is_empty(), "{tier} has no reason");
        assert!(tier["available"].is_boolean());
    }
}

#[test]
fn cookies_are_refused_with_the_reason_that_machine_tells() {
    let machine = json(&run(consort().args(["machine", "--format", "json"])));
    let status = &machine["cookies"];
    let reason = status["reason"].as_str().unwrap();
    if status["available"] == true {
        return skipped("cookies are available here");
    }
    check_refused(&["run", "--cookies", "--", "true"], &["--cookies", reason]);
    let folder = folder();
    let config = folder.path().join("config.toml");
    std::fs::write(&config, "[run]\ncookies = true\n").unwrap();
    let args = ["run", "--config", config.to_str().unwrap(), "--", "true"];
    check_refused(&args, &["config.toml", "run.cookies", reason]);
}

#[test]
fn machine_as_csv_has_a_row_per_pu() {
    let output = run(consort().args(["machine", "--format", "csv"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(text.lines().count(), common::pus() + 1);
    assert!(text.starts_with("pu,core,llc,node,package,core_type"));
}

#[test]
fn completions_and_man_pages_know_every_verb() {
    let output = run(consort()
        .args(["--", "consort", ""])
        .envs([("CONSORT_COMPLETE", "bash"), ("_CLAP_COMPLETE_INDEX", "1")]));
    let script = String::from_utf8(output.stdout).unwrap();
    let folder = folder();
    let folder = folder.path().join("made/here");
    assert!(run(consort().arg("man").arg(&folder)).status.success());
    for verb in verbs() {
        assert!(script.contains(&verb), "{verb} is not completed");
        assert!(folder.join(format!("consort-{verb}.1")).is_file());
    }
}

#[test]
fn the_self_test_gives_a_verdict_or_a_reason_for_every_event() {
    let output = run(consort().args(["machine", "--check", "--format", "json"]));
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let document = json(&output);
    let rows = document.as_array().unwrap();
    assert!(!rows.is_empty());
    for row in rows {
        let verdict = row["verdict"].as_str().unwrap();
        assert!(matches!(verdict, "ok" | "wrong" | "skipped"), "{row}");
        let explained = row["reason"].as_str().is_some_and(|r| !r.is_empty());
        assert!(verdict != "skipped" || explained, "{row}");
    }
    let has = |verdict: &str| rows.iter().any(|r: &Value| r["verdict"] == verdict);
    assert!(has("ok"), "software events can be checked everywhere");
}
