//! Time of one decision of a policy: `cargo bench -p consort-core`.
//!
//! The budget: below 1 ms for 80 threads on 40 cores, below 20 ms for 1,024 threads on 512 cores.
//! Every iteration sees other FPU usages, so group membership changes and nothing is settled.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use consort_core::policy::{PolicyRng, View};
use consort_core::{
    Observation, Reading, Sample, Signal, SignalOffers, ThreadId, ThreadObservation, Tier,
    Topology, policies,
};
use divan::Bencher;
use rand::{RngExt, SeedableRng};
use std::sync::Arc;

const SIZES: &[(u32, u32)] = &[(80, 40), (1_024, 512)];
const INTERVAL_NS: u64 = 1_000_000_000;

fn main() {
    divan::main();
}

fn thread(tid: u32, topology: &Topology, rng: &mut PolicyRng) -> ThreadObservation {
    let mut sample = Sample::default();
    let busy = Reading::fully_counted(INTERVAL_NS as f64, Tier::Proc, INTERVAL_NS);
    sample.set(Signal::CpuTime, busy);
    let usage = Reading::fully_counted(rng.random(), Tier::Sampling, INTERVAL_NS);
    sample.set(Signal::FpUsage, usage);
    ThreadObservation {
        id: ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        },
        name: "bench".into(),
        original: Arc::new(topology.pus().clone()),
        managed: true,
        last_pu: topology.pus().first(),
        sample,
    }
}

fn observation(threads: u32, topology: &Topology, rng: &mut PolicyRng) -> Observation {
    Observation {
        time_ns: INTERVAL_NS,
        interval_ns: INTERVAL_NS,
        threads: (1..=threads)
            .map(|tid| thread(tid, topology, rng))
            .collect(),
        ..Observation::default()
    }
}

fn decide(bencher: Bencher<'_, '_>, name: &str, (threads, cores): (u32, u32)) {
    let topology = Topology::uniform(cores, 2).unwrap();
    let mut rng = PolicyRng::seed_from_u64(1);
    let needs = policies::find(name).unwrap().needs.iter();
    let offers: SignalOffers = needs.map(|&signal| (signal, Tier::Counters)).collect();
    let mut policy = policies::open(&topology, &offers, &name.parse().unwrap()).unwrap();
    let mut next = PolicyRng::seed_from_u64(2);
    bencher
        .with_inputs(|| observation(threads, &topology, &mut next))
        .bench_local_refs(|seen| {
            let view = View {
                topology: &topology,
                observation: seen,
            };
            policy.decide(view, &mut rng)
        });
}

#[divan::bench(args = SIZES)]
fn workover(bencher: Bencher<'_, '_>, size: &(u32, u32)) {
    decide(bencher, "workover", *size);
}

#[divan::bench(args = SIZES)]
fn spread(bencher: Bencher<'_, '_>, size: &(u32, u32)) {
    decide(bencher, "spread", *size);
}

#[divan::bench(args = SIZES)]
fn random(bencher: Bencher<'_, '_>, size: &(u32, u32)) {
    decide(bencher, "random", *size);
}
