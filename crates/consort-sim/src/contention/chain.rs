//! A thread's longest chain of operations that wait for each other: cycles per instruction in a
//! window of some size.
//!
//! The time of a chain is `Σ n·l` over the classes of operations, with n of them on it and latency
//! l. A profile has the chains that take longest for several sets of latencies ([`IlpSpec::chains`]).
//! With any latencies the longest path through a program takes at least as long as any of these, so
//! the longest of them on the core at hand counts. It grows with each latency, is continuous in
//! them, and is exact where the core has the latencies of a set. A path through a large window
//! is one through a smaller window too, so that no smaller window is faster.
//!
//! A profile without chains has the parallelism in a window for latencies of one cycle and the
//! composition of one chain, whose mean latency divides it (Eyerman, Eeckhout, Karkhanis and Smith,
//! TOCS 2009, section 4).
//!
//! [`IlpSpec::chains`]: crate::program::IlpSpec::chains

use super::buffers::{WindowModel, WindowPosition};
use super::core_model::{CLASSES, CoreModel};
use crate::machine::CoreSpec;
use crate::machine::detail::WorkKind;
use crate::math::pow;
use crate::program::{ChainSpec, ILP_WINDOWS, MOST_CHAIN_SETS, PARTIAL_LOAD_CYCLES, PhaseSpec};
use std::sync::Arc;

/// Cycles per instruction of a chain, at least: a program without a chain has no other limit here.
const SHORTEST: f64 = 0.01;
/// Position among [`ILP_WINDOWS`] of the window in which the resolution of branches and the waits for
/// dividers are measured.
const MEASURED: usize = 3;
/// Number of windows.
const WINDOWS: usize = ILP_WINDOWS.len();
/// Position of loads among the classes of units.
pub(super) const LOADS: usize = 2;

/// Cycles that an operation of each unit class waits, beyond its latency.
pub(crate) type UnitWaits = [f64; CLASSES];

/// No operation waits.
pub(crate) const NO_WAITS: UnitWaits = [0.0; CLASSES];

/// A thread's longest chain on its core.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DependenceChain {
    form: ChainForm,
    intensity: f64,
    /// Its time over that with the latencies of the core on which resolution and dividers are
    /// measured.
    pub(super) stretch: f64,
    /// Loads on the chain per cycle there.
    pub(super) loads_per_cycle: f64,
}

#[derive(Clone, Debug, PartialEq)]
enum ChainForm {
    /// One chain of this latency, per instruction of the longest chain of unit latencies.
    Mean(ChainCost),
    Scheduled(Arc<ScheduledChains>),
}

/// Time of a chain and the operations on it that may wait.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ChainCost {
    /// Cycles if all data is in the L1 and nothing waits.
    cycles: f64,
    plain: f64,
    fp: f64,
    load: f64,
}

/// Chains of several sets of latencies in each of [`ILP_WINDOWS`], per instruction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ScheduledChains {
    sets: [[ChainCost; WINDOWS]; MOST_CHAIN_SETS],
    /// Time in each window if nothing waits.
    undisturbed: [f64; WINDOWS],
    /// Instructions per cycle in a window of 1 over those in the smallest.
    single: f64,
    reference: f64,
}

impl ChainCost {
    fn new(spec: &ChainSpec, latencies: &[f64; ChainSpec::CLASSES]) -> Self {
        let each = spec.classes().into_iter().zip(latencies);
        Self {
            cycles: each.map(|((_, amount, _), cycles)| amount * cycles).sum(),
            plain: spec.plain,
            fp: spec.fp,
            load: spec.load + spec.partial_load,
        }
    }

    /// Cycles if operations wait.
    fn with_waits(&self, waits: &UnitWaits) -> f64 {
        let [int, fp, load, ..] = waits;
        self.cycles + self.plain * int + self.fp * fp + self.load * load
    }
}

