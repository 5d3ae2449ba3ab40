//! The policy, asked at every cycle.

use crate::cycle::CycleInputs;
use crate::error::RtlError;
use crate::unit_parameters::{UnitParameters, UnitPolicy as Unit};
use consort_core::policies;
use consort_core::policy::{Policy, PolicyRng, PolicySpec, View};
use consort_core::{
    IntervalEnd, Observation, Placement, PuId, PuSet, Reading, Sample, Signal, ThreadId,
    ThreadObservation, Tier, Topology,
};
use rand::SeedableRng;
use std::sync::Arc;

/// Exchanges by group: the small and the large core.
pub(crate) type Swaps = Vec<Option<(usize, usize)>>;

/// Cycles that went by.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ElapsedCycles<'a> {
    /// Number of cycles.
    pub(crate) cycles: u32,
    /// True where the quantum ended with the last of them.
    pub(crate) taken: bool,
    /// Groups in which no logical core could be exchanged in the last of them.
    pub(crate) held: &'a [bool],
}

/// A policy for a chip's logical cores.
pub(crate) struct ReferencePolicy {
    setting: UnitParameters,
    topology: Topology,
    policy: Box<dyn Policy>,
    rng: PolicyRng,
    all: Arc<PuSet>,
    /// CPU by core.
    pus: Vec<PuId>,
    was_kernel: Vec<bool>,
    /// Thread by core, where one is switched in (tcs).
    threads: Vec<Option<u32>>,
    active: Vec<bool>,
}

/// Part of a cycle that a policy is shown.
struct PolicyInterval<'a> {
    inputs: &'a CycleInputs,
    time: u32,
    counts: bool,
    is_quantum: bool,
    /// Cores that came back to user code.
    returned: Vec<bool>,
    /// Groups in which no logical core can be exchanged yet.
    held: &'a [bool],
}

impl ReferencePolicy {
    pub(crate) fn new(setting: &UnitParameters) -> Result<Self, RtlError> {
        let topology = setting.topology()?;
        let n = setting.cores;
        let spec: PolicySpec = setting.policy_text().parse()?;
        let needs = policies::find(&spec.name)?.needs.iter();
        let offers = needs.map(|&signal| (signal, Tier::Counters)).collect();
        Ok(Self {
            setting: *setting,
            policy: policies::open(&topology, &offers, &spec)?,
            rng: PolicyRng::seed_from_u64(1),
            all: Arc::new(topology.pus().clone()),
            pus: (0..n as u32).map(PuId).collect(),
            topology,
            was_kernel: vec![false; n],
            threads: vec![None; n],
            active: vec![false; n],
        })
    }

    /// The core that is on a group's large core.
    pub(crate) fn core_on_large(&self, group: usize) -> usize {
        let large = PuId(self.setting.large_core(group) as u32);
        self.pus.iter().position(|&pu| pu == large).unwrap_or(0)
    }

    /// The thread that is on a core.
    pub(crate) fn thread(&self, core: usize) -> Option<u32> {
        self.threads[core]
    }

    /// Returns true where the thread on a core is active.
    pub(crate) fn is_active(&self, core: usize) -> bool {
        self.active[core]
    }

    /// The exchanges of the cycles that went by. Requests in the first of them and the decision in
    /// the last are two intervals, where they are not the same cycle.
    pub(crate) fn step(&mut self, inputs: &CycleInputs, passed: ElapsedCycles<'_>) -> Swaps {
        self.switch_threads(inputs);
        let now: Vec<bool> = (0..self.setting.cores)
            .map(|c| inputs.in_kernel(c))
            .collect();
        let came = self
            .was_kernel
            .iter()
            .zip(&now)
            .map(|(was, is)| *was && !is);
        let returned = came.collect();
        self.was_kernel = now;
        let (one, taken, held) = (passed.cycles == 1, passed.taken, passed.held);
        let all_held = vec![true; self.setting.groups];
        let first = PolicyInterval {
            inputs,
            time: inputs.time,
            counts: true,
            is_quantum: one && taken,
            returned,
            held: if one { held } else { &all_held },
        };
        let swaps = self.decide_swaps(&first);
        if one {
            return swaps;
        }
        let last = PolicyInterval {
            time: 0,
            counts: false,
            is_quantum: taken,
            returned: vec![false; self.setting.cores],
            held,
            ..first
        };
        self.decide_swaps(&last)
    }

