//! The rules of the house that the compiler does not check: which crate may depend on which, and
//! that the tree keeps the shape that ARCHITECTURE.md describes.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test may fail loudly")]

mod circles;
mod house;
mod imports;

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Crates of the workspace that each of its crates may depend on. A crate that is not listed is an
/// error: decide its place first.
const MAY_DEPEND_ON: &[(&str, &[&str])] = &[
    ("consort-core", &["consort-matching"]),
    ("consort-data", &["consort-core"]),
    ("consort-describe", &["consort-core"]),
    (
        "consort-experiment",
        &[
            "consort-core",
            "consort-data",
            "consort-describe",
            "consort-ops",
            "consort-reference",
            "consort-sim",
        ],
    ),
    ("consort-ext", &["consort-core"]),
    (
        "consort-host",
        &[
            "consort-core",
            "consort-experiment",
            "consort-kernels",
            "consort-linux",
        ],
    ),
    ("consort-isa", &["consort-ops"]),
    ("consort-kernels", &[]),
    (
        "consort-lab",
        &[
            "consort-core",
            "consort-data",
            "consort-describe",
            "consort-experiment",
            "consort-ops",
            "consort-profile",
            "consort-reference",
            "consort-sim",
        ],
    ),
    (
        "consort-linux",
        &[
            "consort-core",
            "consort-describe",
            "consort-ext",
            "consort-isa",
        ],
    ),
    (
        "consort",
        &[
            "consort-core",
            "consort-data",
            "consort-describe",
            "consort-experiment",
            "consort-host",
            "consort-kernels",
            "consort-lab",
            "consort-linux",
            "consort-ops",
            "consort-profile",
            "consort-sim",
        ],
    ),
    ("consort-matching", &[]),
    ("consort-ops", &[]),
    ("consort-profile", &["consort-isa", "consort-ops"]),
    (
        "consort-reference",
        &["consort-core", "consort-ops", "consort-sim"],
    ),
    ("consort-rtl", &["consort-core", "consort-sim"]),
    ("consort-sim", &["consort-core", "consort-describe"]),
    ("consort-vmtest", &["consort-core"]),
];

/// Crates that do I/O, ask for the time, or start threads: not for pure crates.
const IMPURE: &[&str] = &[
    "nix",
    "rustix",
    "libc",
    "tokio",
    "procfs",
    "perf-event-open-sys",
];

fn metadata() -> Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Normal (not dev, not build) dependencies of each workspace crate.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata();
    let packages = metadata["packages"].as_array().unwrap();
    let name = |value: &Value| value["name"].as_str().unwrap().to_owned();
    let normal = |package: &Value| {
        let all = package["dependencies"].as_array().unwrap();
        all.iter()
            .filter(|d| d["kind"].is_null())
            .map(name)
            .collect()
    };
    packages.iter().map(|p| (name(p), normal(p))).collect()
}

#[test]
fn crates_depend_only_downwards() {
    let rules: BTreeMap<&str, &[&str]> = MAY_DEPEND_ON.iter().copied().collect();
    for (name, dependencies) in dependencies() {
        let allowed = rules.get(name.as_str());
        assert!(
            allowed.is_some(),
            "crate {name} has no place in the dependency rules"
        );
        let inside = dependencies.iter().filter(|d| d.starts_with("consort"));
        for dependency in inside {
            assert!(
                allowed.unwrap().contains(&dependency.as_str()),
                "{name} must not depend on {dependency}"
            );
        }
    }
}

#[test]
fn pure_crates_depend_on_nothing_impure() {
    let all = dependencies();
    for name in ["consort-core", "consort-isa", "consort-matching"] {
        for dependency in &all[name] {
            assert!(
                !IMPURE.contains(&dependency.as_str()),
                "{name} must not use {dependency}"
            );
        }
    }
}

/// Names of all crates, also those outside of the workspace.
fn crates() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(folder).unwrap();
    let name = |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name();
    entries
        .map(|entry| name(entry).into_string().unwrap())
        .collect()
}

/// Rust sources below a folder.
fn sources(folder: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            found.push(path);
        }
    }
}

#[test]
fn no_file_exceeds_600_lines() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut files = Vec::new();
    sources(&crates, &mut files);
    assert!(files.len() > 40, "found only {} files", files.len());
    for file in files {
        let lines = std::fs::read_to_string(&file).unwrap().lines().count();
        assert!(lines <= 600, "{} has {lines} lines", file.display());
    }
}

/// Words that make a riddle of the beginning of a comment.
const QUESTIONS: [&str; 10] = [
    "How", "What", "When", "Where", "Whether", "Which", "Who", "Whom", "Whose", "Why",
];

/// Lines that begin a doc comment with such a word, as `path:line: text`.
fn questions(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap();
    let is_doc = |line: &str| line.starts_with("///") || line.starts_with("//!");
    let asks = |line: &str| {
        let first = line.get(3..).unwrap_or("").split_whitespace().next();
        first.is_some_and(|word| QUESTIONS.contains(&word))
    };
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let begins = |at: usize| at == 0 || !is_doc(lines[at - 1]);
    let found = (0..lines.len()).filter(|&at| is_doc(lines[at]) && begins(at) && asks(lines[at]));
    found
        .map(|at| format!("{}:{}: {}", path.display(), at + 1, lines[at]))
        .collect()
}

#[test]
fn doc_comments_open_with_what_a_thing_is() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut files = Vec::new();
    for name in crates() {
        sources(&root.join("crates").join(name).join("src"), &mut files);
    }
    let found: Vec<String> = files.iter().flat_map(|file| questions(file)).collect();
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}
