//! Time that a policy takes to decide, on made-up observations that have every signal.
//!
//! A policy that says that it is of no use on such a machine has no rows.

use super::case::{BenchCase, Effort, measure_ns};
use super::{Bench, BenchError};
use crate::ExperimentError;
use consort_core::policy::{Policy, PolicyError, PolicyInfo, PolicyRng, PolicySpec, View};
use consort_core::topology::{CoreType, PuFacts};
use consort_core::{
    Bottleneck, BottleneckKind, CycleStack, Mix, Observation, PuId, PuSet, Reading, Sample, Signal,
    SignalOffers, ThreadId, ThreadObservation, Tier, Topology, policies,
};
use consort_sim::machine::presets;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use rand::{RngExt, SeedableRng};
use std::hint::black_box;
use std::sync::Arc;

/// Observations that a policy sees in turn.
const QUANTA: u64 = 8;

/// A machine and what runs on it: a thread for every CPU.
pub(super) struct DecisionLoad {
    suffix: &'static str,
    /// Cores of the two machines.
    cores: [u32; 2],
    smt: u32,
    /// Cores of a last-level cache domain; all when none.
    domain: Option<u32>,
    siblings: u32,
    text: &'static str,
}

/// A program on every CPU of cores that are shared.
const SHARED_CORES: DecisionLoad = DecisionLoad {
    suffix: "",
    cores: [40, 512],
    smt: 2,
    domain: None,
    siblings: 1,
    text: "80 threads on 40 cores, 1024 on 512",
};

/// Programs of several threads on cores that are not shared, so that only the guidelines of
/// `holistic` decide.
const SHARED_CACHES: DecisionLoad = DecisionLoad {
    suffix: "-guidelines",
    cores: [80, 1024],
    smt: 1,
    domain: Some(8),
    siblings: 4,
    text: "80 threads of 20 programs on 80 cores, 1024 of 256 on 1024",
};

/// One policy among some threads.
pub(super) struct DecisionBench {
    policy: &'static PolicyInfo,
    crowd: &'static DecisionLoad,
}

/// The benches of a policy.
pub(super) fn policy_benches(policy: &'static PolicyInfo) -> Vec<DecisionBench> {
    let crowds: &[&'static DecisionLoad] = match policy.name {
        "holistic" => &[&SHARED_CORES, &SHARED_CACHES],
        _ => &[&SHARED_CORES],
    };
    { crowds.iter() }
        .map(|&crowd| DecisionBench { policy, crowd })
        .collect()
}

impl Bench for DecisionBench {
    fn name(&self) -> String {
        format!("decide-{}{}", self.policy.name, self.crowd.suffix)
    }

    fn summary(&self) -> String {
        format!("one decision of {}: {}", self.policy.name, self.crowd.text)
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let mut cases = Vec::new();
        for cores in self.crowd.cores {
            cases.extend(self.case(cores, effort)?);
        }
        Ok(cases)
    }
}

impl DecisionLoad {
    fn topology(&self, cores: u32) -> Result<Topology, BenchError> {
        let facts = (0..cores * self.smt).map(|pu| PuFacts {
            pu: PuId(pu),
            package: 0,
            node: 0,
            core: pu % cores,
            llc: self.domain.map_or(0, |domain| pu % cores / domain),
            l2: None,
            core_type: 0,
        });
        Ok(Topology::new(facts.collect(), vec![CoreType::uniform()])?)
    }
}

impl DecisionBench {
    fn case(&self, cores: u32, effort: Effort) -> Result<Option<BenchCase>, BenchError> {
        let name = format!("{}-{}", self.name(), self.crowd.smt * cores);
        let spec: PolicySpec = self.policy.name.parse().map_err(ExperimentError::from)?;
        let topology = self.crowd.topology(cores)?;
        let offers = offers()?;
        let policy = match policies::open(&topology, &offers, &spec) {
            Err(PolicyError::Unfit { .. }) => return Ok(None),
            opened => opened.map_err(ExperimentError::from)?,
        };
        let seen = observations(&topology, &offers, self.crowd.siblings, QUANTA);
        let measure = measure_ns(effort, decision_step(policy, topology, seen));
        Ok(Some(BenchCase::from_measure(name, "ns", measure)))
    }
}

/// Lets a policy decide on one observation after the other.
fn decision_step(
    mut policy: Box<dyn Policy>,
    topology: Topology,
    seen: Vec<Observation>,
) -> impl FnMut() {
    let mut rng = PolicyRng::seed_from_u64(1);
    let mut next = 0;
    move || {
        let view = View {
            topology: &topology,
            observation: &seen[next % seen.len()],
        };
        next += 1;
        black_box(policy.decide(black_box(view), &mut rng));
    }
}

const INTERVAL_NS: u64 = 100_000_000;
/// Clock, cycles per ns.
const GHZ: f64 = 3.0;
/// Signals of every observed thread, in addition to its mix and its stack.
const SIGNALS: [Signal; 20] = [
    Signal::CpuTime,
    Signal::WaitTime,
    Signal::Cycles,
    Signal::Instructions,
    Signal::FpUsage,
    Signal::MemoryStall,
    Signal::CodeFootprint,
    Signal::ContextSwitches,
    Signal::Migrations,
    Signal::PageFaults,
    Signal::FutexReturns,
    Signal::L1dAccesses,
    Signal::LlcAccesses,
    Signal::LlcMisses,
    Signal::LlcMissCycles,
    Signal::UseDistances,
    Signal::InOrderCycles,
    Signal::BusBusyCycles,
    Signal::BusQueueCycles,
    Signal::Energy,
];
/// The machine whose cycle stack threads have.
const MACHINE: &str = "power8";