    /// Moves threads onto and off cores, and sets which are active from the first cycle on.
    fn switch_threads(&mut self, inputs: &CycleInputs) {
        for core in 0..self.setting.cores {
            if let Some((thread, _)) = inputs.restore[core] {
                self.threads[core] = Some(thread);
                self.active[core] = true;
            } else if inputs.save[core] {
                self.threads[core] = None;
                self.active[core] = false;
            } else if let Some(on) = inputs.call[core] {
                self.active[core] = on;
            }
        }
    }

    fn decide_swaps(&mut self, shown: &PolicyInterval<'_>) -> Swaps {
        let observation = self.observation(shown);
        let view = View {
            topology: &self.topology,
            observation: &observation,
        };
        let decision = self.policy.decide(view, &mut self.rng);
        let after: Vec<PuId> = (0..self.setting.cores)
            .map(|core| match decision.placements.get(&core_id(core)) {
                Some(Placement::Restricted(pus)) => pus.first().unwrap_or(self.pus[core]),
                _ => self.pus[core],
            })
            .collect();
        let large = (0..self.setting.groups).map(|group| self.core_on_large(group));
        let large: Vec<usize> = large.collect();
        self.pus = after;
        let now = |group: usize| self.core_on_large(group);
        let swap = |(group, &was): (usize, &usize)| Some((now(group), was)).filter(|(a, b)| a != b);
        large.iter().enumerate().map(swap).collect()
    }

    fn observation(&self, shown: &PolicyInterval<'_>) -> Observation {
        let threads = (0..self.setting.cores).map(|core| ThreadObservation {
            id: core_id(core),
            name: "logical core".into(),
            original: Arc::clone(&self.all),
            managed: true,
            last_pu: Some(self.pus[core]),
            sample: self.sample(core, shown),
        });
        Observation {
            interval_ns: u64::from(shown.time),
            ended: if shown.is_quantum {
                IntervalEnd::Quantum
            } else {
                IntervalEnd::Activity
            },
            threads: threads.collect(),
            ..Observation::default()
        }
    }

    fn sample(&self, core: usize, shown: &PolicyInterval<'_>) -> Sample {
        let group = self.setting.core_group(core);
        let held = shown.held[group] && self.core_on_large(group) == core;
        let flag = |on: bool| f64::from(u8::from(on));
        let idle = shown.inputs.idle[core];
        let waits = self.setting.policy == Unit::Tcs && !self.active[core];
        let instructions = u64::from(shown.inputs.inst[core]) * u64::from(shown.counts);
        let mut sample = Sample::default();
        let readings = [
            (Signal::CpuTime, flag(!idle) * f64::from(shown.time)),
            (Signal::Instructions, instructions as f64),
            (Signal::Runnable, flag(!idle)),
            (Signal::Waiting, flag(waits)),
            (
                Signal::KernelMode,
                flag(held || shown.inputs.in_kernel(core)),
            ),
            (Signal::UserReturns, flag(shown.returned[core])),
        ];
        for (signal, value) in readings {
            let whole = Reading::fully_counted(value, Tier::Counters, u64::from(shown.time));
            sample.set(signal, whole);
        }
        sample.occupant = self.threads[core].map(software_thread_id);
        sample
    }
}

/// A logical core as the policy names it.
fn core_id(core: usize) -> ThreadId {
    ThreadId {
        pid: 0,
        tid: core as u32,
        start_ticks: 0,
    }
}

/// A software thread as the policy names it.
fn software_thread_id(number: u32) -> ThreadId {
    ThreadId {
        pid: 1,
        tid: number,
        start_ticks: 0,
    }
}
