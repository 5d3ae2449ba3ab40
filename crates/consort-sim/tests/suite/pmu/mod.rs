//! The simulated PMU: what policies may know, when, how exactly, and nothing else.

mod on_request;

use crate::small;
use consort_core::{Sample, Signal, ThreadId, Tier};
use consort_sim::contention::{CpiStack, InstructionActivity};
use consort_sim::engine::ThreadCounts;
use consort_sim::machine::{MachineSpec, PmuEventSpec, Quantity};
use consort_sim::pmu::{PmuRequest, Readout, SimulatedPmu};
use consort_sim::program::MixSpec;
use proptest::prelude::*;

const QUANTUM_NS: u64 = 100_000_000;

/// The quantities that an event can count.
const ALL: [Quantity; 38] = [
    Quantity::Cycles,
    Quantity::Instructions,
    Quantity::FpuEmptyCycles,
    Quantity::FpOperations,
    Quantity::L1dAccesses,
    Quantity::L1dMisses,
    Quantity::L1iMisses,
    Quantity::L2Misses,
    Quantity::L2DataMisses,
    Quantity::LlcMisses,
    Quantity::LlcAccesses,
    Quantity::PrefetchedLines,
    Quantity::MemoryLines,
    Quantity::BusBusyCycles,
    Quantity::BusQueueCycles,
    Quantity::Branches,
    Quantity::BranchMisses,
    Quantity::TlbMisses,
    Quantity::TlbWalkCycles,
    Quantity::StackBase,
    Quantity::StackUnits,
    Quantity::StackGroups,
    Quantity::StackFixedPoint,
    Quantity::StackFloatingPoint,
    Quantity::StackLoads,
    Quantity::StackFetch,
    Quantity::StackBranch,
    Quantity::StackData,
    Quantity::StackCoRunners,
    Quantity::LlcMissCycles,
    Quantity::UseDistances,
    Quantity::InOrderCycles,
    Quantity::BurstReads,
    Quantity::CodeLines,
    Quantity::WrittenLines,
    Quantity::OutstandingCycles,
    Quantity::BranchMissCycles,
    Quantity::FetchStallCycles,
];

/// The five top-level events of the POWER8, and its floating-point operations.
const POWER8: [Quantity; 6] = [
    Quantity::StackBase,
    Quantity::StackData,
    Quantity::StackFetch,
    Quantity::StackCoRunners,
    Quantity::StackUnits,
    Quantity::FpOperations,
];

fn event(counts: Quantity, fixed: bool) -> PmuEventSpec {
    PmuEventSpec {
        name: format!("PM_{counts:?}"),
        counts,
        fixed,
    }
}

/// A machine with fixed counters for cycles and instructions, and these events.
fn machine(programmable: u32, quantities: &[Quantity]) -> MachineSpec {
    let mut machine = small::machine();
    let fixed = [Quantity::Cycles, Quantity::Instructions].map(|q| event(q, true));
    let others = quantities.iter().map(|&q| event(q, false));
    machine.pmu.events = fixed.into_iter().chain(others).collect();
    machine.pmu.programmable = programmable;
    machine
}

fn pmu(machine: &MachineSpec) -> SimulatedPmu {
    SimulatedPmu::new(machine, &PmuRequest::default(), 7).unwrap()
}

fn thread(tid: u32) -> ThreadId {
    ThreadId {
        pid: 1,
        tid,
        start_ticks: 0,
    }
}

/// A thread that ran for the whole quantum, with a share of its cycles per cause.
fn counts(base: f64, memory: f64, fp: f64) -> ThreadCounts {
    let cycles = 2e8;
    let stack = CpiStack {
        base: base * cycles,
        memory: memory * cycles,
        dispatch: (1.0 - base - memory) * cycles,
        ..CpiStack::default()
    };
    let mut counts = ThreadCounts {
        on_pu_s: 0.1,
        cycles,
        instructions: 1e8,
        stack,
        ..ThreadCounts::default()
    };
    counts.classes.fp = fp * cycles;
    counts.flow.l2_misses = 0.03 * cycles;
    counts.flow.fpu_busy_cycles = fp * cycles;
    counts
}

#[test]
fn the_top_level_stack_of_the_power8_takes_two_quanta() {
    let mut pmu = pmu(&machine(4, &POWER8));
    assert_eq!(pmu.quanta(), 2);
    let truth = counts(0.5, 0.25, 0.125);
    assert!(pmu.sample(thread(1), &truth, QUANTUM_NS).stack.is_none());
    let sample = pmu.sample(thread(1), &truth, QUANTUM_NS);
    let (stack, tier) = sample.stack.as_ref().unwrap();
    assert_eq!(*tier, Tier::Counters);
    assert_eq!(stack.share("PM_StackBase"), Some(0.5));
    assert_eq!(stack.share("PM_StackData"), Some(0.25));
    assert_eq!(stack.share("PM_StackCoRunners"), Some(0.25));
    // Not every cause has an event, so the rest is told of too: nothing.
    assert_eq!(stack.share("other"), Some(0.0));
    assert_eq!(sample.get(Signal::FpUsage), Some(0.125));
}