/// Latencies of the classes of [`ChainSpec::classes`] on a core.
fn latencies(core: &CoreSpec, model: &CoreModel) -> [f64; ChainSpec::CLASSES] {
    let cycles = |work: WorkKind| f64::from(model.tables.times[work.index()].latency_cycles);
    [
        cycles(WorkKind::Integer),
        core.l1d.latency_cycles,
        0.5 * (cycles(WorkKind::FpAdd) + cycles(WorkKind::FpMultiply)),
        cycles(WorkKind::Multiply),
        cycles(WorkKind::Divide),
        cycles(WorkKind::FpDivide),
        cycles(WorkKind::VectorMove),
        cycles(WorkKind::Count),
        cycles(WorkKind::Address),
        cycles(WorkKind::DoubleShift),
        cycles(WorkKind::WideDivide),
        cycles(WorkKind::Convert),
        cycles(WorkKind::Cross),
        cycles(WorkKind::VectorMultiply),
        cycles(WorkKind::WideVectorMultiply),
        cycles(WorkKind::SquareRoot),
        core.l1d.latency_cycles + PARTIAL_LOAD_CYCLES,
    ]
}

impl DependenceChain {
    /// A phase's chain at mean intensity.
    pub(super) fn new(phase: &PhaseSpec, core: &CoreSpec, model: &CoreModel) -> Self {
        let latencies = latencies(core, model);
        let (form, here, there, loads) = match &phase.ilp.chains {
            Some(chains) => {
                let form = ScheduledChains::new(phase, chains, &latencies);
                let here = form.undisturbed[MEASURED];
                let (there, loads) = reference_chain(chains);
                (ChainForm::Scheduled(Arc::new(form)), here, there, loads)
            }
            None => {
                let spec = phase.chain();
                let mut cost = ChainCost::new(&spec, &latencies);
                cost.cycles = cost.cycles.max(SHORTEST);
                let reference = spec.reference_latency();
                (ChainForm::Mean(cost), cost.cycles, reference, spec.load)
            }
        };
        Self {
            form,
            intensity: 1.0,
            stretch: here / there,
            loads_per_cycle: loads / there,
        }
    }

    pub(super) fn with_intensity(&self, intensity: f64) -> Self {
        Self {
            intensity,
            ..self.clone()
        }
    }

    /// The chain in a window of some size.
    pub(super) fn in_window(&self, window: &WindowModel, size: f64) -> WindowedChain<'_> {
        match &self.form {
            ChainForm::Mean(cost) => WindowedChain::Mean {
                cost,
                parallelism: window.parallelism(size),
            },
            ChainForm::Scheduled(chains) => WindowedChain::Scheduled {
                chains,
                position: window.position(size),
                intensity: self.intensity,
            },
        }
    }

    /// Instructions per cycle in a window of some size if nothing waits.
    pub(super) fn rate(&self, phase: &PhaseSpec, window: f64) -> f64 {
        let rate = match &self.form {
            ChainForm::Mean(cost) => phase.ilp.parallelism_at(window) / cost.cycles,
            ChainForm::Scheduled(chains) => {
                chains.rate(&chains.undisturbed, WindowPosition::new(window))
            }
        };
        rate / self.intensity
    }

    /// Share of its latency that a hit behind the L1 may cost each load, so that on the chain it
    /// costs an instruction no more than all of it.
    pub(super) fn hit_overlap(&self, window: &WindowModel, size: f64) -> f64 {
        match &self.form {
            ChainForm::Mean(_) => window.parallelism(size),
            ChainForm::Scheduled(chains) => {
                let most = chains.sets.iter().flatten().map(|cost| cost.load);
                window.phase.spec.mix.load
                    / (most.fold(f64::MIN_POSITIVE, f64::max) * self.intensity)
            }
        }
    }

    /// Its time over that with the latencies of the core on which resolution and dividers are
    /// measured, if operations wait so long.
    pub(super) fn stretch_with(&self, waits: &UnitWaits) -> f64 {
        match &self.form {
            ChainForm::Mean(cost) => self.stretch * cost.with_waits(waits) / cost.cycles,
            ChainForm::Scheduled(chains) => chains.times(waits)[MEASURED] / chains.reference,
        }
    }

    /// The smallest window that sustains so many instructions per cycle, at most the whole one.
    pub(super) fn window_for(&self, window: &WindowModel, rate: f64, waits: &UnitWaits) -> f64 {
        match &self.form {
            ChainForm::Mean(cost) => {
                let parallelism = rate * cost.with_waits(waits) * self.intensity;
                window.phase.spec.ilp.window_for(parallelism, window.whole)
            }
            ChainForm::Scheduled(chains) => {
                chains.window_for(&chains.times(waits), rate * self.intensity, window.whole)
            }
        }
    }
}

