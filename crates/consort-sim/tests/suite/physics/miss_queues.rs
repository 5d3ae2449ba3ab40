//! Miss queues that the threads of a core share by what each asks of them.

use super::build::{alone, machine_with, phase, slowdown};
use consort_sim::machine::{MachineSpec, PrefetchScope, PrefetcherSpec};
use consort_sim::program::PhaseSpec;
use proptest::prelude::*;

/// A core with a queue of so many lines, a prefetcher, a window for each thread and memory that
/// nobody queues for.
fn machine(entries: u32) -> MachineSpec {
    let mut machine = machine_with(|core| {
        core.outstanding_misses = entries;
        core.rob_entries = Some(512);
        core.rob_sharing = consort_sim::machine::RobSharing::Partitioned;
        core.prefetcher = Some(PrefetcherSpec {
            coverage: 1.0,
            depth_lines: 16,
            per: PrefetchScope::Core,
            streams: None,
            into: None,
        });
    });
    machine.memory.bandwidth_gb_s = 1000.0;
    machine.interconnect.bandwidth_gb_s = 1000.0;
    machine
}

/// Loads that miss every cache, so many of which overlap in any window of more than 64.
fn random_loads(overlap: f64) -> PhaseSpec {
    phase(|p| {
        p.data_mpki = vec![200.0; 14];
        let low = overlap.min(2.0);
        p.mlp.measured = Some([1.0, low, overlap, overlap, overlap, overlap, overlap]);
        p.mlp.value = overlap;
    })
}

/// A stream through memory that prefetchers follow: many more lines than its window would overlap.
fn stream() -> PhaseSpec {
    phase(|p| {
        p.data_mpki = vec![60.0; 14];
        p.mlp.value = 4.0;
        p.prefetch.effectiveness = 0.9;
    })
}

/// A chain of computing, which leaves dispatch to others.
fn computing() -> PhaseSpec {
    phase(|p| {
        p.ilp.a = 1.0;
        p.ilp.b = 0.0;
    })
}

#[test]
fn random_loads_hardly_slow_each_other_down_while_the_queue_has_room() {
    let loads = random_loads(5.0);
    let beside = slowdown(&machine(16), &loads, &loads);
    assert!((1.0..1.05).contains(&beside), "{beside}");
}

#[test]
fn random_loads_halve_each_other_where_each_fills_the_queue_alone() {
    let loads = random_loads(16.0);
    let beside = slowdown(&machine(16), &loads, &loads);
    assert!((1.6..2.0).contains(&beside), "{beside}");
}

#[test]
fn who_computes_leaves_the_queue_to_others() {
    for memory_bound in [random_loads(16.0), stream()] {
        let beside = slowdown(&machine(16), &memory_bound, &computing());
        assert!((1.0..1.1).contains(&beside), "{beside}");
    }
}

#[test]
fn a_stream_hurts_a_stream_more_than_it_hurts_computing() {
    let machine = machine(10);
    let of_stream = slowdown(&machine, &stream(), &stream());
    let of_computing = slowdown(&machine, &computing(), &stream());
    assert!(of_stream > of_computing + 0.1, "{of_stream} {of_computing}");
}

#[test]
fn a_stream_takes_room_from_random_loads() {
    let machine = machine(16);
    let loads = random_loads(16.0);
    let beside_stream = slowdown(&machine, &loads, &stream());
    let beside_computing = slowdown(&machine, &loads, &computing());
    assert!(
        beside_stream > beside_computing + 0.1,
        "{beside_stream} {beside_computing}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_longer_queue_slows_nobody_down(entries in 1u32..40, more in 1u32..20, overlap in 1.0f64..20.0) {
        for phase in [random_loads(overlap), stream()] {
            let (few, many) = (alone(&machine(entries), &phase), alone(&machine(entries + more), &phase));
            prop_assert!(many >= few * (1.0 - 1e-6), "{few} {many}");
        }
    }
}

/// Loads at scattered lines that all hit the L2.
fn l2_hits(per_instruction: f64) -> PhaseSpec {
    phase(|p| {
        (p.mix.load, p.mix.int) = (per_instruction, 0.9 - per_instruction);
        (p.mix.store, p.mix.branch) = (0.0, 0.1);
        p.data_mpki = vec![0.0; 14];
        p.data_mpki[..4].fill(1000.0 * per_instruction);
        p.mlp.value = 64.0;
        p.ilp.a = 4.0;
        // All of them overlap as far as the window goes.
        p.ilp.miss_costs = Some([0.0, 0.0]);
    })
}

#[test]
fn hits_in_the_l2_hold_entries() {
    // By hand: a load in two instructions, 12 cycles from the L2, four entries: 1.5 cycles per
    // instruction at least, so 0.67 instructions per cycle.
    let machine = |entries| {
        machine_with(|core| {
            core.l1d.miss_queue = Some(entries);
            core.l2.as_mut().unwrap().latency_cycles = 12.0;
        })
    };
    let ipc = alone(&machine(4), &l2_hits(0.5));
    assert!((ipc * 1.5 - 1.0).abs() < 0.05, "{ipc}");
    // Twice the entries, twice the speed.
    let twice = alone(&machine(8), &l2_hits(0.5));
    assert!((twice / ipc - 2.0).abs() < 0.1, "{twice} {ipc}");
    // Two threads share the entries.
    let beside = slowdown(&machine(4), &l2_hits(0.5), &l2_hits(0.5));
    assert!((beside - 2.0).abs() < 0.1, "{beside}");
}
