//! Mispredicted branches: until when they wait, and what is dispatched behind them meanwhile.

use super::misses::Misses;
use super::thread_setting::{BranchResolution, ThreadSetting};
use crate::chip::KIB;
use crate::machine::detail::PredictorKind;
use crate::math::{exp, log2, pow};
use crate::program::ResolutionSpec;

/// Operations per cycle of the pipeline in which resolution is measured.
const RESOLUTION_WIDTH: f64 = 4.0;
/// Resolution of mispredicted branches of programs that do not say: the traced programs' mean.
const RESOLUTION: ResolutionSpec = ResolutionSpec {
    cycles: 11.7,
    absorbed: 0.31,
    absorbed_slow: Some(0.57),
    misses: None,
};
/// Least share of a wait that is taken to be left.
const LEAST_LEFT: f64 = 1e-3;
/// Capacity for which [`ResolutionSpec::misses`] is told, bytes.
const RESOLUTION_BYTES: f64 = 32.0 * KIB;
/// Misses per instruction of which too few were seen to tell how they are spread.
const FEW_MISSES: f64 = 1e-4;

/// Share of the wait left at half the pace of dispatch, and the exponents by which it falls with the
/// pace up to there and beyond.
fn wait_decay(resolution: &ResolutionSpec) -> (f64, [f64; 2]) {
    let half = (1.0 - resolution.absorbed).max(LEAST_LEFT);
    let quarter = resolution.absorbed_slow.map(|slow| 1.0 - slow);
    // Nothing is more over at a higher pace.
    let quarter = quarter
        .unwrap_or(half * half)
        .clamp(LEAST_LEFT * half, half);
    (half, [log2(half), log2(quarter / half)])
}

/// Of a wait of at most so many cycles, exponentially distributed, those that are over by then.
fn elapsed_wait(most: f64, late: f64) -> f64 {
    if late <= 0.0 || most <= 0.0 {
        return 0.0;
    }
    most * (1.0 - exp(-late / most))
}

impl ThreadSetting<'_> {
    /// Works out what no co-runner changes.
    pub(super) fn branch_resolution(&self) -> BranchResolution {
        let resolution = self.resolution_spec();
        let (half, falls) = wait_decay(&resolution);
        let steps = resolution.cycles / self.chain.reference_latency();
        let small = self.demand.phase.data.mpki(RESOLUTION_BYTES) / 1000.0;
        BranchResolution {
            steps,
            misses: match resolution.misses {
                Some(misses) if small > FEW_MISSES => misses / small,
                _ => steps * self.chain_load_share(),
            },
            late: self.dispatch_lag(),
            left_alone: 1.0,
            half,
            falls,
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

    /// Cycles of the turn that ends with a mispredicted branch, which waiting for it hides: no other
    /// turn begins behind it. A turn of dispatch that ends anywhere is half full on average. A taken
    /// branch ends its turn of fetch; the run of code that another is in the middle of takes half a
    /// turn more for it.
    pub(super) fn last_turn(&self) -> f64 {
        let spec = &self.demand.phase.spec;
        let branches = self.mix().branch.max(f64::MIN_POSITIVE);
        let taken = (spec.taken_branches() / branches).min(1.0);
        let fetch = taken * (1.0 + spec.direct_share() * self.model.bubble) + (1.0 - taken) * 0.5;
        let width = self.core.dispatch_width.max(1.0);
        let dispatch = 0.5 * (width + 1.0) / width;
        dispatch + self.limits.fetched * (fetch - dispatch)
    }

    /// Cycles per instruction by which this core's dispatch and fetch are slower than the dispatch of
    /// the pipeline in which resolution is measured.
    fn dispatch_lag(&self) -> f64 {
        (1.0 / self.limits.front - self.measured_dispatch()).max(0.0)
    }

    /// Cycles per instruction of dispatch in that pipeline.
    pub(super) fn measured_dispatch(&self) -> f64 {
        self.needs.operations / RESOLUTION_WIDTH
    }

    /// Of so many cycles per instruction until mispredicted branches are resolved, those that are
    /// over before their dispatch alone.
    pub(super) fn absorbed_cycles_alone(&self, resolving: f64) -> f64 {
        elapsed_wait(
            resolving * (1.0 - self.resolving.left_alone),
            self.resolving.late,
        )
    }

    /// The same beside co-runners that take so many cycles of dispatch per instruction.
    ///
    /// A mispredicted branch is resolved when the chain that it waits for is at its end, however
    /// late the branch itself is dispatched. What dispatch loses on the way to it, x cycles, takes
    /// as much from the time between its dispatch and its result, as far as that is the wait for
    /// a chain that was begun long before: of exponentially distributed times of mean R that is
    /// `R(1 − e^(−x/R))`. How much of it R is at most follows from how slow dispatch is. What is
    /// dispatched just before the branch is late with it.
    pub(crate) fn absorbed_cycles(&self, resolving: f64, lost: f64) -> f64 {
        let late = self.resolving.late + lost;
        elapsed_wait(resolving * (1.0 - self.wait_left(late)), late)
    }

    /// Share of the wait that is left at the branch's dispatch where that is late by so many cycles
    /// per instruction, 0 to 1: as measured at half and at a quarter of the pace, by equal ratios
    /// for each halving between and beyond.
    pub(super) fn wait_left(&self, late: f64) -> f64 {
        let BranchResolution { half, falls, .. } = self.resolving;
        let slower = 1.0 + late / self.measured_dispatch();
        if slower < 2.0 {
            pow(slower, falls[0])
        } else {
            half * pow(0.5 * slower, falls[1])
        }
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
    pub(super) fn window_filling_cycles(&self, window: f64, resolution: f64, chain: f64) -> f64 {
        let before = resolution * chain.min(self.limits.all);
        (window - before).max(0.0) / self.limits.dispatch * self.on_core
    }
}
