//! Promise: signals follow from counts as the formulas say, also when groups
//! are multiplexed or spread over the PMUs of a hybrid chip.

use consort_core::{Sample, Signal};
use consort_linux::counters::{
    CounterBudget, CounterPlan, EventRates, PlanInput, PmuProgram, fill_signals, plan,
};
use consort_linux::events::{EventFile, event_files};
use consort_linux::perf::GroupDelta;
use std::collections::BTreeMap;

fn file(name: &str) -> EventFile {
    let files = event_files().expect("the built-in files are well formed");
    let found = files.into_iter().find(|f| f.name == name);
    found.expect("the file is built in")
}

fn planned(file: &EventFile, pmu: usize, wanted: &[Signal]) -> (CounterPlan, PmuProgram) {
    let events = &file.pmus[pmu];
    let name = events.names[0].trim_end_matches('*').to_owned();
    let input = PlanInput {
        pmu: name.clone(),
        events,
        budget: CounterBudget::from_pmu(events, false),
    };
    let plan = plan(wanted, &[input]);
    let program = PmuProgram::new(&plan, &name, 4, events).expect("something is planned");
    (plan, program)
}

/// The deltas of all groups, for these counts of events per group.
fn deltas(plan: &CounterPlan, times: (u64, u64), counts: &[(&str, u64)]) -> Vec<GroupDelta> {
    let counts: BTreeMap<&str, u64> = counts.iter().copied().collect();
    let count = |name: &String| counts.get(name.as_str()).copied().unwrap_or(0);
    let delta = |events: &Vec<String>| GroupDelta {
        counts: events.iter().map(count).collect(),
        enabled_ns: times.0,
        running_ns: times.1,
    };
    plan.groups.iter().map(|g| delta(&g.events)).collect()
}

/// The sample of a thread that only this program has counted.
fn filled(program: PmuProgram, deltas: &[GroupDelta]) -> Sample {
    let mut sample = Sample::default();
    let mut rates = [EventRates::default()];
    fill_signals(&mut sample, &[program], &mut rates, deltas);
    sample
}

fn near(value: Option<f64>, expect: f64) {
    let value = value.expect("there is a value");
    assert!((value - expect).abs() < 1e-9, "{value}, expected {expect}");
}

#[test]
fn fpu_usage_is_one_less_empty_cycles() {
    let (plan, program) = planned(&file("amd-bulldozer"), 0, &[Signal::FpUsage]);
    let counts = [("cycles", 1000), ("instructions", 500), ("fpu_empty", 250)];
    let deltas = deltas(&plan, (10, 10), &counts);
    let sample = filled(program, &deltas);
    near(sample.get(Signal::FpUsage), 0.75);
    near(sample.get(Signal::Cycles), 1000.0);
    near(sample.get(Signal::Instructions), 500.0);
}

#[test]
fn multiplexed_counts_are_scaled_and_shares_are_not() {
    let (plan, program) = planned(&file("amd-bulldozer"), 0, &[Signal::FpUsage]);
    let counts = [("cycles", 1000), ("instructions", 500), ("fpu_empty", 250)];
    let deltas = deltas(&plan, (40, 10), &counts);
    let sample = filled(program, &deltas);
    near(sample.get(Signal::Cycles), 4000.0);
    assert!(sample.reading(Signal::Cycles).unwrap().is_multiplexed());
    near(sample.get(Signal::FpUsage), 0.75);
}

#[test]
fn accesses_and_misses_of_the_last_level_cache_are_counts() {
    let wanted = [Signal::LlcAccesses, Signal::LlcMisses];
    for (name, accesses, misses) in [
        ("intel-skylake", "llc_references", "llc_misses"),
        ("arm-neoverse-n1", "ll_cache_rd", "ll_cache_miss_rd"),
    ] {
        let (plan, program) = planned(&file(name), 0, &wanted);
        let counts = [
            ("cycles", 1000),
            ("instructions", 500),
            (accesses, 40),
            (misses, 10),
        ];
        let deltas = deltas(&plan, (40, 10), &counts);
        let mut sample = Sample::default();
        fill_signals(
            &mut sample,
            &[program],
            &mut [EventRates::default()],
            &deltas,
        );
        near(sample.get(Signal::LlcAccesses), 160.0);
        near(sample.get(Signal::LlcMisses), 40.0);
        assert_eq!(sample.get(Signal::FpUsage), None, "{name}");
    }
}

#[test]
fn a_group_that_never_ran_gives_nothing() {
    let (plan, program) = planned(&file("amd-bulldozer"), 0, &[Signal::FpUsage]);
    let deltas = deltas(&plan, (40, 0), &[]);
    let sample = filled(program, &deltas);
    assert_eq!(sample, Sample::default());
}

