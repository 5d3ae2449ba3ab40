//! Programs that take turns: they are paused again and again, and do what they do alone.
//!
//! `CONSORT_ROUNDS` says how much each program has to do (4).

use super::common::{demo, is_held, is_paused, json, run, skipped, ticks, wait_for};
use super::scene::{Run, Scene, role};
use nix::sys::signal::Signal;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// Quanta that are as short as they can be.
const GANG: [&str; 2] = ["--policy", "gang:quantum=4"];

/// A pipeline with two threads in one of its processes.
fn compressing(rounds: u64) -> String {
    format!(
        "i=0; while [ $i -lt {rounds} ]; do i=$((i+1)); \
         seq $i 300000 | xz -T2 --block-size=300000 -c | sha256sum; done"
    )
}

/// Two threads that share an interpreter.
fn hashing(rounds: u64) -> String {
    format!(
        "import hashlib, threading\n\
         data = bytes(range(256)) * 4096\n\
         found = [None, None]\n\
         def work(at):\n\
         \x20   state = hashlib.sha256()\n\
         \x20   for _ in range({rounds} * 250):\n\
         \x20       state.update(data)\n\
         \x20   found[at] = state.hexdigest()\n\
         threads = [threading.Thread(target=work, args=(at,)) for at in (0, 1)]\n\
         [t.start() for t in threads]\n\
         [t.join() for t in threads]\n\
         print(found)\n"
    )
}

fn have(tools: &str) -> bool {
    let there = run(Command::new("sh").args(["-c", &format!("command -v {tools}")]));
    there.status.success()
}

fn rounds() -> u64 {
    let wish = std::env::var("CONSORT_ROUNDS").ok();
    wish.and_then(|n| n.parse().ok()).unwrap_or(4)
}

fn alone(words: &[&str]) -> String {
    let output = run(Command::new(words[0]).args(&words[1..]));
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

fn wait_for_progress(pid: u32) {
    let before = ticks(pid);
    wait_for("a program that goes on", || {
        (ticks(pid) > before + 10).then_some(())
    });
}

fn busy(scene: &Scene, name: &str) -> (Run, u32) {
    let run = scene.demo(name, &GANG, &["int", "--threads", "2", "--seconds", "120"]);
    let command = run.command("consort-demo");
    (run, command)
}

#[test]
fn three_programs_paused_again_and_again_do_what_they_do_alone() {
    if !["xz", "seq", "sha256sum", "python3"].into_iter().all(have) {
        return skipped("xz, seq, sha256sum and python3 are not all installed");
    }
    let (compressing, hashing) = (compressing(rounds()), hashing(rounds()));
    let pipeline = ["sh", "-c", &compressing];
    let threads = ["python3", "-c", &hashing];
    let expected = (alone(&pipeline), alone(&threads));
    let scene = Scene::new();
    let leader = scene.demo("a", &GANG, &["int", "--threads", "2", "--seconds", "8"]);
    leader.command("consort-demo");
    let first = scene.start("b", &GANG, &pipeline, b"");
    let second = scene.start("c", &GANG, &threads, b"");
    let led = leader.finish();
    let (first, second) = (first.finish(), second.finish());
    assert_eq!((first.code, second.code, led.code), (0, 0, 0));
    assert_eq!((&first.stdout, &second.stdout), (&expected.0, &expected.1));
    let threads_ok = led.stdout.lines().filter(|line| line.ends_with("ok"));
    assert_eq!(threads_ok.count(), 2, "{}", led.stdout);
    let pauses = |report: &serde_json::Value| report["pauses"].as_u64().unwrap();
    let total: u64 = [&led, &first, &second]
        .iter()
        .map(|e| pauses(&e.report))
        .sum();
    println!("{total} pauses");
    assert!(total > 300, "{total} pauses: {:#}", led.report);
    assert_eq!(led.report["restored"], true);
    assert!(scene.leftovers().is_empty(), "{:?}", scene.leftovers());
}

#[test]
fn busy_program_next_to_a_sleeping_one_is_not_paused() {
    let scene = Scene::new();
    let sleeper = scene.start("a", &GANG, &["sleep", "300"], b"");
    let asleep = sleeper.command("sleep");
    let (busy, program) = busy(&scene, "b");
    // After its first turns the sleeping program has none.
    wait_for("a busy program that has every turn", || {
        let before = ticks(program);
        let held = (0..50).any(|_| {
            std::thread::sleep(Duration::from_millis(20));
            is_paused(program)
        });
        (!held && ticks(program) > before && !is_paused(asleep)).then_some(())
    });
    drop((busy, sleeper));
}

/// Stops the leader of three programs that take turns, each given with its run, and continues it
/// after they ran on for a while.
fn stop_leader(runs: &[(Run, u32); 3]) {
    let (leader, programs) = (&runs[0].0, runs.each_ref().map(|(_, program)| *program));
    for program in programs {
        wait_for("a pause", || is_paused(program).then_some(()));
    }
    leader.signal(Signal::SIGSTOP);
    programs.into_iter().for_each(wait_for_progress);
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(50));
        assert!(!programs.into_iter().any(is_paused));
    }
    leader.signal(Signal::SIGCONT);
    for program in programs {
        wait_for("the next pause", || is_paused(program).then_some(()));
    }
}

