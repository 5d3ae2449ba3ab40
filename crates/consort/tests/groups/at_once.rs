//! Runs that are started at once: who comes first is chance, and must not matter.
//!
//! `CONSORT_GROUP_ROUNDS` says how often they are started (10).

use super::common::{children_of, comm_of, wait_for};
use super::scene::{Run, Scene, role};
use std::path::PathBuf;

fn rounds() -> usize {
    let wish = std::env::var("CONSORT_GROUP_ROUNDS").ok();
    wish.and_then(|n| n.parse().ok()).unwrap_or(10)
}

/// Runs that go on until they are told to end, each with a mark that its command was started.
struct Crowd {
    scene: Scene,
    runs: Vec<(Run, PathBuf)>,
    /// Number of runs that were started.
    started: usize,
}

impl Crowd {
    /// Starts runs with these arguments, one right after the other.
    fn start(args: &[&[&str]]) -> Self {
        let mut crowd = Self {
            scene: Scene::new(),
            runs: Vec::new(),
            started: 0,
        };
        args.iter().for_each(|args| crowd.add(args));
        crowd
    }

    fn add(&mut self, args: &[&str]) {
        let name = self.started.to_string();
        self.started += 1;
        let mark = self.scene.runtime().join(format!("mark-{name}"));
        let go = self.scene.runtime().join("go");
        let (mark_name, go) = (mark.display(), go.display());
        let script = format!("touch {mark_name}; while [ ! -e {go} ]; do sleep 0.05; done");
        let words = ["sh", "-c", &script];
        let args = [args, &["-q"]].concat();
        let run = self.scene.start_as_asked(&name, &args, &words, |_| {});
        self.runs.push((run, mark));
    }

    /// Waits until so many commands were started and all others were refused.
    fn wait_for_started(&mut self, count: usize) {
        wait_for("commands that were started or refused", || {
            let is_settled = |(run, mark): &mut (Run, PathBuf)| run.has_ended() || mark.exists();
            self.runs.iter_mut().all(is_settled).then_some(())
        });
        let started = self.runs.iter().filter(|(_, mark)| mark.exists());
        assert_eq!(started.count(), count);
    }

    fn end(self) -> Vec<super::scene::Ended> {
        std::fs::write(self.scene.runtime().join("go"), "").unwrap();
        let runs = self.runs.into_iter();
        let ended: Vec<_> = runs.map(|(run, _)| run.finish()).collect();
        // A killed leader's guardian may still be at work.
        wait_for("an empty folder", || {
            self.scene.leftovers().is_empty().then_some(())
        });
        ended
    }
}

#[test]
fn all_run_under_the_policy_that_one_of_them_names() {
    let gang: &[&str] = &["--policy", "gang"];
    let auto: &[&str] = &["--policy", "auto"];
    for round in 0..rounds() {
        let mut args = [auto, &[], &[]];
        args[(round + 1) % 3] = gang;
        let mut crowd = Crowd::start(&args);
        crowd.wait_for_started(3);
        for ended in crowd.end() {
            assert_eq!(ended.code, 0, "round {round}: {}", ended.stderr);
            assert_eq!(ended.report["policy"], "gang", "{:#}", ended.report);
            assert_eq!(ended.report["policy_requested"], "gang");
        }
    }
}

#[test]
fn a_quantum_that_one_of_them_names_holds_for_all() {
    let mut crowd = Crowd::start(&[&[]]);
    crowd.wait_for_started(1);
    crowd.add(&["--interval", "30ms"]);
    crowd.wait_for_started(2);
    let other = &["-q", "--interval", "40ms"];
    let other = (crowd.scene).start_as_asked("other", other, &["true"], |_| {});
    let other = other.finish();
    assert_eq!(other.code, 2, "{}", other.stderr);
    assert!(
        other.stderr.contains("an interval of 30 ms"),
        "{}",
        other.stderr
    );
    let led = crowd.end().swap_remove(0);
    assert_eq!(led.report["quantum"]["asked_ms"], 30.0, "{:#}", led.report);
}

#[test]
fn of_two_that_name_different_policies_the_second_is_refused_and_not_started() {
    for round in 0..rounds().div_ceil(3) {
        let mut crowd =
            Crowd::start(&[&["--policy", "gang"], &[], &["--policy", "spread:active=0"]]);
        crowd.wait_for_started(2);
        let refused: Vec<bool> = (crowd.runs.iter())
            .map(|(_, mark)| !mark.exists())
            .collect();
        let ended = crowd.end();
        let winner = if refused[0] { "spread" } else { "gang" };
        for (ended, refused) in ended.iter().zip(refused) {
            if refused {
                assert_eq!(ended.code, 2, "round {round}: {}", ended.stderr);
                assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
                let [gang, spread] = ["policy gang", "policy spread:active=0"];
                let names_both = ended.stderr.contains(gang) && ended.stderr.contains(spread);
                assert!(names_both, "{}", ended.stderr);
            } else {
                assert_eq!(ended.code, 0, "round {round}: {}", ended.stderr);
                // A member tells its group's policy with its options.
                let policy = ended.report["policy"].as_str().unwrap();
                assert!(policy.starts_with(winner), "{:#}", ended.report);
            }
        }
    }
}

#[test]
fn a_policy_that_cannot_run_here_is_refused_and_the_group_goes_on() {
    let mut crowd = Crowd::start(&[&[]]);
    crowd.wait_for_started(1);
    let profile = crowd.scene.runtime().join("profile.json");
    let text = "{\"programs\":[{\"name\":\"true\",\"llc_miss_rate\":0.5}]}";
    std::fs::write(&profile, text).unwrap();
    let args = [
        "-q",
        "--policy",
        "fair-mis",
        "--profile",
        profile.to_str().unwrap(),
    ];
    let refused = crowd.scene.start_as_asked("b", &args, &["true"], |_| {});
    let refused = refused.finish();
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    // The leader's own program is not in the profile.
    assert!(
        refused.stderr.contains("has no program 'sh'"),
        "{}",
        refused.stderr
    );
    crowd.add(&["--policy", "gang"]);
    crowd.wait_for_started(2);
    for ended in crowd.end() {
        assert_eq!(ended.report["policy"], "gang", "{:#}", ended.report);
    }
}

#[test]
fn a_member_that_leads_on_keeps_to_terms_that_were_settled_after_it_came() {
    let mut crowd = Crowd::start(&[&[]]);
    crowd.wait_for_started(1);
    crowd.add(&[]);
    crowd.wait_for_started(2);
    crowd.add(&["--policy", "gang"]);
    crowd.wait_for_started(3);
    let (mut leader, _) = crowd.runs.remove(0);
    leader.kill();
    let leads = |(run, _): &(Run, PathBuf)| {
        let mut children = children_of(run.pid()).into_iter();
        children.any(|pid| comm_of(pid) == "consort-guard")
    };
    wait_for("a member that leads", || {
        crowd.runs.iter().any(leads).then_some(())
    });
    crowd.add(&[]);
    crowd.wait_for_started(3);
    let ended = crowd.end();
    for ended in &ended {
        assert_eq!(ended.code, 0, "{}", ended.stderr);
        assert_eq!(ended.report["policy"], "gang", "{:#}", ended.report);
    }
    assert!(ended.iter().any(|ended| role(&ended.report) == "leader"));
}
