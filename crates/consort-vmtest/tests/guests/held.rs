//! Hold of nudges and of pins on places.

use crate::support::{WORKOVER, boot, check_nothing_left, guest, json};
use consort_vmtest::{GuestTopology, Outcome, Scenario, Story};
use serde_json::Value;

/// Least share of the time that as many busy threads as PUs stay in place. A busy host starves
/// guests, and then quanta last for seconds, in which threads that have drifted are not looked at.
const HELD: f64 = 0.6;

/// A run of workover: four fp threads, and so many others that the PUs are shared by so many.
fn run(name: &'static str, enact: &'static str, int: u32, sleepers: u32, foreign: u32) -> Scenario {
    let held = Story::Held {
        seconds: 25,
        foreign,
    };
    Scenario {
        enact,
        sleepers,
        one_program_per_kind: true,
        ..Scenario::new(name, held, WORKOVER, 4, int)
    }
}

fn report(outcome: &Outcome, name: &str) -> Value {
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

/// Runs whose threads were not held as long as they should, of one guest that runs all of them; none
/// where no guest can. Masks are put back at the first try, or it fails.
fn not_held(runs: &[Scenario]) -> Option<Vec<&'static str>> {
    let vm = runs
        .iter()
        .fold(guest(GuestTopology::smt(4, 2)), |vm, run| run.add_to(vm));
    let outcome = boot(&vm)?;
    let is_held = |run: &&Scenario| {
        // None where no plan could be judged.
        let adherence = report(&outcome, run.name)["adherence"].as_f64();
        adherence.is_some_and(|share| match run.name {
            "nudge-full" | "pin-full" => share >= HELD,
            _ => share > 0.0,
        })
    };
    let failed = runs.iter().filter(|run| !is_held(run));
    Some(failed.map(|run| run.name).collect())
}

/// Asserts that places are held, by the second try at the latest: a busy host can keep a guest from
/// any of it.
fn check_held(runs: &[Scenario]) {
    let Some(failed) = not_held(runs) else {
        return;
    };
    let again: Vec<Scenario> = { runs.iter() }
        .filter(|run| failed.contains(&run.name))
        .cloned()
        .collect();
    if !again.is_empty() {
        println!("not held, one more try: {failed:?}");
        assert_eq!(not_held(&again), Some(Vec::new()));
    }
}

#[test]
fn places_are_held_by_nudges() {
    check_held(&[
        run("nudge-full", "nudge", 4, 0, 0),
        run("nudge-twice", "nudge", 12, 0, 0),
        run("nudge-sleepers", "nudge", 4, 4, 0),
        run("nudge-foreign", "nudge", 4, 0, 2),
    ]);
}

#[test]
fn places_are_held_by_pins() {
    check_held(&[
        run("pin-full", "pin", 4, 0, 0),
        run("pin-twice", "pin", 12, 0, 0),
    ]);
}

#[test]
fn places_are_held_where_cores_have_four_ways() {
    let held = Story::Held {
        seconds: 30,
        foreign: 0,
    };
    let full = Scenario {
        enact: "nudge",
        one_program_per_kind: true,
        quota_percent: 6,
        interval_ms: 2000,
        ..Scenario::new("nudge-four-ways", held, WORKOVER, 8, 24)
    };
    let Some(outcome) = boot(&full.add_to(guest(GuestTopology::smt(8, 4)))) else {
        return;
    };
    let report = report(&outcome, full.name);
    assert!(report["adherence"].as_f64().unwrap() >= HELD, "{report:#}");
}
