//! Cost of a solution: how it grows with the number of threads.
//!
//! `cargo bench -p consort-sim --bench solve`

#![expect(
    clippy::unwrap_used,
    dead_code,
    reason = "a bench may fail loudly and uses part of the builders"
)]

#[path = "../tests/suite/physics/build.rs"]
mod build;

use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::program::PhaseSpec;
use std::sync::Arc;

fn main() {
    divan::main();
}

/// Four kinds of programs in turn on a chip of SMT2 cores, 8 to an LLC domain, all CPUs taken.
#[divan::bench(args = [4, 16, 32, 64, 128, 256, 512, 1024])]
fn all_pus_taken(bencher: divan::Bencher<'_, '_>, threads: usize) {
    let mut machine = build::machine();
    machine.layout.cluster[0].l2_domains = 2;
    machine.layout.llc_domains_per_node = threads.div_ceil(4) as u32;
    machine.memory.controllers_per_node = threads.div_ceil(8) as u32;
    machine.interconnect.bandwidth_gb_s = 10.0 * threads as f64;
    let kinds: [PhaseSpec; 4] = [
        build::compute(),
        build::chaser(),
        build::random_loads(),
        build::streamer(),
    ];
    let chip = Arc::new(Chip::new(&machine, None).unwrap());
    let prepared = kinds.map(|kind| build::demand(&kind, 0));
    let demands: Vec<Demand> = (0..threads)
        .map(|i| Demand {
            program: i as u32,
            text: i as u32,
            ..prepared[i * 7 % 4].clone()
        })
        .collect();
    let running: Vec<RunningThread<'_>> = demands
        .iter()
        .enumerate()
        .map(|(pu, demand)| RunningThread { pu, demand })
        .collect();
    let solver = Solver::new(chip);
    bencher
        .counter(divan::counter::ItemsCount::new(threads))
        .bench_local(|| solver.solve(divan::black_box(&running)));
}
