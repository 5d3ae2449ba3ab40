//! Stretches of a trial in which nothing is managed.

use crate::support::{WORKOVER, boot, check_ended, check_free, guest, json, masks};
use consort_vmtest::{
    GuestOutput, GuestTopology, LoadShare, Scenario, ScenarioKind, check_fp_spread,
};
use serde_json::Value;

#[test]
fn unmanaged_stretches_restore_masks_and_nudge_nothing() {
    let topology = GuestTopology::smt(4, 2);
    let pinned = Scenario {
        one_program_per_kind: true,
        ..Scenario::new("pinned", ScenarioKind::Trial, WORKOVER, 4, 4)
    };
    let nudged = Scenario {
        enact: "nudge",
        one_program_per_kind: true,
        share: LoadShare::Quota(10),
        ..Scenario::new("nudged", ScenarioKind::Trial, WORKOVER, 4, 4)
    };
    let Some(outcome) = boot(&nudged.add_to(pinned.add_to(guest(topology)))) else {
        return;
    };
    let cores = topology.topology().unwrap();
    for section in ["pinned-managed", "pinned-again"] {
        check_fp_spread(&masks(&outcome, section), &cores).unwrap();
    }
    for section in ["pinned-unmanaged", "pinned-second", "pinned-after"] {
        check_free(&outcome, section, 8, "0-7");
    }
    for name in ["pinned", "nudged"] {
        check_ended(&outcome, name);
        let verdict = &json(&outcome, &format!("{name}-report"))["verdict"];
        assert!(
            verdict["pairs"].is_u64() && verdict["measure"].is_string(),
            "{verdict}"
        );
    }
    check_nudges(&outcome);
}

/// Asserts that threads were nudged in managed stretches and not in the unmanaged ones.
fn check_nudges(outcome: &GuestOutput) {
    let lines = outcome.output("nudged-timeline").unwrap().lines();
    let events: Vec<Value> = lines
        .map(|line| serde_json::from_str(line.trim_end_matches(',')).unwrap())
        .collect();
    let of_kind = |ph: &'static str| events.iter().filter(move |event| event["ph"] == ph);
    let number = |event: &Value, key: &str| event[key].as_f64().unwrap();
    let unmanaged: Vec<[f64; 2]> = of_kind("X")
        .map(|event| {
            let from = number(event, "ts");
            [from, from + number(event, "dur")]
        })
        .collect();
    assert!(!unmanaged.is_empty(), "{events:?}");
    let nudged: Vec<f64> = of_kind("C")
        .filter(|event| number(&event["args"], "value") > 0.0)
        .map(|event| number(event, "ts"))
        .collect();
    assert!(!nudged.is_empty(), "{events:?}");
    for at in nudged {
        let is_within = |[from, to]: &[f64; 2]| (*from..*to).contains(&at);
        assert!(
            !unmanaged.iter().any(is_within),
            "nudged at {at}: {unmanaged:?}"
        );
    }
}
