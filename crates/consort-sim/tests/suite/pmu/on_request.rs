//! Signals that are told only where a policy asks for them.

use super::{QUANTUM_NS, counts, machine, pmu, thread};
use consort_core::{Sample, Signal};
use consort_sim::machine::{MachineSpec, Quantity};
use consort_sim::pmu::{PmuRequest, SimulatedPmu};

/// A chip with two counters and the events of cache and bus.
fn cache_and_bus() -> MachineSpec {
    let bus = [Quantity::BusBusyCycles, Quantity::BusQueueCycles];
    let cache = [Quantity::LlcAccesses, Quantity::LlcMisses];
    let mut chip = machine(
        2,
        &[Quantity::FpOperations, bus[0], cache[1], bus[1], cache[0]],
    );
    chip.pmu.read_noise = 0.0;
    chip
}

const ASKED: [Signal; 4] = [
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::BusBusyCycles,
    Signal::BusQueueCycles,
];

#[test]
fn cache_and_bus_are_told_where_they_are_asked_for_alone() {
    let chip = cache_and_bus();
    assert_eq!(pmu(&chip).offers().missing_signals(&ASKED), ASKED);
    let request = PmuRequest {
        signals: Some(ASKED.to_vec()),
        readouts: Vec::new(),
    };
    let pmu = SimulatedPmu::new(&chip, &request, 7).unwrap();
    assert!(pmu.offers().missing_signals(&ASKED).is_empty());
    assert!(pmu.offers().tier_of(Signal::FpUsage).is_none());
    let turn = |n| {
        pmu.counted_events(n)
            .skip(2)
            .map(|e| e.counts)
            .collect::<Vec<_>>()
    };
    assert_eq!(turn(0), [Quantity::LlcAccesses, Quantity::LlcMisses]);
    assert_eq!(turn(1), [Quantity::BusBusyCycles, Quantity::BusQueueCycles]);
}

#[test]
fn a_count_that_had_its_turn_is_that_of_the_quantum() {
    let request = PmuRequest {
        signals: Some(ASKED.to_vec()),
        readouts: Vec::new(),
    };
    let mut pmu = SimulatedPmu::new(&cache_and_bus(), &request, 7).unwrap();
    let mut truth = counts(0.5, 0.25, 0.0);
    (truth.flow.llc_accesses, truth.flow.llc_misses) = (4e6, 1e6);
    truth.stack.queue = 3e6;
    let first = pmu.sample(thread(1), &truth, QUANTUM_NS);
    let second = pmu.sample(thread(1), &truth, QUANTUM_NS);
    let reported = |sample: &Sample, signal| sample.get(signal).map(f64::round);
    assert_eq!(reported(&first, Signal::LlcAccesses), Some(4e6));
    assert_eq!(reported(&first, Signal::LlcMisses), Some(1e6));
    assert_eq!(reported(&first, Signal::BusQueueCycles), None);
    assert_eq!(reported(&second, Signal::BusQueueCycles), Some(3e6));
    // The last turn's, which its reading says.
    let old = second.reading(Signal::LlcMisses).unwrap();
    assert_eq!(
        (old.enabled_ns, old.running_ns),
        (2 * QUANTUM_NS, QUANTUM_NS)
    );
}
