//! Hold of nudges and of pins on places.

use crate::support::{WORKOVER, boot, check_nothing_left, guest, json};
use consort_vmtest::{GuestOutput, GuestTopology, LoadShare, Scenario, ScenarioKind};
use serde_json::Value;

/// Least share of the time that as many busy threads as CPUs stay in place. A busy host starves
/// guests, and then quanta last for seconds, in which threads that have drifted are not looked at.
const HELD: f64 = 0.6;

/// A run of workover: four fp threads, and so many others that the CPUs are shared by so many.
fn run(name: &'static str, enact: &'static str, int: u32, sleepers: u32, foreign: u32) -> Scenario {
    let held = ScenarioKind::Held {
        seconds: 14,
        foreign,
    };
    Scenario {
        enact,
        sleepers,
        one_program_per_kind: true,
        share: LoadShare::Quota(10),
        ..Scenario::new(name, held, WORKOVER, 4, int)
    }
}

fn report(outcome: &GuestOutput, name: &str) -> Value {
    let report = json(outcome, &format!("{name}-report"));
    assert_eq!(report["restored"], true, "{report:#}");
    check_nothing_left(outcome, name);
    let share = |key: &str| report[key].as_f64();
    println!(
        "{name}: enactor {}, adherence {:?}, pairs {:?}, {} nudges in {} plans",
        report["enactor"],
        share("adherence"),
        share("pair_adherence"),
        report["nudges"],
        report["plans"]
    );
    report
}

/// Runs, each in a guest of its own, whose threads were not held as long as they should. Masks are
/// put back at the first try, or it fails.
fn not_held(topology: GuestTopology, runs: &[Scenario]) -> Vec<Scenario> {
    let is_held = |run: &Scenario| {
        let Some(outcome) = boot(&run.add_to(guest(topology))) else {
            return true;
        };
        // None where no plan could be judged.
        let adherence = report(&outcome, run.name)["adherence"].as_f64();
        adherence.is_some_and(|share| {
            if run.name.ends_with("-full") {
                share >= HELD
            } else {
                share > 0.0
            }
        })
    };
    std::thread::scope(|scope| {
        let guests: Vec<_> = runs
            .iter()
            .map(|run| scope.spawn(|| is_held(run)))
            .collect();
        let held = guests.into_iter().map(|guest| guest.join().unwrap());
        let failed = runs.iter().zip(held).filter(|(_, held)| !held);
        failed.map(|(run, _)| run.clone()).collect()
    })
}

/// Asserts that places are held, by the second try at the latest: a busy host can keep a guest from
/// any of it.
fn check_held(topology: GuestTopology, runs: &[Scenario]) {
    let failed = not_held(topology, runs);
    if !failed.is_empty() {
        println!("not held, one more try: {failed:?}");
        assert_eq!(not_held(topology, &failed), []);
    }
}

#[test]
fn places_are_held_by_nudges() {
    check_held(
        GuestTopology::smt(4, 2),
        &[
            run("nudge-full", "nudge", 4, 0, 0),
            run("nudge-twice", "nudge", 12, 0, 0),
            run("nudge-sleepers", "nudge", 4, 4, 0),
            run("nudge-foreign", "nudge", 4, 0, 2),
        ],
    );
}

#[test]
fn places_are_held_by_pins() {
    check_held(
        GuestTopology::smt(4, 2),
        &[
            run("pin-full", "pin", 4, 0, 0),
            run("pin-twice", "pin", 12, 0, 0),
        ],
    );
}

#[test]
fn places_are_held_where_cores_have_four_ways() {
    let held = ScenarioKind::Held {
        seconds: 20,
        foreign: 0,
    };
    let full = Scenario {
        enact: "nudge",
        one_program_per_kind: true,
        share: LoadShare::Quota(6),
        interval_ms: 1000,
        ..Scenario::new("four-ways-full", held, WORKOVER, 8, 24)
    };
    check_held(GuestTopology::smt(8, 4), &[full]);
}