/// A chain in a window.
#[derive(Clone, Copy, Debug)]
pub(super) enum WindowedChain<'a> {
    Mean {
        cost: &'a ChainCost,
        /// Instructions per cycle if every operation took one.
        parallelism: f64,
    },
    Scheduled {
        chains: &'a ScheduledChains,
        position: WindowPosition,
        intensity: f64,
    },
}

impl WindowedChain<'_> {
    /// Cycles per instruction if operations wait so long.
    pub(super) fn cycles(&self, waits: &UnitWaits) -> f64 {
        match *self {
            Self::Mean { cost, parallelism } => cost.with_waits(waits) / parallelism,
            Self::Scheduled {
                chains,
                position,
                intensity,
            } => intensity / chains.rate(&chains.times(waits), position),
        }
    }
}

/// Cycles and loads per instruction of the longest chain on the core on which resolution and
/// dividers are measured.
fn reference_chain(chains: &[[ChainSpec; WINDOWS]]) -> (f64, f64) {
    let all = chains.iter().map(|set| {
        let chain = &set[MEASURED];
        (chain.reference_latency(), chain.load)
    });
    all.fold((SHORTEST, 0.0), |longest, chain| {
        if chain.0 > longest.0 { chain } else { longest }
    })
}

impl ScheduledChains {
    fn new(
        phase: &PhaseSpec,
        chains: &[[ChainSpec; WINDOWS]],
        latencies: &[f64; ChainSpec::CLASSES],
    ) -> Self {
        let mut sets = [[ChainCost::default(); WINDOWS]; MOST_CHAIN_SETS];
        for (costs, chains) in sets.iter_mut().zip(chains) {
            *costs = chains
                .each_ref()
                .map(|chain| ChainCost::new(chain, latencies));
        }
        let smallest = phase.ilp.parallelism_at(ILP_WINDOWS[0]);
        let mut all = Self {
            sets,
            undisturbed: [0.0; WINDOWS],
            single: (1.0 / smallest).min(1.0),
            reference: reference_chain(chains).0,
        };
        all.undisturbed = all.disturbed(&NO_WAITS);
        all
    }

    /// Cycles per instruction in each window if operations wait so long.
    fn times(&self, waits: &UnitWaits) -> [f64; WINDOWS] {
        if *waits == NO_WAITS {
            self.undisturbed
        } else {
            self.disturbed(waits)
        }
    }

    fn disturbed(&self, waits: &UnitWaits) -> [f64; WINDOWS] {
        let mut times = [SHORTEST; WINDOWS];
        for set in &self.sets {
            for (time, cost) in times.iter_mut().zip(set) {
                *time = time.max(cost.with_waits(waits));
            }
        }
        for at in (0..WINDOWS - 1).rev() {
            times[at] = times[at].max(times[at + 1]);
        }
        times
    }

    /// Instructions per cycle in a window: linear in its logarithm between the measured ones.
    fn rate(&self, times: &[f64; WINDOWS], position: WindowPosition) -> f64 {
        let WindowPosition { next, share } = position;
        let high = 1.0 / times[next];
        let low = match next.checked_sub(1) {
            Some(before) => 1.0 / times[before],
            None => self.single * high,
        };
        low + share * (high - low)
    }

    /// The smallest window in which so many instructions per cycle are sustained; `most` if none
    /// up to it does.
    fn window_for(&self, times: &[f64; WINDOWS], rate: f64, most: f64) -> f64 {
        let next = times.partition_point(|time| rate * time > 1.0);
        if next == WINDOWS {
            return most;
        }
        let high = 1.0 / times[next];
        let (low, from) = match next.checked_sub(1) {
            Some(before) => (1.0 / times[before], ILP_WINDOWS[before]),
            None => (self.single * high, 1.0),
        };
        let share = ((rate - low) / (high - low).max(1e-12)).clamp(0.0, 1.0);
        (from * pow(ILP_WINDOWS[next] / from, share)).clamp(1.0, most.max(1.0))
    }
}