#[test]
fn programs_of_a_stopped_leader_run_on() {
    let scene = Scene::new();
    stop_leader(&["a", "b", "c"].map(|name| busy(&scene, name)));
}

#[test]
fn programs_of_a_user_s_stopped_leader_run_on() {
    const NOBODY: u32 = 65_534;
    if !nix::unistd::geteuid().is_root() {
        return skipped("already an ordinary user: the other test covers it");
    }
    let (scene, demo) = (Scene::new(), demo());
    let runtime = scene.runtime();
    let folder = runtime.parent().unwrap();
    std::fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
    chown(&runtime, Some(NOBODY), Some(NOBODY)).unwrap();
    // This user may make no cgroups, so that programs are paused by signals.
    let start = |name: &str| {
        let words = [
            demo.to_str().unwrap(),
            "int",
            "--threads",
            "2",
            "--seconds",
            "120",
        ];
        let run = scene.start_with(name, &GANG, &words, |command| {
            chown(folder.join(name), Some(NOBODY), Some(NOBODY)).unwrap();
            command.uid(NOBODY).gid(NOBODY);
        });
        let command = run.command("consort-demo");
        (run, command)
    };
    stop_leader(&["a", "b", "c"].map(start));
}

/// Two busy threads, one of which chooses where it runs.
const PINNED: &str = "
import os, threading
def work(pinned):
    if pinned:
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    while True:
        pass
threads = [threading.Thread(target=work, args=(n,)) for n in (True, False)]
[t.start() for t in threads]
";

#[test]
fn a_program_with_a_thread_that_placed_itself_takes_turns_all_the_same() {
    if !have("python3") || super::common::pus() < 2 {
        return skipped("python3 and two CPUs are needed");
    }
    let scene = Scene::new();
    let leader = scene.demo("a", &GANG, &["int", "--threads", "2", "--seconds", "6"]);
    leader.command("consort-demo");
    let member = scene.start("b", &GANG, &["python3", "-c", PINNED], b"");
    let command = member.command("python3");
    wait_for("a thread that placed itself", || {
        member.is_restricted(command).then_some(())
    });
    wait_for("a paused program", || is_held(command).then_some(()));
    wait_for_progress(command);
    let led = leader.finish();
    let warnings = led.report["warnings"].to_string();
    let expected = "takes turns as a whole, but 1 of its threads keep their own affinity";
    assert!(warnings.contains(expected), "{warnings}");
}

#[test]
fn nothing_stays_paused_when_every_consort_is_killed() {
    let scene = Scene::new();
    let mut runs = ["a", "b", "c"].map(|name| busy(&scene, name));
    wait_for("a paused program", || {
        runs.iter()
            .any(|(_, command)| is_held(*command))
            .then_some(())
    });
    for (run, _) in &mut runs {
        run.kill();
    }
    for (run, command) in &runs {
        wait_for("an end of all holds", || (!is_held(*command)).then_some(()));
        wait_for_progress(*command);
        assert!(!run.is_restricted(*command));
    }
    wait_for("the guardian's end", || {
        let left = scene.leftovers();
        let journals = left
            .iter()
            .filter(|p| p.extension().is_some_and(|e| e == "journal"));
        (journals.count() == 0).then_some(())
    });
}

