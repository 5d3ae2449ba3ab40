//! A made-up machine that obeys plans, and observations of it.

use crate::ids::{ProgramId, PuId, ThreadId};
use crate::plan::{Decision, Placement};
use crate::policy::{Policy, PolicyRng, View};
use crate::sample::{Observation, Reading, Sample, ThreadObservation};
use crate::signal::{Signal, Tier};
use crate::testing::opened;
use crate::topology::{CoreType, PuFacts, Topology};
use rand::SeedableRng;
use std::collections::BTreeMap;
use std::sync::Arc;

const SECOND_NS: u64 = 1_000_000_000;

/// Domains of two cores each, of which cores n and n + `llcs` share one.
pub(super) fn pairs(llcs: u32) -> Topology {
    let facts = (0..2 * llcs).map(|pu| PuFacts {
        pu: PuId(pu),
        package: 0,
        node: 0,
        core: pu,
        llc: pu % llcs,
        l2: None,
        core_type: 0,
    });
    Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
}

/// A thread of a program with what it counted in a second.
pub(super) fn thread(pid: u32, tid: u32, values: &[(Signal, f64)]) -> ThreadObservation {
    let mut sample = Sample::default();
    for &(signal, value) in values {
        sample.set(
            signal,
            Reading::fully_counted(value, Tier::Counters, SECOND_NS),
        );
    }
    ThreadObservation {
        id: ThreadId {
            pid,
            tid,
            start_ticks: 0,
        },
        name: "worker".into(),
        original: Arc::new("0-7".parse().unwrap()),
        managed: true,
        last_pu: None,
        sample,
    }
}

/// A second in which these threads were seen.
pub(super) fn seen(threads: Vec<ThreadObservation>) -> Observation {
    Observation {
        interval_ns: SECOND_NS,
        threads,
        ..Observation::default()
    }
}

/// A program of two threads.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load {
    /// Cores that it can use.
    pub(super) scaling: f64,
    /// Misses per access, and the weight by which it slows each other program down.
    pub(super) misses: f64,
}

/// Eight cores in domains of two; a core that a program holds draws 1 W.
pub(super) struct World {
    pub(super) topology: Topology,
    pub(super) loads: BTreeMap<u32, Load>,
    policy: Box<dyn Policy>,
    rng: PolicyRng,
    /// The last decision.
    pub(super) plan: Decision,
    /// Readings that are missing in the next interval.
    pub(super) missing: Vec<Signal>,
    /// Programs of which the second thread must be let alone.
    pub(super) let_alone: Vec<u32>,
    /// True where those threads are let alone for their affinity only.
    pub(super) self_placed: bool,
    /// Length of an interval, ns.
    pub(super) interval_ns: u64,
    /// Programs that do not want to run.
    pub(super) asleep: Vec<u32>,
    /// Users that programs belong to.
    pub(super) owners: BTreeMap<ProgramId, u32>,
    /// Work of each program, instructions.
    pub(super) done: BTreeMap<u32, f64>,
}

impl World {
    pub(super) fn new(policy: &str, loads: &[(f64, f64)]) -> Self {
        let load = |(n, &(scaling, misses)): (usize, &(f64, f64))| {
            (n as u32 + 1, Load { scaling, misses })
        };
        let topology = pairs(4);
        let policy = opened(&topology, policy);
        Self {
            topology,
            loads: loads.iter().enumerate().map(load).collect(),
            policy,
            rng: PolicyRng::seed_from_u64(1),
            plan: Decision::default(),
            missing: Vec::new(),
            let_alone: Vec::new(),
            self_placed: false,
            interval_ns: SECOND_NS,
            asleep: Vec::new(),
            owners: BTreeMap::new(),
            done: BTreeMap::new(),
        }
    }

    /// Runs a second under the last plan and makes the next.
    pub(super) fn turn(&mut self) -> &Decision {
        let observation = self.observe();
        let view = View {
            topology: &self.topology,
            observation: &observation,
        };
        self.plan = self.policy.decide(view, &mut self.rng);
        &self.plan
    }

    /// Programs that run, with their numbers of cores.
    pub(super) fn slot(&self) -> Vec<(u32, u32)> {
        let cores = |&pid: &u32| (pid, self.plan.teams.get(&ProgramId(pid)).copied());
        let all = self.loads.keys().map(cores);
        all.filter_map(|(pid, cores)| Some((pid, cores?))).collect()
    }

    fn observe(&mut self) -> Observation {
        let mut threads = Vec::new();
        for (&pid, load) in &self.loads {
            let paused = self.plan.paused.contains(&ProgramId(pid));
            let cores = self.plan.teams.get(&ProgramId(pid)).copied().unwrap_or(1);
            let others = self.slot().into_iter().filter(|(other, _)| *other != pid);
            let slowed: f64 = others.map(|(other, _)| self.loads[&other].misses).sum();
            let asleep = self.asleep.contains(&pid);
            let on = if paused || asleep { 0.0 } else { 1.0 };
            let speed = on * f64::from(cores).min(load.scaling) / (1.0 + slowed);
            *self.done.entry(pid).or_default() += speed * 1e9;
            for tid in 1..=2 {
                threads.push(self.thread(
                    (pid, tid),
                    load,
                    speed / 2.0,
                    on * f64::from(cores) / 2.0,
                ));
            }
        }
        let self_placed = threads.iter().filter(|t| !t.managed && self.self_placed);
        let self_placed = self_placed.map(|thread| thread.id).collect();
        Observation {
            self_placed,
            owners: self.owners.clone(),
            interval_ns: self.interval_ns,
            ..seen(threads)
        }
    }

    fn thread(
        &self,
        (pid, tid): (u32, u32),
        load: &Load,
        speed: f64,
        cores: f64,
    ) -> ThreadObservation {
        let values = [
            (Signal::CpuTime, cores * 1e9),
            (Signal::Cycles, cores * 1e9),
            (Signal::Instructions, speed * 1e9),
            (Signal::LlcAccesses, speed * 1e6),
            (Signal::LlcMisses, speed * 1e6 * load.misses),
            (Signal::BusBusyCycles, cores * 1e9 * load.misses),
            (Signal::BusQueueCycles, 0.0),
            (Signal::Energy, cores),
        ];
        let reported = |(signal, _): &(Signal, f64)| !self.missing.contains(signal);
        let values: Vec<(Signal, f64)> = values.into_iter().filter(reported).collect();
        let mut thread = thread(pid, 10 * pid + tid, &values);
        thread.managed = tid == 1 || !self.let_alone.contains(&pid);
        thread
    }

    /// Returns true where a placement restricts a thread to no CPU or to one that the machine does
    /// not have.
    pub(super) fn is_outside(&self, pus: &Placement) -> bool {
        match pus {
            Placement::Unrestricted => false,
            Placement::Restricted(pus) => pus.is_empty() || !pus.is_subset(self.topology.pus()),
        }
    }
}
