//! Chips and observations for the tests of rules.

use super::pie_model::{PIE_SIGNALS, PieEstimates, PieModel};
use super::swapper::{SwapRule, Swapper};
use crate::bottleneck::{Bottleneck, BottleneckKind};
use crate::ids::{PuId, ThreadId};
use crate::plan::{Decision, Placement};
use crate::policy::{Policy, PolicyForm, PolicyRng, View};
use crate::sample::{IntervalEnd, Observation, Reading, Sample, ThreadObservation};
use crate::signal::{Signal, Tier};
use crate::testing::thread_id;
use crate::topology::{CoreType, Pipeline, PuFacts, Topology};
use rand::SeedableRng;
use std::sync::Arc;

/// One millisecond.
pub(super) const QUANTUM_NS: u64 = 1_000_000;

/// Large and small cores, dealt evenly to LLC domains; in each the large ones come first.
pub(in crate::policies) fn chip(large: u32, small: u32, llcs: u32) -> Topology {
    let (l, s) = (large / llcs, small / llcs);
    let facts = (0..large + small).map(|n| {
        let (llc, place) = ((n / (l + s)).min(llcs - 1), n % (l + s));
        PuFacts {
            pu: PuId(n),
            package: 0,
            node: 0,
            core: n,
            llc,
            l2: None,
            core_type: usize::from(if llcs == 1 { n >= large } else { place >= l }),
        }
    });
    let kind = |name: &str, capacity, rob_entries| CoreType {
        name: name.to_owned(),
        capacity,
        pipeline: Some(Pipeline {
            dispatch_width: 4.0,
            rob_entries,
            frequency_hz: 2.66e9,
        }),
    };
    let types = vec![kind("large", 1024, Some(128)), kind("small", 400, None)];
    Topology::new(facts.collect(), types).unwrap()
}

/// Activity of a logical core in an interval.
#[derive(Clone, Copy, Debug)]
pub(super) struct Did {
    pub(super) instructions: f64,
    pub(super) idle: bool,
    pub(super) waits: bool,
    pub(super) kernel: bool,
    pub(super) returned: bool,
    pub(super) occupant: Option<u32>,
    /// Further counts.
    pub(super) counts: &'static [(Signal, f64)],
}

/// A million instructions in user mode.
pub(super) const BUSY: Did = Did {
    instructions: 1e6,
    idle: false,
    waits: false,
    kernel: false,
    returned: false,
    occupant: None,
    counts: &[],
};

/// No activity.
pub(super) const IDLE: Did = Did {
    instructions: 0.0,
    idle: true,
    ..BUSY
};

/// Logical cores under a policy, in hardware form.
pub(super) struct Bench<R> {
    topology: Topology,
    policy: Swapper<R>,
    pus: Vec<PuId>,
    bottlenecks: Vec<Bottleneck>,
}

impl<R: SwapRule> Bench<R> {
    pub(super) fn new(topology: Topology, rule: R) -> Self {
        Self {
            pus: topology.pus().iter().collect(),
            topology,
            policy: Swapper::new(rule, PolicyForm::Hardware),
            bottlenecks: Vec::new(),
        }
    }

    /// Sets the locks and barriers that are told in the intervals from the next on.
    pub(super) fn tell(&mut self, bottlenecks: &[Bottleneck]) {
        self.bottlenecks = bottlenecks.to_vec();
    }

    /// The rule under test.
    pub(super) fn rule(&self) -> &R {
        self.policy.rule()
    }

    /// Ends a quantum; returns the CPU of each logical core then.
    pub(super) fn quantum(&mut self, did: &[Did]) -> Vec<u32> {
        self.turn(did, QUANTUM_NS, IntervalEnd::Quantum)
    }

    /// Ends an interval of a thousandth of a quantum because of activity; returns the CPUs as
    /// [`Bench::quantum`] does.
    pub(super) fn activity(&mut self, did: &[Did]) -> Vec<u32> {
        self.turn(did, QUANTUM_NS / 1000, IntervalEnd::Activity)
    }

    /// Ends an interval; returns the CPUs as [`Bench::quantum`] does.
    pub(super) fn turn(&mut self, did: &[Did], ns: u64, ended: IntervalEnd) -> Vec<u32> {
        let original = Arc::new(self.topology.pus().clone());
        let threads = did.iter().zip(&self.pus).enumerate();
        let observation = Observation {
            interval_ns: ns,
            ended,
            threads: threads
                .map(|(logical, (did, &pu))| ThreadObservation {
                    id: name(logical),
                    name: "logical core".into(),
                    original: Arc::clone(&original),
                    managed: true,
                    last_pu: Some(pu),
                    sample: sample(did, ns),
                })
                .collect(),
            bottlenecks: self.bottlenecks.clone(),
            ..Observation::default()
        };
        let view = View {
            topology: &self.topology,
            observation: &observation,
        };
        let mut rng = PolicyRng::seed_from_u64(1);
        let decision = self.policy.decide(view, &mut rng);
        self.pus = (0..did.len()).map(|l| pu_of(&decision, l)).collect();
        self.pus.iter().map(|pu| pu.0).collect()
    }
}

fn name(logical: usize) -> ThreadId {
    ThreadId {
        pid: 0,
        tid: logical as u32,
        start_ticks: 0,
    }
}

fn pu_of(decision: &Decision, logical: usize) -> PuId {
    match &decision.placements[&name(logical)] {
        Placement::Restricted(pus) => pus.first().unwrap(),
        Placement::Unrestricted => panic!("logical core {logical} has no CPU"),
    }
}

fn sample(did: &Did, ns: u64) -> Sample {
    let mut sample = Sample::default();
    let flag = |on: bool| f64::from(u8::from(on));
    let values = [
        (Signal::CpuTime, flag(!did.idle) * ns as f64),
        (Signal::Instructions, did.instructions),
        (Signal::Runnable, flag(!did.idle)),
        (Signal::Waiting, flag(did.waits || did.idle)),
        (Signal::KernelMode, flag(did.kernel)),
        (Signal::FutexReturns, flag(did.returned)),
    ];
    for (signal, value) in values.into_iter().chain(did.counts.iter().copied()) {
        sample.set(signal, Reading::fully_counted(value, Tier::Counters, ns));
    }
    sample.occupant = did.occupant.map(thread_id);
    sample
}

/// Estimates of a chip that has PIE's counters.
pub(super) fn estimates(chip: &Topology) -> PieEstimates {
    let offers = PIE_SIGNALS.map(|signal| (signal, Tier::Counters));
    PieEstimates::new(PieModel::from_topology(chip, &offers.into_iter().collect(), "pie").unwrap())
}

/// A lock or barrier with its executers and waiters by number.
pub(super) fn bottleneck(
    kind: BottleneckKind,
    (executers, waiters): (&[u32], &[u32]),
    waited_ns: u64,
) -> Bottleneck {
    let ids = |some: &[u32]| some.iter().map(|&t| thread_id(t)).collect();
    Bottleneck {
        id: u64::from(kind == BottleneckKind::Lock),
        kind,
        executers: ids(executers),
        waiters: ids(waiters),
        waited_ns,
    }
}
