//! The planner's promises, over random event sets.

use super::plan::{CounterBudget, CounterPlan, PlanInput, fits, plan};
use crate::events::{
    CounterKind, EventDefinition, EventUnit, Expr, FormulaPart, PmuEvents, SignalFormula,
    event_files,
};
use consort_core::Signal;
use proptest::prelude::*;
use std::collections::BTreeSet;

const WISHES: [Signal; 5] = [
    Signal::Cycles,
    Signal::Instructions,
    Signal::FpUsage,
    Signal::MemoryStall,
    Signal::CycleStack,
];

fn event(name: String, unit: EventUnit, place: CounterKind) -> EventDefinition {
    EventDefinition {
        name,
        config: 0,
        config1: 0,
        config2: 0,
        unit,
        place,
        counters: None,
        slots: 1,
        leader: None,
    }
}

#[derive(Clone, Debug)]
struct Shape {
    counters: Option<BTreeSet<usize>>,
    slots: usize,
    led: bool,
}

fn any_shape(programmable: usize) -> impl Strategy<Value = Shape> {
    let counters = prop::collection::btree_set(0..programmable, 1..=programmable);
    (
        prop::option::of(counters),
        1_usize..=2,
        prop::bool::weighted(0.2),
    )
        .prop_map(|(counters, slots, led)| Shape {
            counters,
            slots,
            led,
        })
}

fn shaped(index: usize, shape: &Shape) -> EventDefinition {
    let plain = event(
        format!("e{index}"),
        EventUnit::Operations,
        CounterKind::Programmable,
    );
    if shape.led {
        return EventDefinition {
            leader: Some("leader".to_owned()),
            place: CounterKind::Metric,
            ..plain
        };
    }
    EventDefinition {
        counters: shape.counters.as_ref().map(|c| c.iter().copied().collect()),
        slots: shape.slots,
        ..plain
    }
}

fn formula(signal: Signal, names: &[String]) -> SignalFormula {
    let part = |name: &String| FormulaPart {
        name: name.clone(),
        value: Expr::Name(name.clone()),
        optional: false,
    };
    SignalFormula {
        signal,
        value: None,
        components: Some(names.iter().map(part).collect()),
    }
}

prop_compose! {
    fn any_pmu()(programmable in 1_usize..9)(
        programmable in Just(programmable),
        anchors_fixed in any::<bool>(),
        shapes in prop::collection::vec(any_shape(programmable), 1..12),
        picks in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..6), 3),
    ) -> PmuEvents {
        let place = if anchors_fixed { CounterKind::Fixed } else { CounterKind::Programmable };
        let mut events = vec![
            event("cycles".to_owned(), EventUnit::Cycles, place),
            event("instructions".to_owned(), EventUnit::Instructions, place),
            event("leader".to_owned(), EventUnit::Slots, CounterKind::Fixed),
        ];
        events.extend(shapes.iter().enumerate().map(|(i, s)| shaped(i, s)));
        let name = |pick: &prop::sample::Index| format!("e{}", pick.index(shapes.len()));
        let names = |picks: &Vec<prop::sample::Index>| picks.iter().map(name).collect::<Vec<_>>();
        let mut formulas = vec![
            formula(Signal::Cycles, &["cycles".to_owned()]),
            formula(Signal::Instructions, &["instructions".to_owned()]),
        ];
        formulas.extend(WISHES[2..].iter().zip(&picks).map(|(&s, p)| formula(s, &names(p))));
        PmuEvents { names: vec!["cpu".to_owned()], programmable, fixed: 3, events, formulas }
    }
}

fn input(events: &PmuEvents, reserved: usize) -> PlanInput<'_> {
    PlanInput {
        pmu: "cpu".to_owned(),
        events,
        budget: CounterBudget {
            programmable: events.programmable,
            reserved,
        },
    }
}

fn events_of<'a>(pmu: &'a PmuEvents, names: &[String]) -> Vec<&'a EventDefinition> {
    names.iter().map(|n| pmu.event(n).unwrap()).collect()
}