/// Offers of the machine.
pub(super) fn offers() -> Result<SignalOffers, BenchError> {
    let pmu = SimulatedPmu::new(&presets::find(MACHINE)?, &PmuRequest::default(), 1);
    let mut offers = pmu.map_err(ExperimentError::from)?.offers().clone();
    for signal in SIGNALS.into_iter().chain([Signal::Bottlenecks]) {
        offers.add(signal, Tier::Counters);
    }
    Ok(offers)
}

/// Observations of successive quanta: a thread for every CPU, on which it ran all the time;
/// `siblings` in succession are of one program.
pub(super) fn observations(
    topology: &Topology,
    offers: &SignalOffers,
    siblings: u32,
    quanta: u64,
) -> Vec<Observation> {
    let original = Arc::new(topology.pus().clone());
    let quantum = |number: u64| {
        let mut rng = PolicyRng::seed_from_u64(number);
        let pus = topology.pus().iter();
        Observation {
            time_ns: (number + 1) * INTERVAL_NS,
            interval_ns: INTERVAL_NS,
            threads: pus
                .map(|pu| thread(name(pu, siblings), pu, &original, offers, &mut rng))
                .collect(),
            bottlenecks: locks(topology, siblings, number),
            ..Observation::default()
        }
    };
    (0..quanta).map(quantum).collect()
}

/// A lock for every two CPUs; the thread on one holds it, that on the other waits.
fn locks(topology: &Topology, siblings: u32, number: u64) -> Vec<Bottleneck> {
    let pus: Vec<PuId> = topology.pus().iter().collect();
    let pairs = pus.chunks_exact(2).enumerate();
    pairs
        .map(|(id, pair)| Bottleneck {
            id: id as u64,
            kind: BottleneckKind::Lock,
            executers: vec![name(pair[number as usize % 2], siblings)],
            waiters: vec![name(pair[1 - number as usize % 2], siblings)],
            waited_ns: INTERVAL_NS / (id as u64 + 2),
        })
        .collect()
}

/// The thread on a CPU: its program is named by the first of its siblings.
fn name(pu: PuId, siblings: u32) -> ThreadId {
    ThreadId {
        pid: 1000 + pu.0 / siblings * siblings,
        tid: 1000 + pu.0,
        start_ticks: 0,
    }
}

fn thread(
    id: ThreadId,
    pu: PuId,
    original: &Arc<PuSet>,
    offers: &SignalOffers,
    rng: &mut PolicyRng,
) -> ThreadObservation {
    ThreadObservation {
        id,
        name: format!("program-{}", id.pid).into(),
        original: Arc::clone(original),
        managed: true,
        last_pu: Some(pu),
        sample: sample(offers, rng),
    }
}

fn sample(offers: &SignalOffers, rng: &mut PolicyRng) -> Sample {
    let mut share = || rng.random::<f64>();
    let mut sample = Sample::default();
    for signal in SIGNALS {
        let value = value(signal, share());
        sample.set(
            signal,
            Reading::fully_counted(value, Tier::Counters, INTERVAL_NS),
        );
    }
    let mix = Mix::from_array(std::array::from_fn(|_| share()));
    sample.mix = Some(mix.normalised());
    let parts = offers.stack().iter().map(|name| (name.clone(), share()));
    let stack = CycleStack::from_amounts(parts.collect::<Vec<_>>());
    sample.stack = Some((stack, Tier::Counters));
    sample
}

/// A value of a signal's usual size, by lot.
fn value(signal: Signal, lot: f64) -> f64 {
    let ns = INTERVAL_NS as f64;
    match signal {
        Signal::CpuTime => ns,
        Signal::Cycles => ns * GHZ,
        Signal::Instructions
        | Signal::L1dAccesses
        | Signal::UseDistances
        | Signal::InOrderCycles => ns * GHZ * (0.2 + 2.0 * lot),
        Signal::LlcAccesses => ns * 0.01,
        Signal::LlcMisses => ns * 0.01 * lot,
        Signal::LlcMissCycles | Signal::BusBusyCycles | Signal::BusQueueCycles => ns * lot,
        Signal::CodeFootprint => 1e5 * lot,
        Signal::ContextSwitches | Signal::Migrations => 1.0,
        Signal::WaitTime | Signal::PageFaults | Signal::FutexReturns => 0.0,
        _ => lot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn observations_feed_every_policy() {
        let topology = Topology::uniform(4, 2).unwrap();
        let offers = offers().unwrap();
        let made = observations(&topology, &offers, 1, 3);
        assert_eq!(made, observations(&topology, &offers, 1, 3));
        assert_ne!(made[0], made[1]);
        assert_eq!(made[0].threads.len(), 8);
        for info in policies::REGISTRY {
            let sample = &made[0].threads[0].sample;
            let bottlenecks = &made[0].bottlenecks;
            let has = |signal: &&Signal| match signal {
                Signal::Mix => sample.mix.is_some(),
                Signal::CycleStack => sample.stack.is_some(),
                Signal::Bottlenecks => !bottlenecks.is_empty(),
                other => sample.get(**other).is_some(),
            };
            assert!(
                info.needs.iter().all(|signal| has(&signal)),
                "{}",
                info.name
            );
        }
    }
}