#[test]
fn the_zen4_stack_is_in_dispatch_slots() {
    let (plan, program) = planned(&file("amd-zen4"), 0, &[Signal::CycleStack]);
    let counts = [
        ("cycles", 100),
        ("instructions", 200),
        ("ops_retired", 300),
        ("ops_dispatched", 360),
        ("slots_front_end", 60),
        ("slots_back_end", 120),
        ("slots_other_thread", 60),
    ];
    let deltas = deltas(&plan, (10, 10), &counts);
    let sample = filled(program, &deltas);
    let stack = sample.stack.unwrap().0;
    let expect = [
        ("retiring", 0.5),
        ("bad-speculation", 0.1),
        ("front-end", 0.1),
        ("back-end", 0.2),
        ("other-thread", 0.1),
    ];
    expect
        .iter()
        .for_each(|&(name, share)| near(stack.share(name), share));
}

/// Peternier et al.: usage on POWER7 is PM_FLOP over PM_CYC.
#[test]
fn fpu_usage_of_power7_is_operations_per_cycle() {
    let (plan, program) = planned(&file("power7"), 0, &[Signal::FpUsage]);
    let counts = [("cycles", 1000), ("instructions", 700), ("flop", 250)];
    let sample = filled(program, &deltas(&plan, (10, 10), &counts));
    near(sample.get(Signal::FpUsage), 0.25);
}

/// The POWER8's five events take two groups, of which a short quantum may see one: the stack is there
/// after both.
#[test]
fn a_stack_is_complete_when_every_group_has_run() {
    let (plan, program) = planned(&file("power8"), 0, &[Signal::CycleStack]);
    assert_eq!(plan.groups.len(), 2);
    let counts = [
        ("cycles", 100),
        ("instructions", 50),
        ("group_completed", 20),
        ("completion_stall", 40),
        ("pipeline_empty", 10),
        ("thread_conflict", 20),
        ("all_finished", 10),
        ("dcache_miss_stall", 30),
    ];
    let all = deltas(&plan, (10, 10), &counts);
    let mut rates = [EventRates::default()];
    let mut quantum = |on: usize| {
        let mut now = all.clone();
        now[1 - on] = GroupDelta::default();
        let mut sample = Sample::default();
        fill_signals(
            &mut sample,
            std::slice::from_ref(&program),
            &mut rates,
            &now,
        );
        sample
    };
    assert!(quantum(0).stack.is_none());
    let stack = quantum(1).stack.unwrap().0;
    near(stack.share("base"), 0.2);
    // Of the stalls, data have three quarters.
    near(stack.share("stall"), 0.1);
    near(stack.share("stall/data"), 0.3);
    near(stack.share("other-thread"), 0.2);
    assert!(
        quantum(0).stack.is_some(),
        "the other group's rates are remembered"
    );
}

#[test]
fn optional_component_stays_in_the_whole_where_it_is_not_counted() {
    let mut file = file("power8");
    // No counter is left for it.
    file.pmus[0]
        .events
        .retain(|event| event.name != "dcache_miss_stall");
    let (plan, program) = planned(&file, 0, &[Signal::CycleStack]);
    let counts = [
        ("cycles", 100),
        ("instructions", 50),
        ("group_completed", 60),
        ("completion_stall", 40),
        ("pipeline_empty", 0),
        ("thread_conflict", 0),
        ("all_finished", 0),
    ];
    let sample = filled(program, &deltas(&plan, (10, 10), &counts));
    let stack = sample.stack.unwrap().0;
    near(stack.share("stall"), 0.4);
    assert_eq!(stack.share("stall/data"), None);
}

#[test]
fn hybrid_counts_add_up() {
    let file = file("intel-alder-lake");
    let (core_plan, core) = planned(&file, 0, &[Signal::CycleStack, Signal::FpUsage]);
    let (atom_plan, atom) = planned(&file, 1, &[Signal::CycleStack]);
    let counts = |cycles| {
        vec![
            ("cycles", cycles),
            ("instructions", 2 * cycles),
            ("topdown_retiring", cycles),
            ("topdown_be_bound", cycles),
            ("slots_retired", cycles),
            ("slots_fe_bound", 3 * cycles),
            ("fp_scalar", cycles),
        ]
    };
    let mut all = deltas(&core_plan, (100, 75), &counts(3000));
    all.extend(deltas(&atom_plan, (100, 25), &counts(1000)));
    let mut sample = Sample::default();
    fill_signals(
        &mut sample,
        &[core, atom],
        &mut [EventRates::default(), EventRates::default()],
        &all,
    );
    near(sample.get(Signal::Cycles), 4000.0);
    near(sample.get(Signal::Instructions), 8000.0);
    near(sample.get(Signal::FpUsage), 0.5);
    let stack = sample.stack.unwrap().0;
    near(stack.share("back-end"), 0.5);
}
