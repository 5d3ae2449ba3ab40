//! Groups that cannot be joined.

use super::common::{consort, run, stderr};
use super::scene::Scene;

#[test]
fn another_policy_is_refused_and_both_are_named() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "2"]);
    let refused = scene.start("b", &["--policy", "none"], &["touch", "started"], b"");
    let refused = refused.finish();
    assert_eq!(refused.code, 2);
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("policy spread:active=0"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("policy none"), "{}", refused.stderr);
    assert_eq!(leader.finish().report["group"]["most_programs"], 1);
}

#[test]
fn nothing_of_a_refused_command_runs() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "1"]);
    let mark = scene.runtime().join("started");
    let words = ["touch", mark.to_str().unwrap()];
    let refused = scene
        .start("b", &["--interval", "1s"], &words, b"")
        .finish();
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(!mark.exists());
    leader.finish();
}

#[test]
fn a_command_that_does_not_exist_leaves_the_group_as_it_was() {
    let scene = Scene::new();
    let first = scene.start("a", &[], &["no-such-command"], b"").finish();
    assert_eq!(first.code, 127, "{}", first.stderr);
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "1"]);
    let member = scene.start("b", &[], &["no-such-command"], b"").finish();
    assert_eq!(member.code, 127, "{}", member.stderr);
    assert!(member.stderr.contains("command not found: no-such-command"));
    assert_eq!(leader.finish().code, 0);
}

#[test]
fn group_of_one_runs_and_is_warned_of() {
    let scene = Scene::new();
    let alone = scene.start("a", &[], &["true"], b"").finish();
    assert_eq!(alone.code, 0);
    let warnings = alone.report["warnings"].to_string();
    assert!(
        warnings.contains("no other run joined group g"),
        "{warnings}"
    );
}

#[test]
fn a_name_that_is_no_name_is_told_what_would_be_right() {
    let output = run(consort().args(["run", "--group", "a/b", "--", "true"]));
    assert_eq!(output.status.code(), Some(2));
    let text = stderr(&output);
    assert!(text.contains("'a/b' cannot name a group"), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
}
