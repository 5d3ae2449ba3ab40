//! Event files of any text: refused with a line of the text, or made into plans
//! for every signal that they promise.

#![no_main]

use consort_core::Signal;
use consort_linux::counters::{CounterBudget, PlanInput, plan};
use consort_linux::events::{PmuEvents, parse_event_file};
use libfuzzer_sys::fuzz_target;

fn plan_all(pmu: &PmuEvents) {
    let wanted: Vec<Signal> = pmu.formulas.iter().map(|f| f.signal).collect();
    let input = PlanInput {
        pmu: "cpu".to_owned(),
        events: pmu,
        budget: CounterBudget::from_pmu(pmu, true),
    };
    let made = plan(&wanted, &[input]);
    assert_eq!(made.planned.len() + made.unplanned.len(), wanted.len());
}

fuzz_target!(|text: &str| {
    match parse_event_file("fuzzed.toml", text) {
        Ok(file) => file.pmus.iter().for_each(plan_all),
        Err(error) => assert!((1..=text.lines().count().max(1) + 1).contains(&error.line)),
    }
});
