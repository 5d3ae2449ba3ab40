//! The binary from end to end: results, exit status, one line for bad input.

#![expect(
    clippy::unwrap_used,
    reason = "tests may fail loudly, their helpers too"
)]

mod skip;

use assert_cmd::Command;
use assert_cmd::assert::Assert;
use consort_kernels::kernels;
use skip::skipped;

fn demo(args: &str) -> Assert {
    Command::cargo_bin("consort-demo")
        .unwrap()
        .args(args.split_whitespace())
        .assert()
}

fn stdout(assert: &Assert) -> String {
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

fn json(assert: &Assert) -> serde_json::Value {
    serde_json::from_str(&stdout(assert)).unwrap()
}

/// Returns true where the kernel writes machine code that this host refuses to run.
fn cannot_run(kernel: &str) -> bool {
    matches!(kernel, "jit" | "selfmod")
        && (cfg!(not(any(target_arch = "x86_64", target_arch = "aarch64")))
            || kernels::find(kernel)
                .unwrap()
                .build_one(&consort_kernels::KernelSetup::default())
                .is_err())
}

#[test]
fn every_kernel_runs_on_two_threads() {
    for entry in kernels::REGISTRY {
        if cannot_run(entry.name) {
            skipped(format!("{} cannot run on this host", entry.name));
            continue;
        }
        let run = demo(&format!(
            "{} --threads 2 --work 5 --format json",
            entry.name
        ))
        .code(0);
        let report = json(&run);
        assert_eq!(report["program"], entry.name);
        assert_eq!(report["ok"], true);
        assert_eq!(report["threads"][1]["name"], format!("{}-1", entry.name));
        assert_eq!(report["threads"][1]["units"], 5);
    }
}

#[test]
fn equal_work_gives_equal_checksums() {
    let checksum = |args| json(&demo(args).code(0))["threads"][0]["checksum"].clone();
    assert_eq!(
        checksum("fp --work 300 --format json"),
        checksum("fp --threads 3 --work 300 --format json")
    );
    assert_ne!(
        checksum("fp --work 300 --format json"),
        checksum("fp --work 301 --format json")
    );
}

/// A rest that is longer than the test may take ends with the time that was given.
#[test]
fn threads_rest_by_turns_and_end_in_time() {
    let args = "int --threads 2 --seconds 0.2 --duty-ms 1 3600000 --format json";
    let report = json(&demo(args).code(0));
    assert_eq!(report["ok"], true);
    let units = |thread: &serde_json::Value| thread["units"].as_u64().unwrap();
    assert!(
        report["threads"]
            .as_array()
            .unwrap()
            .iter()
            .all(|t| units(t) > 0)
    );
}

#[test]
fn mixed_has_all_kinds() {
    let run = demo("mixed --seconds 0.2 --threads-per-kind 2 --format json").code(0);
    let report = json(&run);
    let names: Vec<&str> = report["threads"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| t["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["fp-0", "fp-1", "int-0", "int-1", "dram-0", "sleeper-0"]
    );
}

#[test]
fn mixed_prints_a_table() {
    let text = stdout(&demo("mixed --seconds 0.05").code(0));
    assert!(text.starts_with("thread"), "{text}");
    assert!(
        text.lines().skip(1).all(|line| line.ends_with("  ok")),
        "{text}"
    );
}

#[test]
fn churn_counts_its_threads() {
    let report = json(&demo("churn --rate 200 --seconds 0.3 --format json").code(0));
    assert_eq!(report["wrong"], 0);
    let threads = report["threads"].as_u64().unwrap();
    assert!((1..=60).contains(&threads), "{threads}");
    assert!(stdout(&demo("churn --rate 50 --seconds 0.1").code(0)).ends_with(": ok\n"));
}

#[test]
fn forks_make_generations() {
    let report =
        json(&demo("forks --children 2 --threads 2 --depth 2 --seconds 0.1 --format json").code(0));
    let children = report["children"].as_array().unwrap();
    assert_eq!(children.len(), 2);
    assert!(
        children
            .iter()
            .all(|c| c["runs"] == "forks" && c["ok"] == true)
    );
}

#[test]
fn pin_self_keeps_its_mask() {
    let report = json(&demo("pin-self --seconds 0.1 --format json").code(0));
    assert_eq!(report["mask_kept"], true);
    assert_eq!(report["ok"], true);
}

#[test]
fn renamer_ends_with_another_name() {
    let report = json(&demo("renamer --seconds 0.2 --every-ms 20 --format json").code(0));
    let name = report["threads"][1]["name"].as_str().unwrap();
    assert!(name.starts_with("r1-"), "{name}");
}

#[test]
fn list_shows_every_kernel() {
    let text = stdout(&demo("list").code(0));
    let rows = json(&demo("list --format json").code(0));
    for (entry, row) in kernels::REGISTRY.iter().zip(rows.as_array().unwrap()) {
        assert!(
            text.contains(&format!("\n{} ", entry.name)),
            "{}",
            entry.name
        );
        assert_eq!(row["name"], entry.name);
        assert_eq!(row["class"], entry.class.to_string());
    }
}

#[test]
fn help_has_an_example() {
    assert!(stdout(&demo("--help").code(0)).contains("Example: consort-demo mixed"));
}

/// Bad input: status 2, nothing on stdout, one line on stderr with `expected`.
fn refused(args: &str, expected: &str) {
    let run = demo(args).code(2);
    assert_eq!(stdout(&run), "");
    let stderr = String::from_utf8(run.get_output().stderr.clone()).unwrap();
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(expected), "{stderr}");
}

#[test]
fn bad_input_is_one_line() {
    refused("", "consort-demo list");
    refused("strem", "'stream'");
    refused("fp --threads 0", "--threads");
    refused("fp --seconds 0", "0.001");
    refused("fp --seconds 1 --work 2", "--work");
    refused("fp --wrok 2", "'--work'");
    refused("fp --phase-ms 10", "only for `phases`");
    refused("fp --duty-ms 5", "2 values");
    refused("fp --duty-ms 0 5", "--duty-ms");
    refused("churn --rate many", "--rate");
    refused("pin-self --pu 1023 --seconds 1", "allowed CPUs");
    refused("counted nothing", "no counted loop `nothing`");
    refused("list --format xml", "[possible values: table, json]");
}
