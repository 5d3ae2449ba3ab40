//! Hold of nudges and of pins on places.

use crate::support::{WORKOVER, check_nothing_left, guest, json, try_boot};
use consort_vmtest::{GuestOutput, GuestTopology, LoadShare, Scenario, ScenarioKind};
use serde_json::Value;

/// Least share of the time that as many busy threads as CPUs stay in place. A busy host starves
/// guests, and then quanta last for seconds, in which threads that have drifted are not looked at.
const HELD: f64 = 0.6;

/// A run of workover: four fp threads, and so many others that the CPUs are shared by so many.
fn run(name: &'static str, enact: &'static str, int: u32, sleepers: u32, foreign: u32) -> Scenario {
    let held = ScenarioKind::Held {
        seconds: 28,
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

/// Boots the run in a guest of its own and tells whether its threads were held as long as they
/// should be, or why not. Masks are put back at the first try, or it fails.
fn try_to_hold(topology: GuestTopology, run: &Scenario) -> Result<(), String> {
    let Some(outcome) = try_boot(&run.add_to(guest(topology)))? else {
        return Ok(());
    };
    let least = if run.name.ends_with("-full") {
        HELD
    } else {
        f64::MIN_POSITIVE
    };
    match report(&outcome, run.name)["adherence"].as_f64() {
        Some(share) if share >= least => Ok(()),
        Some(share) => Err(format!("{share} of the time in place, not {least}")),
        None => Err("no plan could be judged".to_owned()),
    }
}

/// Asserts that places are held. Each try lasts twice as long as the one before: where a busy host
/// starves the guest, a quantum takes seconds, and only the number of plans counts.
fn check_held(topology: GuestTopology, runs: &[Scenario]) {
    let check = |run: &Scenario| {
        let ScenarioKind::Held { seconds, foreign } = run.story else {
            unreachable!("all runs here hold");
        };
        let failures: Vec<String> = [1, 2, 4]
            .into_iter()
            .map_while(|times| {
                let seconds = times * seconds;
                let story = ScenarioKind::Held { seconds, foreign };
                let again = Scenario { story, ..*run };
                try_to_hold(topology, &again).err()
            })
            .collect();
        assert!(failures.len() < 3, "{}: {failures:?}", run.name);
    };
    std::thread::scope(|scope| {
        for run in runs {
            scope.spawn(move || check(run));
        }
    });
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
        seconds: 40,
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
