//! `consort run --group`: real programs of several runs under one control loop.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

#[path = "../common/mod.rs"]
mod common;

mod at_once;
mod coscheduled;
mod refusals;
mod scene;
mod succession;

use common::{pus, skipped};
use scene::{Scene, names, role};

#[test]
fn one_run_leads_and_its_report_has_the_threads_of_all() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "2", "--seconds", "3"]);
    let member = scene.demo("b", &[], &["fp", "--threads", "2", "--seconds", "1"]);
    let member = member.finish();
    assert_eq!(member.code, 0, "{}", member.stderr);
    let led = leader.finish();
    assert_eq!(
        (role(&led.report), role(&member.report)),
        ("leader", "member")
    );
    assert_eq!(member.report["group"]["leader"], led.pid);
    assert_eq!(led.report["group"]["most_programs"], 2);
    let threads = names(&led.report, "threads");
    assert!(threads.contains(&"int-0".to_owned()), "{threads:?}");
    assert!(threads.contains(&"fp-1".to_owned()), "{threads:?}");
    assert_eq!(led.report["restored"], true);
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
}

#[test]
fn status_output_and_input_of_a_member_are_its_own() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "2"]);
    let script = "cat; echo err >&2; exit 7";
    let member = scene.start("b", &["-q"], &["sh", "-c", script], b"input\n");
    let member = member.finish();
    assert_eq!((member.code, member.stdout.as_str()), (7, "input\n"));
    assert_eq!(member.stderr, "err\n");
    let killed = scene.start("c", &["-q"], &["sh", "-c", "kill -TERM $$"], b"");
    assert_eq!(killed.finish().code, 128 + 15);
    leader.finish();
}

#[test]
fn a_signal_for_a_member_reaches_its_command() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "2"]);
    let script = "trap 'echo caught; exit 3' USR1; echo ready; while :; do sleep 0.01; done";
    let member = scene.start("b", &["-q"], &["sh", "-c", script], b"");
    member.wait_for_output("ready");
    member.signal(nix::sys::signal::Signal::SIGUSR1);
    let member = member.finish();
    assert_eq!(
        (member.code, member.stdout.as_str()),
        (3, "ready\ncaught\n")
    );
    leader.finish();
}

#[test]
fn a_member_is_placed_by_the_leader_and_free_when_its_own_run_is_killed() {
    if pus() < 2 {
        return skipped("one CPU leaves no mask to change");
    }
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "2", "--seconds", "4"]);
    let mut member = scene.demo("b", &[], &["fp", "--threads", "2", "--seconds", "60"]);
    let command = member.command("consort-demo");
    common::wait_for("a changed mask", || {
        member.is_restricted(command).then_some(())
    });
    member.kill();
    common::wait_for("every mask as before", || {
        (!member.is_restricted(command)).then_some(())
    });
    // It is not taken in again, although the leader goes on for several quanta.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(!member.is_restricted(command));
    assert_eq!(leader.finish().code, 0);
}

#[test]
fn malleable_programs_are_told_their_threads_unless_the_user_did() {
    let scene = Scene::new();
    let script = "echo $OMP_NUM_THREADS $RAYON_NUM_THREADS";
    let alone = scene
        .start("a", &["-q"], &["sh", "-c", script], b"")
        .finish();
    let pus = pus();
    assert_eq!(alone.stdout, format!("{pus} {pus}\n"));
    let reported = scene.start_with("b", &["-q"], &["sh", "-c", script], |command| {
        command.env("OMP_NUM_THREADS", "17");
    });
    assert_eq!(reported.finish().stdout, format!("17 {pus}\n"));
}
