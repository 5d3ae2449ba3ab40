//! Mispredicted branches: how many there are, until when they wait, and what is dispatched behind
//! them meanwhile.

use super::chain::DependenceChain;
use super::core_model::CoreModel;
use super::limits::CoreLimits;
use super::needs::InstructionNeeds;
use super::types::Demand;
use crate::chip::KIB;
use crate::machine::CoreSpec;
use crate::machine::detail::PredictorKind;
use crate::math::{exp, interpolate, log2, pow};
use crate::program::{ResolutionSpec, TARGET_ENTRIES};

/// Resolution of mispredicted branches for programs whose profile lacks it: the traced programs'
/// mean.
const RESOLUTION: ResolutionSpec = ResolutionSpec {
    cycles: 11.7,
    absorbed: 0.31,
    absorbed_slow: Some(0.57),
    misses: None,
};
/// Least share of a wait that is taken to be left, so that its logarithm is finite.
const LEAST_LEFT: f64 = 1e-3;
/// Capacity for which [`ResolutionSpec::misses`] is given, bytes.
const RESOLUTION_BYTES: f64 = 32.0 * KIB;
/// Misses per instruction below which a profile has too few to show how they are spread.
const FEW_MISSES: f64 = 1e-4;

/// A thread's branches on its core, with any co-runners.
#[derive(Clone, Debug)]
pub(crate) struct BranchModel<'a> {
    demand: &'a Demand,
    core: &'a CoreSpec,
    on_core: f64,
    /// Mispredictions per instruction without strangers in the predictor.
    pub(crate) without_strangers: f64,
    /// Cycles from the result of a mispredicted branch until what follows is dispatched.
    pub(super) refill: f64,
    /// Cycles until a branch is resolved on the core on which that is measured.
    measured_cycles: f64,
    /// Loads that miss for whose data it waits, per miss and instruction.
    awaited_misses: f64,
    /// Cycles per instruction of dispatch in the pipeline in which resolution is measured.
    measured_dispatch: f64,
    /// Cycles per instruction by which dispatch and fetch are slower here than there; negative where
    /// they are faster.
    lag: f64,
    decay: WaitDecay,
    /// Its wait from its dispatch with that lag, over the measured one.
    left_alone: f64,
}

/// Fall of the share of a wait that is left with the pace of dispatch.
#[derive(Clone, Copy, Debug)]
struct WaitDecay {
    /// Share at half the pace, 0 to 1.
    half: f64,
    /// Exponents of the pace by which it falls up to there and beyond.
    falls: [f64; 2],
}

impl WaitDecay {
    fn new(resolution: &ResolutionSpec) -> Self {
        let half = (1.0 - resolution.absorbed).max(LEAST_LEFT);
        let quarter = resolution.absorbed_slow.map(|slow| 1.0 - slow);
        // Nothing is more over at a higher pace.
        let quarter = quarter
            .unwrap_or(half * half)
            .clamp(LEAST_LEFT * half, half);
        Self {
            half,
            falls: [log2(half), log2(quarter / half)],
        }
    }

    /// The wait that is left at a dispatch so many times slower, over the measured one: as measured
    /// at half and at a quarter of the pace, by equal ratios for each halving between and beyond. At
    /// a faster dispatch more than the measured one is left.
    fn share_left(&self, slower: f64) -> f64 {
        if slower < 2.0 {
            pow(slower, self.falls[0])
        } else {
            self.half * pow(0.5 * slower, self.falls[1])
        }
    }
}

/// Of a wait of at most so many cycles, exponentially distributed, the ones that are over by then.
/// Both are negative where a branch is dispatched early and waits so much longer.
fn elapsed_wait(most: f64, late: f64) -> f64 {
    if most * late <= 0.0 {
        return 0.0;
    }
    most * (1.0 - exp(-late / most))
}

impl<'a> BranchModel<'a> {
    pub(super) fn new(
        demand: &'a Demand,
        core: &'a CoreSpec,
        model: &CoreModel,
        (needs, limits, chain): (&InstructionNeeds, &CoreLimits, &DependenceChain),
        on_core: usize,
    ) -> Self {
        let branch = &demand.phase.spec.branch;
        let resolution = match core.branch_predictor.kind {
            Some(PredictorKind::Tage) => branch.resolution,
            _ => branch.gshare_resolution.or(branch.resolution),
        };
        let resolution = resolution.unwrap_or(RESOLUTION);
        let small = demand.phase.data.mpki(RESOLUTION_BYTES) / 1000.0;
        let measured_dispatch = needs.measured_dispatch();
        let lag = 1.0 / limits.front - measured_dispatch;
        let decay = WaitDecay::new(&resolution);
        let mut branches = Self {
            demand,
            core,
            on_core: on_core as f64,
            without_strangers: 0.0,
            refill: (core.pipeline_depth_cycles - last_turn(demand, core, model, limits)).max(0.0),
            measured_cycles: resolution.cycles,
            awaited_misses: match resolution.misses {
                Some(misses) if small > FEW_MISSES => misses / small,
                _ if demand.phase.spec.mix.load > 0.0 => {
                    let loads = demand.phase.spec.mix.load;
                    resolution.cycles * chain.loads_per_cycle / loads
                }
                _ => 0.0,
            },
            measured_dispatch,
            lag,
            decay,
            left_alone: decay.share_left(1.0 + lag / measured_dispatch),
        };
        branches.without_strangers = branches.mispredictions(0.0);
        branches
    }