#[test]
fn when_the_leader_is_killed_the_others_take_turns_on_and_its_own_command_goes_on_unpaused() {
    let scene = Scene::new();
    let (mut leader, orphan) = busy(&scene, "a");
    let members = ["b", "c"]
        .map(|name| scene.demo(name, &GANG, &["fp", "--threads", "2", "--seconds", "12"]));
    wait_for("a paused program", || is_held(orphan).then_some(()));
    leader.kill();
    wait_for("an end of the hold", || (!is_held(orphan)).then_some(()));
    wait_for_progress(orphan);
    let ended = members.map(Run::finish);
    let mut leaders = ended.iter().filter(|e| role(&e.report) == "leader");
    let pauses = |e: &super::scene::Ended| e.report["pauses"].as_u64().unwrap();
    assert!(
        leaders.any(|e| pauses(e) > 0),
        "{:#?}",
        ended.each_ref().map(|e| &e.report)
    );
    for member in &ended {
        assert_eq!(member.code, 0, "{}", member.stderr);
        assert_eq!(member.stdout.matches(" ok").count(), 2, "{}", member.stdout);
    }
    assert!(!is_held(orphan));
}

#[test]
fn a_paused_member_receives_its_signals() {
    let scene = Scene::new();
    let (leader, _) = busy(&scene, "a");
    let script = "trap 'exit 5' TERM; echo ready; while :; do :; done";
    let member = scene.start("b", &GANG, &["sh", "-c", script], b"");
    member.wait_for_output("ready");
    let command = member.command("sh");
    wait_for("a paused member", || is_held(command).then_some(()));
    member.signal(Signal::SIGTERM);
    assert_eq!(member.finish().code, 5);
    drop(leader);
}

#[test]
fn measures_that_are_missing_are_refused_and_a_profile_brings_them() {
    let scene = Scene::new();
    let machine = run(super::common::consort().args(["machine", "--format", "json"]));
    if json(&machine)["tier"] == "counters" {
        return skipped("this machine may count what others cannot");
    }
    let refused = scene
        .start("a", &["--policy", "fair-com"], &["true"], b"")
        .finish();
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("bus-queue-cycles"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("--measures FILE"),
        "{}",
        refused.stderr
    );
    assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
    let profile = scene.runtime().join("profile.json");
    let measures = "\"llc_miss_rate\":0.5,\"bus_occupancy\":0.2,\"bus_queue_time\":0.1";
    let text = format!(
        "{{\"programs\":[{{\"name\":\"consort-demo\",{measures}}},{{\"name\":\"sh\",{measures}}}]}}"
    );
    std::fs::write(&profile, text).unwrap();
    let recorded = [
        "--policy",
        "fair-com:quantum=20",
        "--profile",
        profile.to_str().unwrap(),
    ];
    let leader = scene.demo("b", &recorded, &["int", "--threads", "2", "--seconds", "4"]);
    leader.command("consort-demo");
    let stranger = scene.start("c", &recorded, &["true"], b"").finish();
    assert_eq!(stranger.code, 2, "{}", stranger.stderr);
    assert!(
        stranger.stderr.contains("has no program 'true'"),
        "{}",
        stranger.stderr
    );
    let member = scene.start(
        "d",
        &recorded,
        &[
            "sh",
            "-c",
            "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done",
        ],
        b"",
    );
    assert_eq!(member.finish().code, 0);
    let led = leader.finish();
    assert_eq!(led.report["policy"], "fair-com");
    assert_eq!(led.report["programs"][0]["source"], "recorded");
    assert!(
        led.report["pauses"].as_u64().unwrap() > 0,
        "{:#}",
        led.report
    );
    let warnings = led.report["warnings"].to_string();
    assert!(warnings.contains("taken from profile"), "{warnings}");
}

#[test]
fn callers_that_talk_nonsense_disturb_nobody() {
    use std::io::{Read, Write};
    let scene = Scene::new();
    let leader = scene.lead(&["int", "--threads", "1", "--seconds", "2"]);
    let socket = scene.runtime().join("consort/group-g.socket");
    let mut callers: Vec<_> = (0..20)
        .map(|_| std::os::unix::net::UnixStream::connect(&socket).unwrap())
        .collect();
    for (at, caller) in callers.iter_mut().enumerate() {
        // Those that are hung up on meanwhile need not hear the rest.
        let _ = caller.write_all(&vec![b'{'; 100 * at * at]);
    }
    let mut answer = String::new();
    let _ = callers[19].read_to_string(&mut answer);
    assert!(answer.contains("refused"), "{answer}");
    let member = scene.start("b", &[], &["true"], b"").finish();
    assert_eq!(member.code, 0, "{}", member.stderr);
    assert_eq!(leader.finish().code, 0);
}
