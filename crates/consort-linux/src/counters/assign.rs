//! A test whether a set of events fits into a PMU's counters at once.

use super::budget::CounterBudget;
use crate::events::{CounterKind, EventDefinition};

/// Returns true if all the events can be counted at the same time.
///
/// Counters reserved for others, such as the NMI watchdog, may be any of them: the kernel moves
/// events to other counters where it can (`x86_schedule_events`), so only the number reserved
/// matters.
pub(crate) fn fits(events: &[&EventDefinition], budget: CounterBudget) -> bool {
    let needs = |e: &&&EventDefinition| e.place == CounterKind::Programmable;
    let mut needy: Vec<&EventDefinition> = events.iter().filter(needs).copied().collect();
    let wanted: usize = needy.iter().map(|e| e.slots).sum();
    if wanted + budget.reserved > budget.programmable {
        return false;
    }
    needy.retain(|e| e.counters.is_some() || e.slots > 1);
    needy.sort_by_key(|e| counter_sets(e, budget.programmable).len());
    place(&needy, 0, budget.programmable)
}

/// Places constrained events one after the other, going back where that fails; `taken` has a bit
/// for each counter in use. Unconstrained events then fit into the counters that are left.
fn place(events: &[&EventDefinition], taken: u64, counters: usize) -> bool {
    let Some((first, rest)) = events.split_first() else {
        return true;
    };
    let free = |way: &u64| taken & way == 0;
    let mut ways = counter_sets(first, counters).into_iter().filter(free);
    ways.any(|way| place(rest, taken | way, counters))
}

/// The sets of counters, as bits, that can hold one event.
fn counter_sets(event: &EventDefinition, counters: usize) -> Vec<u64> {
    let allowed = |c: &usize| event.counters.as_ref().is_none_or(|list| list.contains(c));
    let single = (0..counters).filter(allowed);
    match event.slots {
        1 => single.map(|c| 1 << c).collect(),
        _ => single
            .filter(|c| c % 2 == 0 && c + 1 < counters)
            .map(|c| 0b11 << c)
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventUnit;

    fn event(counters: Option<&[usize]>, slots: usize) -> EventDefinition {
        EventDefinition {
            name: "e".to_owned(),
            config: 0,
            config1: 0,
            config2: 0,
            unit: EventUnit::Operations,
            place: CounterKind::Programmable,
            counters: counters.map(<[usize]>::to_vec),
            slots,
            leader: None,
        }
    }

    fn check(events: &[EventDefinition], programmable: usize, reserved: usize, expect: bool) {
        let events: Vec<&EventDefinition> = events.iter().collect();
        let budget = CounterBudget {
            programmable,
            reserved,
        };
        assert_eq!(fits(&events, budget), expect, "{events:?} in {budget:?}");
    }

    #[test]
    fn constraints_hold() {
        let any = event(None, 1);
        let pair = event(None, 2);
        check(&[any.clone(), any.clone()], 2, 0, true);
        check(&[any.clone(), any.clone()], 2, 1, false);
        check(&[pair.clone(), pair.clone(), any.clone()], 6, 1, true);
        check(&[pair.clone(), pair, any], 5, 0, true);
        let second = event(Some(&[1]), 1);
        check(&[second.clone(), second.clone()], 4, 0, false);
        let either = event(Some(&[1, 2]), 1);
        check(&[either.clone(), second, either], 4, 0, false);
    }

    #[test]
    fn a_pair_starts_at_an_even_counter() {
        let pair = event(None, 2);
        let middle = event(Some(&[1]), 1);
        check(&[pair.clone(), middle], 3, 0, false);
        let last = event(Some(&[2]), 1);
        check(&[pair, last], 3, 0, true);
    }
}
