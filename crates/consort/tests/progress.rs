//! The line of progress keeps off a terminal that the command uses.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{consort, folder};
use compiled::have;
use std::io::Write;
use std::process::{Command, Stdio};

/// Returns true if a text has the line of progress: `1 thread (` or `4 threads (`.
fn has_line(seen: &str) -> bool {
    seen.contains(" thread (") || seen.contains(" threads (")
}

/// Output of a terminal on which `$C run` is typed with these words, and these keys.
fn on_terminal(words: &str, keys: &str) -> Option<String> {
    if !have("script") {
        return None;
    }
    let binary = consort();
    let line = format!(
        "exec {} run --interval 20ms {words}",
        binary.get_program().to_str().unwrap()
    );
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("SHELL", "/bin/sh");
    let mut child = script
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut typed = child.stdin.take().unwrap();
    typed.write_all(keys.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    drop(typed);
    assert!(output.status.success(), "{output:?}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Works for a while, so that there is something to show.
const WORK: &str = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";

#[test]
fn a_command_that_may_ask_on_the_terminal_has_it_to_itself() {
    let ask = format!("-- sh -c 'printf \"name? \"; read -r x; {WORK}; echo got $x'");
    let Some(seen) = on_terminal(&ask, "bob\n") else {
        return;
    };
    assert!(
        seen.contains("name? ") && seen.contains("got bob"),
        "{seen}"
    );
    assert!(!has_line(&seen), "{seen:?}");
    let seen = on_terminal(&format!("-- sh -c '{WORK}' </dev/null"), "").unwrap();
    assert!(!has_line(&seen), "its output is on the terminal: {seen:?}");
}

#[test]
fn a_command_that_shares_no_terminal_has_a_line_of_progress() {
    let folder = folder();
    let out = folder.path().join("out");
    let quiet = format!("-- sh -c '{WORK}' </dev/null >{}", out.display());
    let Some(seen) = on_terminal(&quiet, "") else {
        return;
    };
    assert!(has_line(&seen), "{seen:?}");
    let seen = on_terminal(&format!("--progress -- sh -c '{WORK}'"), "").unwrap();
    assert!(has_line(&seen), "it was asked for: {seen:?}");
}

#[test]
fn a_program_that_takes_the_screen_keeps_it() {
    let script = format!(
        "stty -icanon -echo; printf \"[screen]\"; {WORK}; stty icanon echo; printf \"[end]\""
    );
    let Some(seen) = on_terminal(&format!("--progress -- sh -c '{WORK}; {script}'"), "") else {
        return;
    };
    let (before, after) = seen.split_once("[screen]").unwrap();
    assert!(has_line(before), "{seen:?}");
    let during = after.split("[end]").next().unwrap();
    assert!(
        !has_line(during) && !during.contains('\u{1b}'),
        "{during:?}"
    );
}