/// Checks the laws that every plan obeys, whatever it was made from.
fn laws(plan: &CounterPlan, pmu: &PmuEvents, budget: CounterBudget) {
    for group in &plan.groups {
        let events = events_of(pmu, &group.events);
        assert!(fits(&events, budget), "{group:?} exceeds {budget:?}");
        for anchor in ["cycles", "instructions"] {
            assert!(
                group.events.iter().any(|e| e == anchor),
                "{group:?} lacks {anchor}"
            );
        }
        let distinct: BTreeSet<&String> = group.events.iter().collect();
        assert_eq!(
            distinct.len(),
            group.events.len(),
            "{group:?} has an event twice"
        );
        for leader in events.iter().filter_map(|e| e.leader.as_ref()) {
            assert_eq!(group.events.first(), Some(leader));
        }
    }
    let counted: BTreeSet<&str> = plan
        .groups
        .iter()
        .flat_map(|g| &g.events)
        .map(String::as_str)
        .collect();
    for (_, signal) in &plan.planned {
        let formula = pmu.formula(*signal).unwrap();
        let needed = formula.names().into_iter();
        assert!(needed.into_iter().all(|n| counted.contains(n)), "{signal}");
    }
    assert!(plan.unplanned.iter().all(|u| !u.reason.is_empty()));
}

proptest! {
    #[test]
    fn plans_obey_the_laws(pmu in any_pmu(), reserved in 0_usize..2) {
        let input = input(&pmu, reserved);
        let made = plan(&WISHES, std::slice::from_ref(&input));
        laws(&made, &pmu, input.budget);
        let answered = made.planned.len() + made.unplanned.len();
        prop_assert_eq!(answered, WISHES.len(), "every wish is answered once");
        prop_assert_eq!(&made, &plan(&WISHES, &[input]), "the same again");
    }

    #[test]
    fn the_order_of_wishes_does_not_matter(pmu in any_pmu(), wishes in Just(WISHES).prop_shuffle()) {
        let made = |wishes: &[Signal]| plan(wishes, &[input(&pmu, 0)]);
        prop_assert_eq!(made(&wishes), made(&WISHES));
    }
}

#[test]
fn built_in_files_plan_everything_they_have() {
    for file in event_files().unwrap() {
        for (pmu, reserved) in file.pmus.iter().flat_map(|p| [(p, 0), (p, 1)]) {
            let wanted: Vec<Signal> = pmu.formulas.iter().map(|f| f.signal).collect();
            let input = input(pmu, reserved);
            let made = plan(&wanted, std::slice::from_ref(&input));
            laws(&made, pmu, input.budget);
            assert_eq!(made.unplanned, [], "{}", file.name);
        }
    }
}

#[test]
fn l1d_accesses_take_a_counter_only_on_wish() {
    for file in event_files().unwrap() {
        let pmu = &file.pmus[0];
        let counted = |l1d| groups_of(&file.name, &pmu.wanted(l1d), 0).join(" ");
        let [with, without] = [true, false].map(counted);
        let mut formulas = pmu.formulas.iter();
        let formula = formulas.find(|f| f.signal == Signal::L1dAccesses).unwrap();
        for event in formula.names() {
            assert!(with.split(' ').any(|e| e == event), "{}", file.name);
            assert!(without.split(' ').all(|e| e != event), "{}", file.name);
        }
    }
}

fn groups_of(name: &str, wanted: &[Signal], reserved: usize) -> Vec<String> {
    let file = event_files()
        .unwrap()
        .into_iter()
        .find(|f| f.name == name)
        .unwrap();
    let made = plan(wanted, &[input(&file.pmus[0], reserved)]);
    made.groups.iter().map(|g| g.events.join(" ")).collect()
}

/// Feliu et al., HPCA 2016, section on the reduced stack: the five top-level
/// events of the POWER8 take two quanta. The optional sixth fits into the second.
#[test]
fn the_power8_stack_takes_two_quanta() {
    let groups = groups_of("power8", &[Signal::CycleStack], 0);
    assert_eq!(groups.len(), 2, "{groups:?}");
    assert!(groups[1].contains("dcache_miss_stall"), "{groups:?}");
}

#[test]
fn top_down_is_led_by_slots() {
    let groups = groups_of("intel-ice-lake", &[Signal::CycleStack, Signal::FpUsage], 1);
    let expect = "slots cycles instructions topdown_retiring topdown_bad_spec \
                  topdown_fe_bound topdown_be_bound fp_scalar fp_packed";
    assert_eq!(groups, [expect]);
}

#[test]
fn signal_without_formula_is_refused_with_reason() {
    let file = event_files()
        .unwrap()
        .into_iter()
        .find(|f| f.name == "amd-zen2")
        .unwrap();
    let made = plan(&[Signal::CycleStack], &[input(&file.pmus[0], 0)]);
    assert_eq!(made.groups, []);
    assert!(
        made.unplanned[0]
            .reason
            .contains("no formula for cycle-stack")
    );
}