#[test]
fn a_stale_ratio_keeps_its_value_and_tells_its_age() {
    let mut pmu = pmu(&machine(4, &POWER8));
    pmu.sample(thread(1), &counts(0.5, 0.25, 0.1), QUANTUM_NS);
    let fresh = pmu.sample(thread(1), &counts(0.5, 0.25, 0.3), QUANTUM_NS);
    assert!(!fresh.reading(Signal::FpUsage).unwrap().is_multiplexed());
    let stale = pmu.sample(thread(1), &counts(0.5, 0.25, 0.9), QUANTUM_NS);
    let reading = stale.reading(Signal::FpUsage).unwrap();
    assert_eq!(
        (reading.enabled_ns, reading.running_ns),
        (2 * QUANTUM_NS, QUANTUM_NS)
    );
    assert!((reading.scaled_value().unwrap() - 0.3).abs() < 1e-12);
    // What counts in every quantum is never stale.
    assert!(!stale.reading(Signal::Cycles).unwrap().is_multiplexed());
}

#[test]
fn a_thread_that_was_off_takes_no_turn_and_keeps_what_was_known() {
    let mut pmu = pmu(&machine(4, &POWER8));
    pmu.sample(thread(1), &counts(0.5, 0.25, 0.1), QUANTUM_NS);
    let off = pmu.sample(thread(1), &ThreadCounts::default(), QUANTUM_NS);
    assert_eq!(off.get(Signal::Cycles), Some(0.0));
    assert!(off.stack.is_none() && off.get(Signal::FpUsage).is_none());
    let on = pmu.sample(thread(1), &counts(0.5, 0.25, 0.1), QUANTUM_NS);
    assert!(on.stack.is_some());
}

#[test]
fn fpu_usage_is_one_less_empty_cycles_where_the_chip_counts_those() {
    let bulldozer = machine(6, &[Quantity::FpuEmptyCycles, Quantity::FpOperations]);
    let mut pmu = pmu(&bulldozer);
    let sample = pmu.sample(thread(1), &counts(0.5, 0.25, 0.25), QUANTUM_NS);
    assert_eq!(sample.get(Signal::FpUsage), Some(0.25));
}

#[test]
fn signals_without_events_are_not_offered() {
    let offers = pmu(&machine(4, &[Quantity::L2Misses])).offers().clone();
    assert_eq!(offers.tier_of(Signal::Cycles), Some(Tier::Counters));
    assert_eq!(offers.tier_of(Signal::CpuTime), Some(Tier::Software));
    let lacking = [
        Signal::FpUsage,
        Signal::CycleStack,
        Signal::MemoryStall,
        Signal::Mix,
    ];
    assert_eq!(offers.missing_signals(&lacking), lacking);
    let none = pmu(&machine(0, &POWER8)).offers().clone();
    assert_eq!(none.missing_signals(&lacking), lacking);
}

#[test]
fn what_pie_counts_is_told_where_it_has_counters_of_its_own() {
    let signals = [
        Signal::LlcMisses,
        Signal::LlcMissCycles,
        Signal::UseDistances,
        Signal::InOrderCycles,
    ];
    let counted = [
        Quantity::LlcMisses,
        Quantity::LlcMissCycles,
        Quantity::UseDistances,
        Quantity::InOrderCycles,
    ];
    let mut chip = machine(4, &counted);
    let programmable = pmu(&chip).offers().clone();
    assert_eq!(programmable.missing_signals(&signals), signals);
    chip.pmu.events.iter_mut().for_each(|e| e.fixed = true);
    let mut pmu = pmu(&chip);
    let mut truth = counts(0.5, 0.25, 0.0);
    truth.flow.llc_misses = 1e5;
    truth.flow.use_distance = 4e8;
    truth.flow.in_order_cycles = 9e7;
    truth.stack.queue = 1e6;
    let sample = pmu.sample(thread(1), &truth, QUANTUM_NS);
    let values = signals.map(|signal| sample.get(signal).unwrap());
    // A quarter of 2e8 cycles waits for memory, and 1e6 for its queues.
    let expected = [1e5, 5.1e7, 4e8, 9e7];
    for (value, expected) in values.into_iter().zip(expected) {
        assert!((value / expected - 1.0).abs() < 1e-12, "{value} {expected}");
    }
}

