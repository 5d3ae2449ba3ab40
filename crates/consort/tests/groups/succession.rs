//! Leaders come and go.

use super::common::{consort, run, stderr, wait_for};
use super::scene::{Scene, role};
use nix::sys::signal::Signal;
use nix::unistd::Pid;
use std::time::Duration;

#[test]
fn when_the_leader_s_command_ends_a_member_leads_on() {
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "0.5"]);
    let second = scene.demo("b", &[], &["fp", "--threads", "2", "--seconds", "4"]);
    second.command("consort-demo");
    assert_eq!(role(&leader.finish().report), "leader");
    let third = scene.demo("c", &[], &["l2", "--threads", "1", "--seconds", "0.5"]);
    let third = third.finish();
    let second = second.finish();
    assert_eq!((third.code, role(&second.report)), (0, "leader"));
    // A newcomer may be quicker than the member; then the member leads when that has ended.
    let leads = role(&third.report) == "leader";
    assert!(leads || third.report["group"]["leader"] == second.pid);
    assert!(second.report["plans"].as_u64().unwrap() > 0);
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
}

#[test]
fn when_the_leader_is_killed_its_masks_are_put_back_and_a_member_leads_on() {
    let scene = Scene::new();
    let mut leader = scene.lead(&["int", "--threads", "2", "--seconds", "60"]);
    let orphan = leader.command("consort-demo");
    let second = scene.demo("b", &[], &["fp", "--threads", "2", "--seconds", "4"]);
    let third = scene.demo("c", &[], &["l2", "--threads", "2", "--seconds", "4"]);
    wait_for("a changed mask of a member", || {
        second
            .is_restricted(second.command("consort-demo"))
            .then_some(())
    });
    leader.kill();
    wait_for("every mask of the orphan as before", || {
        (!leader.is_restricted(orphan)).then_some(())
    });
    let (second, third) = (second.finish(), third.finish());
    assert_eq!((second.code, third.code), (0, 0));
    let roles = [role(&second.report), role(&third.report)];
    assert!(roles.contains(&"leader"), "{roles:?}");
    for ended in [second, third] {
        assert_eq!(ended.report["restored"], true);
        if role(&ended.report) == "leader" {
            assert!(
                ended.report["moves"].as_u64().unwrap() > 0,
                "{:#}",
                ended.report
            );
        }
    }
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
}

#[test]
fn a_killed_leader_that_nobody_follows_leaves_no_files() {
    let scene = Scene::new();
    let mut leader = scene.lead(&["int", "--threads", "1", "--seconds", "60"]);
    assert!(!scene.leftovers().is_empty());
    leader.kill();
    wait_for("an empty folder", || {
        scene.leftovers().is_empty().then_some(())
    });
}

/// A newcomer may be quicker than any member to take the lead of a killed leader.
#[test]
fn a_newcomer_leads_when_the_killed_leader_s_masks_are_put_back() {
    let scene = Scene::new();
    let mut leader = scene.lead(&["int", "--threads", "2", "--seconds", "60"]);
    let guardian = leader.command("consort-guard");
    let member = scene.demo("b", &[], &["fp", "--threads", "2", "--seconds", "4"]);
    let its = member.command("consort-demo");
    wait_for("a place for the member's command", || {
        scene.is_journalled(its).then_some(())
    });
    // Nobody but the newcomer is there to lead, and masks are not put back yet.
    member.signal(Signal::SIGSTOP);
    signal(guardian, Signal::SIGSTOP);
    leader.kill();
    let newcomer = scene.demo("c", &[], &["l2", "--threads", "1", "--seconds", "6"]);
    std::thread::sleep(Duration::from_millis(500));
    member.signal(Signal::SIGCONT);
    std::thread::sleep(Duration::from_millis(500));
    signal(guardian, Signal::SIGCONT);
    let newcomer = newcomer.finish();
    assert_eq!(role(&newcomer.report), "leader");
    let warnings = newcomer.report["warnings"].to_string();
    assert!(!warnings.contains("is not managed"), "{warnings}");
    assert_eq!(newcomer.report["group"]["most_programs"], 2);
    assert_eq!(member.finish().code, 0);
}

fn signal(pid: u32, signal: Signal) {
    nix::sys::signal::kill(Pid::from_raw(pid.cast_signed()), signal).unwrap();
}

#[test]
fn what_a_leader_leaves_whose_guardian_was_killed_as_well_the_next_run_deletes() {
    let scene = Scene::new();
    let mut leader = scene.lead(&["int", "--threads", "1", "--seconds", "60"]);
    let guardian = leader.command("consort-guard");
    signal(guardian, Signal::SIGKILL);
    leader.kill();
    assert!(!scene.leftovers().is_empty());
    let mut other = consort();
    let other = other.args(["run", "-q", "--", "true"]);
    let other = run(other.env("XDG_RUNTIME_DIR", scene.runtime()));
    assert!(other.status.success(), "{}", stderr(&other));
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
}
