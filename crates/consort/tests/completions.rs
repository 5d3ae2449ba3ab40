//! Completions of real shells know the names that only the program knows.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{consort, folder, run, stderr};
use compiled::have;
use std::path::Path;
use std::process::Command;

/// A shell that finds the binary under test by its name, with a machine and a program of the user's.
fn shell(name: &str, script: &str) -> String {
    let home = folder();
    let own = home.path().join(".config/consort/machines");
    std::fs::create_dir_all(&own).unwrap();
    std::fs::write(own.join("my-own-chip.toml"), "").unwrap();
    let binary = consort();
    let binaries = Path::new(binary.get_program()).parent().unwrap().to_owned();
    let path = std::env::var_os("PATH").unwrap();
    let path = std::env::join_paths([binaries].into_iter().chain(std::env::split_paths(&path)));
    let mut command = Command::new(name);
    command.arg("-c").arg(script).env("PATH", path.unwrap());
    command
        .env("HOME", home.path())
        .env_remove("XDG_CONFIG_HOME");
    let output = run(&mut command);
    assert!(output.status.success(), "{name}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Lines begun, and words that must be offered; the last word of a line is the one begun.
const BEGUN: [(&str, &[&str]); 12] = [
    ("consort ", &["run", "machine", "completions"]),
    ("consort run --policy work", &["workover"]),
    ("consort run --policy au", &["auto"]),
    (
        "consort simulate --policy linux",
        &["linux", "linux-grouped"],
    ),
    (
        "consort compare --policies workover,agg",
        &["workover,aggregate"],
    ),
    ("consort simulate --machine power", &["power7", "power8"]),
    ("consort machine my-", &["my-own-chip"]),
    ("consort simulate --workload 4*hmm", &["4*hmmer"]),
    ("consort list programs hmm", &["hmmer"]),
    ("consort reproduce W", &["W1", "W6"]),
    (
        "consort validate --checks cons",
        &["conservation", "consistency"],
    ),
    ("consort run -- consort-d", &["consort-demo"]),
];

fn check(shell_name: &str, complete: impl Fn(&str) -> String) {
    common::demo();
    if !have(shell_name) {
        return;
    }
    for (line, words) in BEGUN {
        let offered = shell(shell_name, &complete(line));
        for word in words {
            let found = offered.split_whitespace().any(|offer| offer == *word);
            assert!(found, "{shell_name}: {line}: no {word} in {offered}");
        }
    }
}

#[test]
fn bash_offers_what_there_is() {
    check("bash", |line| {
        // As bash parts the line itself, but for the characters at which it breaks words.
        format!(
            "eval \"$(consort completions bash)\"; line='{line}'; \
             IFS=' ' read -ra COMP_WORDS <<< \"$line\"; \
             [[ $line == *' ' ]] && COMP_WORDS+=(''); \
             COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_TYPE=9; \
             _clap_complete_consort consort \"${{COMP_WORDS[COMP_CWORD]}}\" \
             \"${{COMP_WORDS[COMP_CWORD-1]}}\" 2>/dev/null; printf '%s\\n' \"${{COMPREPLY[@]}}\""
        )
    });
}

#[test]
fn fish_offers_what_there_is() {
    check("fish", |line| {
        format!(
            "consort completions fish | source; complete -C '{line}' | string split -f1 \\t; true"
        )
    });
}

#[test]
fn zsh_takes_the_script_and_its_questions_are_answered() {
    check("zsh", |line| {
        // Without a line editor the function cannot be called, so its question is asked.
        format!(
            "autoload -U compinit && compinit -D -u && eval \"$(consort completions zsh)\" || exit 3; \
             whence -w _clap_dynamic_completer_consort | grep -q function || exit 4; \
             words=(${{(s: :)${{:-'{line}'}}}}); [[ '{line}' == *' ' ]] && words+=(''); \
             CONSORT_COMPLETE=zsh _CLAP_IFS=$'\\n' _CLAP_COMPLETE_INDEX=$(($#words - 1)) \
             consort -- \"${{words[@]}}\" | sed 's/:.*//'"
        )
    });
}

#[test]
fn every_shell_has_a_script() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = run(consort().args(["completions", shell]));
        assert!(output.status.success(), "{shell}: {}", stderr(&output));
        assert!(output.stdout.len() > 100, "{shell}");
    }
}
