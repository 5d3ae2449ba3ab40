//! Threads of one program: what they share, and where.

use super::build::{demand, machine, phase};
use super::random::{machines, phases};
use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver, ThreadRates};
use consort_sim::machine::{MachineSpec, PrefetchScope, PrefetcherSpec};
use consort_sim::program::PhaseSpec;
use proptest::prelude::*;
use std::sync::Arc;

/// Two pairs of cores, each with a last level of its own, as on a Core 2 Quad.
fn two_domains(llc_kib: f64) -> MachineSpec {
    let mut machine = machine();
    machine.layout.llc_domains_per_node = 2;
    machine.layout.cluster[0].l2_domains = 2;
    machine.core_types.get_mut("big").unwrap().l2 = None;
    machine.llc.size_kib = llc_kib;
    machine.memory.bandwidth_gb_s = 1000.0;
    machine
}

/// Two programs of two threads each, with a core per thread: on the cores of one domain each
/// (`iso`), or on one core of every domain (`int`).
fn mapped(machine: &MachineSpec, phase: &PhaseSpec, shared: f64, iso: bool) -> Vec<ThreadRates> {
    let thread = |i: u32| Demand {
        shared_data: shared,
        ..demand(phase, i / 2)
    };
    let demands: Vec<Demand> = (0..4).map(thread).collect();
    let pus = if iso { [0, 2, 4, 6] } else { [0, 4, 2, 6] };
    let running: Vec<_> = pus
        .into_iter()
        .zip(&demands)
        .map(|(pu, demand)| RunningThread { pu, demand })
        .collect();
    let chip = Arc::new(Chip::new(machine, None).unwrap());
    Solver::new(chip).solve(&running).threads
}

fn missed(rates: &[ThreadRates]) -> f64 {
    rates.iter().map(|r| r.flow.llc_misses).sum()
}

fn large() -> PhaseSpec {
    phase(|p| p.data_mpki = (0..14).map(|i| 40.0 / f64::from(1 << i)).collect())
}

#[test]
fn siblings_under_one_last_level_hold_shared_data_once() {
    let machine = two_domains(1024.0);
    let iso = mapped(&machine, &large(), 1.0, true);
    let int = mapped(&machine, &large(), 1.0, false);
    // All is held once: each has the whole cache instead of half of it.
    assert!((iso[0].llc_bytes / int[0].llc_bytes - 2.0).abs() < 0.01);
    assert!((missed(&int) / missed(&iso) - 2.0).abs() < 0.05);
    let [iso, int] = [true, false].map(|iso| missed(&mapped(&machine, &large(), 0.0, iso)));
    assert!((iso / int - 1.0).abs() < 1e-6);
}

/// The same with a prefetcher for each domain: lines prefetched per instruction.
fn prefetched(phase: &PhaseSpec, shared: f64, iso: bool) -> f64 {
    let mut machine = two_domains(1024.0);
    let core = machine.core_types.get_mut("big").unwrap();
    core.prefetcher = Some(PrefetcherSpec {
        coverage: 1.0,
        depth_lines: 16,
        per: PrefetchScope::Llc,
        streams: None,
        into: None,
    });
    mapped(&machine, phase, shared, iso)[0]
        .flow
        .prefetched_lines
}

/// By hand: of each miss half is prefetched in time, and two lines are brought in vain: 2.5. Two
/// siblings on one prefetcher bring the two once, 1.5 each, though they share no data.
#[test]
fn what_siblings_prefetch_in_vain_overlaps_on_one_prefetcher() {
    let phase = phase(|p| {
        p.data_mpki = vec![10.0; 14];
        (p.prefetch.effectiveness, p.prefetch.excess) = (0.5, 2.0);
    });
    let (iso, int) = (
        prefetched(&phase, 0.0, true),
        prefetched(&phase, 0.0, false),
    );
    assert!((int / 0.025 - 1.0).abs() < 1e-9, "{int}");
    assert!((iso / 0.015 - 1.0).abs() < 1e-9, "{iso}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn sharing_under_one_last_level_never_misses_more_than_duplicating(
        phase in phases(),
        shared in 0.0f64..=1.0,
        llc_kib in 256.0f64..8192.0,
    ) {
        let machine = two_domains(llc_kib);
        let iso = missed(&mapped(&machine, &phase, shared, true));
        let int = missed(&mapped(&machine, &phase, shared, false));
        prop_assert!(iso <= int * (1.0 + 1e-4) + 1e-12, "{iso} {int}");
    }

    #[test]
    fn a_stranger_on_the_core_never_makes_branches_easier_to_predict(
        machine in machines(),
        one in phases(),
        other in phases(),
    ) {
        let chip = Arc::new(Chip::new(&machine, None).unwrap());
        let second = chip.places().iter().skip(1).position(|p| p.core == chip.places()[0].core);
        let Some(second) = second else { return Ok(()) };
        let demands = [demand(&one, 0), demand(&other, 1)];
        let running = [0, second + 1].into_iter().zip(&demands);
        let running: Vec<_> = running.map(|(pu, demand)| RunningThread { pu, demand }).collect();
        let solver = Solver::new(chip);
        let missed = |n: usize| solver.solve(&running[..n]).threads[0].flow.branch_misses;
        prop_assert!(missed(2) >= missed(1) * (1.0 - 1e-9));
    }

    #[test]
    fn transactions_by_kind_are_all_that_memory_carries(
        machine in machines(),
        phase in phases(),
    ) {
        let chip = Arc::new(Chip::new(&machine, None).unwrap());
        let demand = demand(&phase, 0);
        let flow = Solver::new(chip).solve(&[RunningThread { pu: 0, demand: &demand }]).threads[0].flow;
        let kinds = flow.llc_misses + flow.prefetched_lines + flow.code_lines + flow.written_lines;
        prop_assert!((kinds - flow.memory_lines).abs() <= 1e-12 * (1.0 + kinds));
        // No line arrives before memory's own latency has passed.
        let lines = flow.llc_misses + flow.prefetched_lines;
        let least = machine.memory.latency_ns * machine.core_types.values().map(|c| c.frequency_ghz).fold(f64::INFINITY, f64::min);
        prop_assert!(flow.outstanding_cycles >= lines * least * (1.0 - 1e-9));
    }
}
