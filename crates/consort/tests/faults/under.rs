//! Running a command under Consort within a shell that sets the scene.

use super::common::{consort, json, run, skipped, stderr};
use serde_json::Value;
use std::process::{Command, Output};

/// `consort run` that restricts whatever runs at all.
pub const RUN: &str = "run --interval 20ms --policy spread:active=0 --no-back-off --enact pin";

/// Runs a script in which `$C` is the binary under test and `$P` a program.
pub fn scene(script: &str, program: &str) -> Output {
    let binary = consort();
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("C", binary.get_program());
    run(shell.env("P", program))
}

/// Returns true for root; says so when it is not.
pub fn is_root() -> bool {
    let root = nix::unistd::geteuid().is_root();
    if !root {
        skipped("only root can become another user");
    }
    root
}

/// The report on stdout of a scene that went well.
pub fn report(output: &Output, exit_code: i32) -> Value {
    assert_eq!(output.status.code(), Some(exit_code), "{}", stderr(output));
    let report = json(output);
    assert_eq!(report["restored"], true, "{report:#}");
    assert_eq!(report["exit_code"], exit_code, "{report:#}");
    report
}

/// Number of times that masks were written.
pub fn moves(report: &Value) -> u64 {
    report["moves"].as_u64().unwrap()
}

/// The lines of stderr that Consort itself wrote as an error.
pub fn complaints(output: &Output) -> Vec<String> {
    let text = stderr(output);
    let lines = text.lines().filter(|line| line.starts_with("consort: "));
    lines.map(str::to_owned).collect()
}
