//! Limits that a core sets on one thread: dispatch, ports, fetch, and the chain of its operations.

use super::setting::{Limits, Setting};
use crate::machine::detail::Work;
use crate::program::ChainSpec;

/// Cycles per instruction of a chain, at least.
const SHORTEST: f64 = 0.01;

impl Setting<'_> {
    /// Instructions per cycle that the core sustains for this thread alone.
    pub(super) fn limits(&self) -> Limits {
        let needs = &self.needs;
        let dispatch = 1.0 / needs.dispatch_turns;
        let on_core = self.on_core as usize;
        let ports = self.model.ports.iter().map(|set| {
            let used = set.use_of(&needs.works);
            if used > 0.0 {
                set.reach(on_core) / used
            } else {
                f64::INFINITY
            }
        });
        let ports = ports.fold(dispatch, f64::min);
        let front = dispatch.min(1.0 / (needs.fetch_turns + needs.bubbles));
        Limits {
            dispatch,
            ports,
            front,
            all: ports.min(front),
        }
    }

    /// Cycles per instruction of the longest chain when all data is in the L1.
    pub(super) fn chain_latency(&self) -> f64 {
        let times = &self.model.tables.times;
        let of = |work: Work| f64::from(times[work.index()].latency_cycles);
        let ChainSpec {
            plain,
            load,
            fp,
            multiply,
            divide,
            fp_divide,
            vector,
        } = self.chain;
        let sum = plain * of(Work::Integer)
            + load * self.core.l1d.latency_cycles
            + fp * 0.5 * (of(Work::FpAdd) + of(Work::FpMultiply))
            + multiply * of(Work::Multiply)
            + divide * of(Work::Divide)
            + fp_divide * of(Work::FpDivide)
            + vector * of(Work::VectorMove);
        sum.max(SHORTEST)
    }

    /// Returns loads on the longest chain per load: the share of their latency that counts there.
    pub(super) fn on_chain(&self) -> f64 {
        if self.mix().load > 0.0 {
            self.chain.load / self.mix().load
        } else {
            0.0
        }
    }
}
