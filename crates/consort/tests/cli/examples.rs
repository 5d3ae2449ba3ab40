//! Every `--help` has an example, and the examples run.

use crate::common::{consort, folder, run, skipped, stderr};
use crate::verbs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Verbs with verbs of their own.
const INNER: [(&str, &[&str]); 4] = [
    (
        "list",
        &[
            "machines", "programs", "policies", "studies", "benches", "schemas",
        ],
    ),
    ("machine", &["probe"]),
    ("sweep", &["plan", "run", "submit", "status", "merge"]),
    ("config", &["check", "reload"]),
];

/// Beginnings of examples that this test does not run, each with the reason.
const NOT_RUN: [(&str, &str); 15] = [
    ("consort attach", "needs a process; tests/daemon attaches"),
    ("consort detach", "needs a daemon; tests/daemon detaches"),
    (
        "consort daemon",
        "runs until it is stopped; tests/daemon starts it",
    ),
    ("consort status", "needs a daemon; tests/daemon asks it"),
    ("consort top", "needs a daemon; tests/daemon/views.rs looks"),
    (
        "consort explain",
        "needs a daemon; tests/daemon/views.rs asks",
    ),
    (
        "consort config reload",
        "needs a daemon; tests/daemon/reload.rs asks",
    ),
    ("consort sweep submit", "needs Slurm; .ci/slurm submits"),
    ("consort trial --metric", "needs a database server"),
    ("consort trial --policies", "needs minutes and a Makefile"),
    (
        "consort compare --machine power8",
        "takes as long as the other again",
    ),
    (
        "consort profile",
        "needs an emulator; tests/profile.rs runs it",
    ),
    (
        "consort map --command",
        "needs seconds on a quiet host; tests/map.rs runs it",
    ),
    (
        "consort train --machine",
        "needs minutes; tests/train.rs trains",
    ),
    (
        "consort completions",
        "writes to /etc; tests/completions.rs completes",
    ),
];

/// Examples of all verbs.
fn examples() -> Vec<String> {
    let mut paths: Vec<Vec<String>> = verbs().into_iter().map(|verb| vec![verb]).collect();
    for (verb, inner) in INNER {
        paths.extend(
            inner
                .iter()
                .map(|inner| vec![verb.to_owned(), (*inner).to_owned()]),
        );
    }
    let mut examples = Vec::new();
    for path in paths {
        let output = run(consort().args(&path).arg("--help").env("COLUMNS", "400"));
        let help = String::from_utf8(output.stdout).expect("it works in a test's own folder");
        let of_verb: Vec<String> = { help.lines() }
            .filter_map(|line| line.trim().strip_prefix("Example: "))
            .map(str::to_owned)
            .collect();
        assert!(!of_verb.is_empty(), "{path:?} has no example:\n{help}");
        examples.extend(of_verb);
    }
    examples
}

/// Files that the examples name.
fn prepare(at: &Path) {
    let write = |name: &str, text: &str| {
        std::fs::write(at.join(name), text).expect("it works in a test's own folder");
    };
    // It works for a while, so that a recording shows a thread.
    let count = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
    write("solver", &format!("#!/bin/sh\n{count}\n"));
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(at.join("solver"), executable)
        .expect("it works in a test's own folder");
    write("FILE", "text\n");
    write(
        "caches.toml",
        "machines = [\"acmp-1+1\"]\nworkloads = [\"hmmer+mcf\"]\npolicies = [\"linux\"]\n\
         runs = 14\nalone_s = 0.05\nshard_s = 0.001\nhost_s_per_thread_s = 1.0\n",
    );
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/pairs.csv");
    std::fs::create_dir_all(at.join("docs/examples")).expect("it works in a test's own folder");
    std::fs::copy(examples, at.join("docs/examples/pairs.csv"))
        .expect("it works in a test's own folder");
}

#[test]
fn every_help_has_an_example_that_runs() {
    let folder = folder();
    prepare(folder.path());
    let binary = consort();
    let bin = Path::new(binary.get_program()).parent().unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    // In the order of the overview, so that a recording exists before it is replayed.
    for example in examples() {
        if let Some((_, why)) = NOT_RUN.iter().find(|(start, _)| example.starts_with(start)) {
            skipped(&format!("{example}: {why}"));
            continue;
        }
        let mut shell = Command::new("timeout");
        shell
            .args(["300", "sh", "-c", &example])
            .current_dir(folder.path());
        shell.env("PATH", &path).env("HOME", folder.path());
        shell.env("XDG_RUNTIME_DIR", folder.path());
        let output = run(&mut shell);
        let why = stderr(&output);
        // A host without a signal refuses the policy that needs it, which is no fault of the example.
        let is_unfed = why.contains("but this machine offers");
        // On a busy host the recorded command may hardly run.
        let is_starved = why.contains("no managed thread had more than");
        let is_accepted = output.status.success() || is_unfed || is_starved;
        assert!(is_accepted, "{example}: {why}");
    }
}
