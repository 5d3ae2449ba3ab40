//! Limits of a PMU.

use super::ValueRange;
use crate::describe::KeyScope;
use crate::machine::{PmuEventSpec, PmuSpec, Quantity};
use std::collections::BTreeSet;

const PROGRAMMABLE: ValueRange = (0.0, 256.0);
/// Above a third of the value, a count means nothing.
const READ_NOISE: ValueRange = (0.0, 0.3);
/// Events that can be listed; a slip of a generating script, not a PMU, makes more.
const EVENTS: usize = 1024;

pub(super) fn check(pmu: &PmuSpec, mut at: KeyScope<'_>) {
    at.check_range("programmable", pmu.programmable, PROGRAMMABLE);
    at.check_range("read_noise", pmu.read_noise, READ_NOISE);
    let message = format!(
        "has {} entries; expected at most {EVENTS}",
        pmu.events.len()
    );
    at.require(pmu.events.len() <= EVENTS, "events", message);
    check_time_base(pmu, &mut at);
    check_names(&pmu.events, &mut at);
}

/// Without these no sample has a time base.
fn check_time_base(pmu: &PmuSpec, at: &mut KeyScope<'_>) {
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

fn check_names(events: &[PmuEventSpec], at: &mut KeyScope<'_>) {
    let (mut seen, mut fixed) = (BTreeSet::new(), BTreeSet::new());
    for (index, event) in events.iter().enumerate() {
        let mut here = at.child(&format!("events[{index}]"));
        let message = "is empty; expected the vendor's name of the event";
        here.require(!event.name.trim().is_empty(), "name", message);
        let message = format!("'{}' is there twice; expected each name once", event.name);
        here.require(seen.insert(&event.name), "name", message);
        let once = !event.fixed || fixed.insert(event.counts);
        let message = "counts what another fixed event counts; expected one fixed counter for it";
        here.require(once, "counts", message);
    }
}
