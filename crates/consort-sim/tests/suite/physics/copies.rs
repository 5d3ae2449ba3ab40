//! Copies of a program: one binary, each its own data.

use super::build::{demand, machine, machine_with, phase};
use super::random::{draw, machines, phases};
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::contention::{Demand, RunningThread, ThreadRates};
use consort_sim::machine::{MachineSpec, Scope};
use consort_sim::program::PhaseSpec;
use proptest::prelude::*;
use std::sync::Arc;

/// Code and data that do not fit their first-level caches, branches that need a predictor.
fn large() -> PhaseSpec {
    phase(|p| {
        p.instruction_mpki = (0..14).map(|i| 30.0 / f64::from(1 << i)).collect();
        p.data_mpki = (0..14).map(|i| 40.0 / f64::from(1 << i)).collect();
        p.branch.mpki = 5.0;
    })
}

/// Copies of one binary, or programs of their own that are just like it.
fn threads(phase: &PhaseSpec, n: usize, copies: bool) -> Vec<Demand> {
    let thread = |i: usize| Demand {
        text: if copies { 0 } else { i as u32 },
        shared_code: 1.0,
        ..demand(phase, i as u32)
    };
    (0..n).map(thread).collect()
}

fn solve(machine: &MachineSpec, demands: &[Demand], pus: &[usize]) -> Vec<ThreadRates> {
    let placed = pus.iter().zip(demands);
    let running: Vec<_> = placed
        .map(|(&pu, demand)| RunningThread { pu, demand })
        .collect();
    let chip = Arc::new(Chip::new(machine, None).unwrap());
    Solver::new(chip).solve(&running).threads
}

#[test]
fn copies_on_one_core_share_code_but_neither_data_nor_training() {
    let machine = machine_with(|core| core.branch_predictor.per = Scope::Core);
    let of = |n, copies| solve(&machine, &threads(&large(), n, copies), &[0, 1])[0].flow;
    let (alone, copies, unlike) = (of(1, true), of(2, true), of(2, false));
    let near = |a: f64, b: f64| (a / b - 1.0).abs() < 1e-6;
    assert!(near(copies.l1i_misses, alone.l1i_misses));
    assert!(unlike.l1i_misses > 1.2 * alone.l1i_misses);
    assert!(copies.branch_misses > 1.1 * alone.branch_misses);
    assert!(unlike.branch_misses > 1.1 * alone.branch_misses);
    assert!(copies.l1d_misses > 1.2 * alone.l1d_misses);
    assert!(near(copies.l1d_misses, unlike.l1d_misses));
}

#[test]
fn siblings_train_for_each_other_in_the_same_phase() {
    let machine = machine_with(|core| core.branch_predictor.per = Scope::Core);
    let other_phase = phase(|p| {
        *p = large();
        p.length_ginstr *= 2.0;
    });
    let next_to = |second: &PhaseSpec, shared_code: f64| {
        let thread = |phase: &PhaseSpec| Demand {
            shared_code,
            ..demand(phase, 0)
        };
        let demands = [thread(&large()), thread(second)];
        solve(&machine, &demands, &[0, 1])[0].flow.branch_misses
    };
    let alone = solve(&machine, &threads(&large(), 1, true), &[0])[0]
        .flow
        .branch_misses;
    assert!((next_to(&large(), 1.0) / alone - 1.0).abs() < 1e-6);
    let half = next_to(&large(), 0.5);
    assert!(half > 1.05 * alone);
    assert!(next_to(&other_phase, 1.0) > half);
}

#[test]
fn copies_on_all_cores_leave_more_of_the_llc_to_data() {
    let mut machine = machine();
    machine.llc.size_kib = 1024.0;
    let pus = [0, 2, 4, 6];
    let of = |copies| solve(&machine, &threads(&large(), 4, copies), &pus)[0];
    let (copies, unlike) = (of(true), of(false));
    assert!(copies.llc_bytes > 1.05 * unlike.llc_bytes);
    assert!(copies.ips > unlike.ips);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn no_copy_is_faster_than_alone(
        machine in machines(),
        phase in phases(),
        intensities in prop::collection::vec(0.3f64..3.0, 1..9),
        seed in any::<u64>(),
    ) {
        // A copy in another LLC domain does help: its lines of code are nearer than memory.
        let mut machine = machine;
        machine.llc.remote_latency_ns = None;
        let chip = Chip::new(&machine, None).unwrap();
        let n = intensities.len().min(chip.places().len());
        let pus = draw(chip.places().len(), n, seed);
        let mut demands = threads(&phase, n, true);
        for (demand, intensity) in demands.iter_mut().zip(intensities) {
            demand.intensity = intensity;
        }
        let together = solve(&machine, &demands, &pus);
        for (i, with) in together.iter().enumerate() {
            let without = solve(&machine, &demands[i..=i], &pus[i..=i])[0];
            prop_assert!(with.ips <= without.ips * (1.0 + 1e-4), "{with:#?} {without:#?}");
        }
    }
}
