//! Small machines and observations for the tests of this crate.

use crate::ids::ThreadId;
use crate::policies;
use crate::policy::{Policy, PolicyInfo};
use crate::sample::{Observation, Reading, Sample, ThreadObservation};
use crate::signal::{Signal, Tier};
use crate::topology::Topology;
use std::sync::Arc;

/// Length of the intervals that [`observation`] makes, ns.
pub(crate) const INTERVAL_NS: u64 = 1_000_000_000;

pub(crate) fn thread_id(tid: u32) -> ThreadId {
    ThreadId {
        pid: 1,
        tid,
        start_ticks: 0,
    }
}

/// Opens a policy on a machine that offers every signal of any policy.
pub(crate) fn opened(topology: &Topology, text: &str) -> Box<dyn Policy> {
    let of = |info: &PolicyInfo| info.needs.iter().chain((info.uses)(topology));
    let signals = policies::REGISTRY.iter().flat_map(of);
    let offers = signals.map(|&signal| (signal, Tier::Counters)).collect();
    policies::open(topology, &offers, &text.parse().unwrap()).unwrap()
}

/// Fully active threads, each with an FPU usage.
pub(crate) fn observation(topology: &Topology, threads: &[(u32, f64)]) -> Observation {
    let active = |&(tid, fp): &(u32, f64)| (tid, fp, 1.0);
    observation_with_activity(topology, &threads.iter().map(active).collect::<Vec<_>>())
}

/// Threads as (tid, FPU usage, share of a CPU).
pub(crate) fn observation_with_activity(
    topology: &Topology,
    threads: &[(u32, f64, f64)],
) -> Observation {
    let mut threads: Vec<ThreadObservation> = threads
        .iter()
        .map(|&(tid, fp, share)| thread(topology, tid, fp, share))
        .collect();
    threads.sort_by_key(|t| t.id);
    Observation {
        time_ns: INTERVAL_NS,
        interval_ns: INTERVAL_NS,
        threads,
        ..Observation::default()
    }
}

fn thread(topology: &Topology, tid: u32, fp: f64, share: f64) -> ThreadObservation {
    let mut sample = Sample::default();
    let cpu_ns = share * INTERVAL_NS as f64;
    sample.set(
        Signal::CpuTime,
        Reading::fully_counted(cpu_ns, Tier::Proc, INTERVAL_NS),
    );
    sample.set(
        Signal::FpUsage,
        Reading::fully_counted(fp, Tier::Sampling, INTERVAL_NS),
    );
    ThreadObservation {
        id: thread_id(tid),
        name: format!("thread-{tid}").into(),
        original: Arc::new(topology.pus().clone()),
        managed: true,
        last_pu: None,
        sample,
    }
}
