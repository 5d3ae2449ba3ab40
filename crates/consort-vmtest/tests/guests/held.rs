//! How well places are held by nudges and by pins, on four cores of two ways.

use crate::support::{WORKOVER, boot, check_nothing_left, guest, json};
use consort_vmtest::{GuestTopology, Outcome, Scenario, Story};
use serde_json::Value;

/// Nudges keep as many busy threads as there are PUs at least so well; a busy host starves guests.
const HELD_BY_NUDGES: f64 = 0.9;
/// A lasting mask keeps threads in place but for the first quanta, before the first plan.
const HELD_BY_PINS: f64 = 0.97;

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

#[test]
fn places_are_held_by_nudges_and_by_pins() {
    let runs = [
        run("nudge-full", "nudge", 4, 0, 0),
        run("pin-full", "pin", 4, 0, 0),
        run("nudge-twice", "nudge", 12, 0, 0),
        run("pin-twice", "pin", 12, 0, 0),
        run("nudge-sleepers", "nudge", 4, 4, 0),
        run("nudge-foreign", "nudge", 4, 0, 2),
    ];
    let vm = runs
        .iter()
        .fold(guest(GuestTopology::smt(4, 2)), |vm, run| run.add_to(vm));
    let Some(outcome) = boot(&vm) else {
        return;
    };
    let reports = runs.map(|run| (run.name, report(&outcome, run.name)));
    let adherence = |name: &str| {
        let (_, report) = reports.iter().find(|(other, _)| *other == name).unwrap();
        report["adherence"].as_f64().unwrap()
    };
    assert!(adherence("nudge-full") >= HELD_BY_NUDGES);
    for name in ["pin-full", "pin-twice"] {
        assert!(adherence(name) >= HELD_BY_PINS, "{name}");
    }
    for name in ["nudge-twice", "nudge-sleepers", "nudge-foreign"] {
        assert!(adherence(name) > 0.0, "{name}");
    }
}
