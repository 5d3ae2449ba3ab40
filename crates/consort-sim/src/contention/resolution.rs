//! Mispredicted branches: until when they wait, and what is dispatched behind them meanwhile.

use super::misses::Misses;
use super::setting::{Resolving, Setting};
use crate::chip::KIB;
use crate::machine::detail::PredictorKind;
use crate::program::ResolutionSpec;

/// Resolution of mispredicted branches of programs that do not say: the traced programs' mean.
const RESOLUTION: ResolutionSpec = ResolutionSpec {
    cycles: 11.7,
    absorbed: 0.31,
    misses: None,
};
/// Capacity for which [`ResolutionSpec::misses`] is told, bytes.
const RESOLUTION_BYTES: f64 = 32.0 * KIB;
/// Misses per instruction of which too few were seen to tell how they are spread.
const FEW_MISSES: f64 = 1e-4;

impl Setting<'_> {
    /// Works out what no co-runner changes.
    pub(super) fn resolving(&self) -> Resolving {
        let resolution = self.resolution_spec();
        let steps = resolution.cycles / self.chain.reference_latency();
        let small = self.demand.phase.data.mpki(RESOLUTION_BYTES) / 1000.0;
        Resolving {
            steps,
            misses: match resolution.misses {
                Some(misses) if small > FEW_MISSES => misses / small,
                _ => steps * self.on_chain(),
            },
            absorbed: resolution.absorbed,
        }
    }

    /// Cycles from the dispatch of a mispredicted branch until it is resolved, which grow with the
    /// latency of the chain that it waits for, and with the misses on its way.
    /// Data beyond the L2 counts as if it were in the LLC, wherever it is: waiting for memory has
    /// a term of its own.
    pub(super) fn resolution(&self, misses: &Misses, latency: f64) -> f64 {
        let l1 = self.core.l1d.latency_cycles;
        let in_l2 = misses.data[0] - misses.data[1];
        let beyond = misses.exposed * misses.data[1];
        let late = in_l2 * (self.l2_cycles() - l1) + beyond * (self.llc_cycles - l1);
        self.resolving.steps * latency + self.resolving.misses * late.max(0.0)
    }

    /// Resolution of branches that this core's predictor mispredicts.
    fn resolution_spec(&self) -> ResolutionSpec {
        let branch = &self.demand.phase.spec.branch;
        let measured = match self.core.branch_predictor.kind {
            Some(PredictorKind::Tage) => branch.resolution,
            _ => branch.gshare_resolution.or(branch.resolution),
        };
        measured.unwrap_or(RESOLUTION)
    }

    /// Cycles in which the wrong path behind a mispredicted branch fills what is left of the
    /// window, its threads taking turns. In front of the branch there are as many instructions as
    /// are executed, `chain` per cycle at most, while it waits (Little's law).
    pub(super) fn filling(&self, window: f64, resolution: f64, chain: f64) -> f64 {
        let before = resolution * chain.min(self.limits.all);
        (window - before).max(0.0) / self.limits.dispatch * self.on_core
    }
}
