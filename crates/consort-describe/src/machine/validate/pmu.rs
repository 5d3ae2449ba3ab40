//! Limits of a PMU.

use super::Range;
use crate::describe::Within;
use crate::machine::{EventSpec, PmuSpec, Quantity};
use std::collections::BTreeSet;

const PROGRAMMABLE: Range = (0.0, 256.0);
/// Above a third of the value, a count tells nothing.
const READ_NOISE: Range = (0.0, 0.3);
/// Events that can be listed; a slip of a generating script, not a PMU, makes more.
const EVENTS: usize = 1024;

pub(super) fn check(pmu: &PmuSpec, mut at: Within<'_>) {
    at.range("programmable", pmu.programmable, PROGRAMMABLE);
    at.range("read_noise", pmu.read_noise, READ_NOISE);
    let message = format!(
        "has {} entries; expected at most {EVENTS}",
        pmu.events.len()
    );
    at.require(pmu.events.len() <= EVENTS, "events", message);
    needed(pmu, &mut at);
    names(&pmu.events, &mut at);
}

/// Without these no sample has a time base.
fn needed(pmu: &PmuSpec, at: &mut Within<'_>) {
    for (quantity, name) in [
        (Quantity::Cycles, "cycles"),
        (Quantity::Instructions, "instructions"),
    ] {
        let counted = pmu.events.iter().any(|event| event.counts == quantity);
        let message = format!("has none that counts {name}; expected one");
        at.require(counted, "events", message);
    }
    let all_fixed = pmu.events.iter().all(|event| event.fixed);
    let message = "is 0 with events that need a counter; expected at least 1";
    at.require(pmu.programmable > 0 || all_fixed, "programmable", message);
}

fn names(events: &[EventSpec], at: &mut Within<'_>) {
    let (mut seen, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    for (index, event) in events.iter().enumerate() {
        let mut here = at.at(&format!("events[{index}]"));
        let message = "is empty; expected the vendor's name of the event";
        here.require(!event.name.trim().is_empty(), "name", message);
        let message = format!("'{}' is there twice; expected each name once", event.name);
        here.require(seen.insert(&event.name), "name", message);
        let once = !event.fixed || fixed.insert(event.counts);
        let message = "counts what another fixed event counts; expected one fixed counter for it";
        here.require(once, "counts", message);
    }
}