    /// Mispredictions per instruction where strangers insert so many entries into the predictor for
    /// each branch of this thread.
    pub(super) fn mispredictions(&self, strangers: f64) -> f64 {
        let phase = &self.demand.phase.spec;
        let (kib, branches) = (self.core.branch_predictor.size_kib, phase.mix.branch);
        let shared = { &phase.branch }.shared_mpki(self.is_tagged(), kib, strangers, branches);
        let mpki = shared + self.lost_targets_mpki(strangers);
        (mpki * self.demand.intensity / 1000.0).min(branches)
    }

    /// Entries that the thread takes from others in the predictor per instruction, where it
    /// mispredicts so many branches: with tags one for each, without tags the counters that it
    /// trains anew.
    pub(super) fn insertions(&self, mispredictions: f64) -> f64 {
        let phase = &self.demand.phase.spec;
        match self.is_tagged() {
            true => mispredictions,
            false => phase.branch.renewed(phase.mix.branch),
        }
    }

    fn is_tagged(&self) -> bool {
        self.core.branch_predictor.kind == Some(PredictorKind::Tage)
    }

    /// Mispredictions per kilo-instruction because a table of targets that keeps those of indirect
    /// branches alone, by address, is too small. Of the table a thread has what it inserts over
    /// what all do, as of the predictor, and an equal share at least, because what it uses often
    /// stays.
    fn lost_targets_mpki(&self, strangers: f64) -> f64 {
        let predictor = &self.core.branch_predictor;
        let phase = &self.demand.phase.spec;
        let (Some(points), Some(targets)) = (phase.branch.target_mpki, predictor.targets) else {
            return 0.0;
        };
        if self.is_tagged() || predictor.taken_bubble_cycles.is_none() {
            return 0.0;
        }
        let own = self.insertions(0.0);
        let foreign = strangers * phase.mix.branch;
        let part = if foreign > 0.0 {
            (own / (own + foreign)).max(1.0 / self.on_core)
        } else {
            1.0
        };
        let lost = interpolate(&TARGET_ENTRIES, &points, f64::from(targets) * part);
        (lost - points[TARGET_ENTRIES.len() - 1]).max(0.0)
    }

    /// Cycles from the dispatch of a mispredicted branch until it is resolved, which grow with the
    /// time of the longest chain, and with the delay by each miss on its way.
    pub(super) fn resolution(&self, stretch: f64, miss_delay: f64) -> f64 {
        self.measured_cycles * stretch + self.awaited_misses * miss_delay
    }

    /// Of so many cycles per instruction until mispredicted branches are resolved, the ones that are
    /// over before their dispatch alone; negative where that is early.
    pub(super) fn absorbed_cycles_alone(&self, resolving: f64) -> f64 {
        elapsed_wait(resolving * (1.0 - self.left_alone), self.lag)
    }

    /// The same with co-runners that take so many cycles of dispatch per instruction.
    ///
    /// A mispredicted branch is resolved when the chain that it waits for is at its end, however
    /// late the branch itself is dispatched. What dispatch loses on the way to it, x cycles, takes
    /// as much from the time between its dispatch and its result, as far as that is the wait for
    /// a chain that was begun long before: of exponentially distributed times of mean R that is
    /// `R(1 − e^(−x/R))`. How much of it R is at most follows from how slow dispatch is. What is
    /// dispatched just before the branch is late with it.
    pub(crate) fn absorbed_cycles(&self, resolving: f64, lost: f64) -> f64 {
        let late = self.lag + lost;
        let left = self.decay.share_left(1.0 + late / self.measured_dispatch);
        elapsed_wait(resolving * (1.0 - left), late)
    }
}

/// Cycles of the turn that ends with a mispredicted branch. Waiting for the branch hides them,
/// because no other turn begins behind it. A turn of dispatch that ends anywhere is half full on
/// average. A taken branch ends its turn of fetch; the run of code that another is in the middle
/// of takes half a turn more for it.
fn last_turn(demand: &Demand, core: &CoreSpec, model: &CoreModel, limits: &CoreLimits) -> f64 {
    let spec = &demand.phase.spec;
    let branches = spec.mix.branch.max(f64::MIN_POSITIVE);
    let taken = (spec.taken_branches() / branches).min(1.0);
    let fetch = taken * (1.0 + spec.direct_share() * model.bubble) + (1.0 - taken) * 0.5;
    let width = core.dispatch_width.max(1.0);
    let dispatch = 0.5 * (width + 1.0) / width;
    dispatch + limits.fetched * (fetch - dispatch)
}