#[test]
fn bottlenecks_are_offered_where_locks_are_instrumented() {
    let mut chip = machine(4, &POWER8);
    let bottleneck = consort_core::policies::find("bottleneck").unwrap();
    let fed = |chip: &MachineSpec| {
        pmu(chip)
            .offers()
            .missing_signals(bottleneck.needs)
            .is_empty()
    };
    chip.os.instrumented_locks = false;
    assert!(!fed(&chip));
    chip.os.instrumented_locks = true;
    assert!(fed(&chip));
}

#[test]
fn cycles_without_a_fixed_counter_take_one_of_the_programmable() {
    let mut chip = machine(4, &POWER8);
    chip.pmu.events.iter_mut().for_each(|e| e.fixed = false);
    let pmu = pmu(&chip);
    // Two of four are left for five parts of the stack.
    assert_eq!(pmu.quanta(), 3);
    assert!((0..3).all(|turn| pmu.counted_events(turn).count() <= 4));
}

#[test]
fn asking_for_less_takes_fewer_quanta() {
    let request = PmuRequest {
        signals: Some(vec![Signal::FpUsage]),
        readouts: Vec::new(),
    };
    let pmu = SimulatedPmu::new(&machine(4, &POWER8), &request, 7).unwrap();
    assert_eq!(pmu.quanta(), 1);
    assert!(pmu.offers().tier_of(Signal::CycleStack).is_none());
}

#[test]
fn readouts_come_from_events() {
    let per_100_cycles: Readout = "l2-misses per 100 cycles".parse().unwrap();
    assert_eq!(per_100_cycles.to_string(), "l2-misses per 100 cycles");
    let per_second: Readout = "l2-misses per second".parse().unwrap();
    let request = PmuRequest {
        signals: None,
        readouts: vec![per_100_cycles, per_second],
    };
    let chip = machine(4, &[Quantity::L2Misses]);
    let mut pmu = SimulatedPmu::new(&chip, &request, 7).unwrap();
    assert!(pmu.readout(thread(1), 0).is_none());
    pmu.sample(thread(1), &counts(0.5, 0.25, 0.0), QUANTUM_NS);
    let value = |pmu: &SimulatedPmu, index| pmu.readout(thread(1), index).unwrap();
    assert!((value(&pmu, 0).value - 3.0).abs() < 1e-12);
    assert!((value(&pmu, 1).value - 6e7).abs() < 1e-3);
    pmu.sample(thread(1), &ThreadCounts::default(), QUANTUM_NS);
    assert_eq!(value(&pmu, 0).age_ns, QUANTUM_NS);
}

#[test]
fn readouts_that_cannot_be_had_are_errors() {
    let error = |text: &str| match text.parse::<Readout>() {
        Err(error) => error.to_string(),
        Ok(readout) => {
            let request = PmuRequest {
                signals: None,
                readouts: vec![readout],
            };
            let chip = machine(4, &[Quantity::L2Misses]);
            SimulatedPmu::new(&chip, &request, 7)
                .unwrap_err()
                .to_string()
        }
    };
    assert_eq!(
        error("l1d-misses per cycles"),
        "machine small cannot count l1d-misses; did you mean 'l2-misses'?"
    );
    assert_eq!(
        error("l9-misses per second"),
        "unknown quantity 'l9-misses'"
    );
    assert!(error("l2-misses per 0 cycles").starts_with("'l2-misses per 0 cycles' is not"));
}

#[test]
fn noise_is_each_threads_own() {
    let mut chip = machine(4, &POWER8);
    chip.pmu.read_noise = 0.05;
    let truth = counts(0.5, 0.25, 0.1);
    let (mut alone, mut beside) = (pmu(&chip), pmu(&chip));
    for _ in 0..10 {
        let other = beside.sample(thread(2), &truth, QUANTUM_NS);
        let sample = beside.sample(thread(1), &truth, QUANTUM_NS);
        assert_ne!(other.get(Signal::Cycles), sample.get(Signal::Cycles));
        assert_eq!(alone.sample(thread(1), &truth, QUANTUM_NS), sample);
    }
}

#[test]
fn cycles_are_off_by_the_stated_noise() {
    let mut chip = machine(4, &POWER8);
    chip.pmu.read_noise = 0.02;
    let mut pmu = pmu(&chip);
    let truth = counts(0.5, 0.25, 0.1);
    let n = 20_000;
    let errors: Vec<f64> = (0..n)
        .map(|_| pmu.sample(thread(1), &truth, QUANTUM_NS).activity() / truth.cycles - 1.0)
        .collect();
    let deviation = (errors.iter().map(|e| e * e).sum::<f64>() / f64::from(n)).sqrt();
    // Five standard errors of a deviation, 0.02/√(2n).
    assert!((deviation - 0.02).abs() < 5.0 * 0.02 / 200.0, "{deviation}");
}

