//! `packed`: gives busy threads the CPUs in the order of the cores, one each, so
//! that as few cores as possible are awake.
//!
//! An example, not a published policy. It reads how much each thread ran in the
//! last quantum, and promises that no two busy threads share a CPU while one that
//! both may use is free.

use crate::plan::{Decision, Fact, Placement, Reason};
use crate::policy::{
    ALL_USUAL, OptionInfo, Policy, PolicyInfo, PolicyOptions, PolicyResult, PolicyRng, View,
};
use crate::{PuId, PuSet, Signal, SignalOffers, Tier, Topology};

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "packed",
    family: "example",
    source: "none: docs/research/own.md",
    needs: &[Signal::CpuTime],
    uses: ALL_USUAL,
    tier_min: Tier::Proc,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "fills core after core with busy threads, one per CPU, so that the others can sleep",
    options: &[OptionInfo {
        name: "busy",
        default: "0.1",
        meaning: "share of a CPU from which on a thread counts as busy, 0 to 1",
    }],
    open,
};

fn open(_: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let busy = options.share("busy")?;
    Ok(Box::new(Packed { busy }))
}

/// Remembers nothing between quanta; a policy with a history keeps it here.
struct Packed {
    busy: f64,
}

impl Policy for Packed {
    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let cores = view.topology.cores().iter();
        let mut free: Vec<PuId> = cores.flat_map(|core| core.pus.clone()).collect();
        let mut decision = Decision::default();
        for thread in view.observation.managed_threads() {
            let share = view.observation.cpu_share(thread);
            let usable = free.iter().position(|&pu| thread.original.contains(pu));
            // Who is not placed stays where the operating system puts it.
            if let Some(at) = usable.filter(|_| share >= self.busy) {
                let pu = free.remove(at);
                let placement = Placement::Restricted(PuSet::from(pu));
                decision.place(thread.id, placement, reason(pu, share));
            }
        }
        decision
    }
}

/// What the report says of the thread.
fn reason(pu: PuId, share: f64) -> Reason {
    Reason {
        considered: "free CPUs of the thread's mask, core after core".to_owned(),
        chosen: format!("CPU {pu}, the first of them"),
        facts: vec![Fact {
            name: "share of a CPU".into(),
            value: share,
            unit: "".into(),
        }],
    }
}