fn flows() -> impl Strategy<Value = InstructionActivity> {
    prop::array::uniform18(0.0f64..1e12).prop_map(|f| InstructionActivity {
        l1d_accesses: f[0],
        l1d_misses: f[1],
        l1i_misses: f[2],
        l2_misses: f[3],
        llc_accesses: f[4],
        llc_misses: f[5],
        prefetched_lines: f[6],
        memory_lines: f[7],
        branch_misses: f[8],
        tlb_misses: f[9],
        fpu_busy_cycles: f[10],
        use_distance: f[11],
        in_order_cycles: f[12],
        code_lines: f[13],
        written_lines: f[14],
        outstanding_cycles: f[15],
        tlb_walk_cycles: f[16],
        groups: f[17],
        ..InstructionActivity::default()
    })
}

fn stacks() -> impl Strategy<Value = CpiStack> {
    prop::array::uniform12(0.0f64..1e12).prop_map(|s| CpiStack {
        base: s[0],
        units: s[1],
        fetch: s[2],
        branch: s[3],
        l2: s[4],
        llc: s[5],
        memory: s[6],
        queue: s[7],
        tlb: s[8],
        window: s[9],
        dispatch: s[10],
        lock: s[11],
    })
}

fn truths() -> impl Strategy<Value = ThreadCounts> {
    let classes = prop::array::uniform6(0.0f64..1e12);
    let times = (0.0f64..100.0, 0.0f64..100.0, 0.0f64..1e13);
    let all = (times, stacks(), flows(), classes);
    all.prop_map(|((on_pu_s, wait_s, cycles), stack, flow, c)| ThreadCounts {
        on_pu_s,
        wait_s,
        cycles,
        instructions: c.iter().sum(),
        classes: MixSpec {
            fp: c[0],
            vector: c[1],
            int: c[2],
            load: c[3],
            store: c[4],
            branch: c[5],
        },
        flow,
        stack,
        ..ThreadCounts::default()
    })
}

fn pmus() -> impl Strategy<Value = MachineSpec> {
    let events = prop::sample::subsequence(ALL.to_vec(), 0..=ALL.len());
    let fixed = prop::collection::vec(any::<bool>(), ALL.len());
    (events, fixed, 0u32..9, 0.0f64..0.5).prop_map(|(events, fixed, programmable, noise)| {
        let mut machine = small::machine();
        let events = events.iter().zip(fixed);
        machine.pmu.events = events.map(|(&q, fixed)| event(q, fixed)).collect();
        machine.pmu.programmable = programmable;
        machine.pmu.read_noise = noise;
        machine
    })
}

/// Whether all that a sample tells is finite and where it must be.
fn is_sane(sample: &Sample) -> bool {
    let within = |signal, max: f64| {
        let value = sample.get(signal);
        value.is_none_or(|v| v.is_finite() && (0.0..=max).contains(&v))
    };
    let shares = sample
        .stack
        .iter()
        .flat_map(|(stack, _)| stack.components());
    within(Signal::FpUsage, 1.0)
        && within(Signal::MemoryStall, 1.0)
        && within(Signal::Cycles, f64::MAX)
        && within(Signal::Instructions, f64::MAX)
        && within(Signal::CpuTime, f64::MAX)
        && shares.into_iter().all(|c| (0.0..=1.0).contains(&c.share))
}

proptest! {
    #[test]
    fn no_quantum_counts_more_events_than_there_are_counters(machine in pmus()) {
        let pmu = pmu(&machine);
        for turn in 0..pmu.quanta() {
            let programmed = pmu.counted_events(turn).filter(|e| !e.fixed).count();
            prop_assert!(programmed <= machine.pmu.programmable as usize);
        }
    }

    #[test]
    fn samples_are_finite_and_within_range_whatever_happened(
        machine in pmus(),
        truths in prop::collection::vec((truths(), 0..=QUANTUM_NS), 1..8),
    ) {
        let mut pmu = pmu(&machine);
        for (truth, interval_ns) in truths {
            let sample = pmu.sample(thread(1), &truth, interval_ns);
            prop_assert!(is_sane(&sample), "{sample:?}");
        }
    }

    #[test]
    fn what_has_no_event_does_not_show_in_a_sample(truth in truths(), flow in flows()) {
        let chip = machine(4, &[Quantity::FpOperations, Quantity::L2Misses]);
        let hidden = ThreadCounts {
            flow: InstructionActivity { l2_misses: truth.flow.l2_misses, ..flow },
            stack: CpiStack::default(),
            energy_j: truth.energy_j + 1.0,
            ..truth
        };
        let (mut a, mut b) = (pmu(&chip), pmu(&chip));
        let sample = a.sample(thread(1), &truth, QUANTUM_NS);
        prop_assert_eq!(sample, b.sample(thread(1), &hidden, QUANTUM_NS));
    }
}
