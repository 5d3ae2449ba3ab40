//! A running thread's setting: what follows from its demand, its core and the number of threads
//! there, and therefore holds over all iterations of the solver.
//!
//! Each part owns the values that its formulas need and is complete once it is made;
//! [`super::pipeline`] combines them.

use super::branches::BranchModel;
use super::buffers::{Buffers, WindowModel, buffers, fp_waiting};
use super::chain::DependenceChain;
use super::claims::ResourceShares;
use super::core_model::{CLASSES, CoreModel, DIVIDER_KINDS, UnitClassUse, unit_use};
use super::in_order::InOrderModel;
use super::limits::CoreLimits;
use super::misses::{MissModel, Misses, PrefetchShares};
use super::needs::{InstructionNeeds, StretchNeeds};
use super::types::{Demand, RunningThread};
use crate::chip::{Chip, PuPlace};
use crate::machine::{CoreSpec, SmtMode};
use crate::phase::Phase;
use crate::program::{DivisionSpec, IlpSpec};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A phase at mean intensity on a core of some type with so many threads, wherever the core is.
#[derive(Clone, Debug)]
struct PhaseSetting {
    /// Kept, so that no other one comes to its address.
    _phase: Arc<Phase>,
    needs: InstructionNeeds,
    limits: CoreLimits,
    chain: DependenceChain,
    /// Use of the buffers, and floating-point operations per instruction that wait in a scheduler.
    buffers: (Buffers, f64),
    /// Use of the buffers with the core to itself.
    whole: Buffers,
    wide: f64,
}

impl PhaseSetting {
    fn new(core: &CoreSpec, model: &CoreModel, phase: &Arc<Phase>, on_core: usize) -> Self {
        let mode = { core.smt.iter() }
            .filter(|mode| mode.ways as usize >= on_core)
            .min_by_key(|mode| mode.ways);
        let width =
            |mode: Option<&SmtMode>| mode.map_or(core.dispatch_width, |m| m.thread_dispatch_width);
        let stretches = StretchNeeds::for_phase(model, phase, width(mode), on_core as f64);
        let needs = InstructionNeeds::mean(&stretches);
        let alone = needs.at_width(model, phase, width(core.smt.first()));
        let spec = &phase.spec;
        let used = buffers(model, spec, &needs, on_core as f64);
        Self {
            _phase: Arc::clone(phase),
            limits: CoreLimits::new(model, &stretches, &needs, on_core),
            chain: DependenceChain::new(spec, core, model),
            buffers: (used, fp_waiting(model, spec, &needs)),
            whole: buffers(model, spec, &alone, 1.0),
            wide: alone.share_of_wide_dispatch(),
            needs,
        }
    }
}

/// Settings of phases on the cores of one chip that were worked out before, by phase, type of core
/// and threads there: they take as long as some iterations of the solver, and running threads change
/// more often than phases.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownPhases(BTreeMap<(usize, usize, usize), PhaseSetting>);

impl KnownPhases {
    fn get(
        &mut self,
        (core, core_type): (&CoreSpec, usize),
        model: &CoreModel,
        phase: &Arc<Phase>,
        on_core: usize,
    ) -> &PhaseSetting {
        let key = (Arc::as_ptr(phase) as usize, core_type, on_core);
        let new = || PhaseSetting::new(core, model, phase, on_core);
        self.0.entry(key).or_insert_with(new)
    }
}

/// Properties of a thread that hold as long as the set of running threads stays the same.
#[derive(Clone, Debug)]
pub(crate) struct ThreadSetting<'a> {
    pub(crate) demand: &'a Demand,
    pub(crate) core: &'a CoreSpec,
    pub(crate) model: &'a CoreModel,
    /// Clock, Hz.
    pub(crate) hz: f64,
    /// Threads on the core, itself included.
    pub(crate) on_core: f64,
    /// Needs of an average instruction on this core.
    pub(crate) needs: InstructionNeeds,
    pub(crate) limits: CoreLimits,
    pub(crate) chain: DependenceChain,
    pub(crate) window: WindowModel,
    /// Share of the way from a dispatch of four operations per cycle to one of eight, 0 to 1.
    pub(crate) wide: f64,
    pub(crate) unevenness: f64,
    pub(crate) latencies: CacheLatencies,
    pub(crate) misses: MissModel<'a>,
    pub(crate) branches: BranchModel<'a>,
    pub(crate) units: [UnitClassUse; CLASSES],
    pub(crate) in_order: InOrderModel<'a>,
}

impl<'a> ThreadSetting<'a> {
    /// The setting of a thread at a place, on a core with so many threads.
    pub(crate) fn new(
        chip: &'a Chip,
        known: &mut KnownPhases,
        running: RunningThread<'a>,
        place: PuPlace,
        on_core: usize,
        prefetching: PrefetchShares,
    ) -> Self {
        let demand = running.demand;
        let (core, model) = (chip.core_spec(place), chip.core_model(place, on_core));
        let phase = known.get((core, place.core_type), model, &demand.phase, on_core);
        let PhaseSetting {
            needs,
            limits,
            wide,
            ..
        } = *phase;
        let chain = phase.chain.with_intensity(demand.intensity);
        let rate = |window: f64| limits.all.min(chain.rate(&demand.phase.spec, window));
        let mut window = WindowModel::new(demand, core, phase.buffers, &phase.whole, rate);
        let branches = BranchModel::new(demand, core, model, (&needs, &limits, &chain), on_core);
        let units = unit_use(core, &demand.phase.spec.mix);
        let latencies = CacheLatencies::new(chip, place, demand.home_node);
        let misses = MissModel::new(chip, demand, core, on_core as f64, prefetching);
        if let Some(most) = model.tables.balance_misses.filter(|_| on_core > 1) {
            let long = misses.data_lines.long;
            window = window.with_balance(most, long, latencies.l2, needs.width);
        }
        Self {
            demand,
            core,
            model,
            wide,
            unevenness: demand.phase.spec.unevenness(wide),
            hz: chip.frequency_hz(place),
            on_core: on_core as f64,
            needs,
            limits,
            chain,
            window,
            latencies,
            misses,
            branches,
            units,
            in_order: InOrderModel::new(
                demand,
                (core, model),
                units,
                &limits,
                chip.counts_in_order(),
            ),
        }
    }

    /// Divisions per instruction, by kind.
    fn divisions(&self) -> [Option<DivisionSpec>; DIVIDER_KINDS] {
        let ilp = &self.demand.phase.spec.ilp;
        [ilp.int_divisions, ilp.fp_divisions]
    }

    /// Share of the dividers of a kind that it can reach which it uses, at so many cycles per
    /// instruction, 0 to 1.
    pub(crate) fn divider_use(&self, kind: usize, cpi: f64) -> f64 {
        let divider = &self.model.dividers[kind];
        let ports = divider.ports.reach(self.on_core as usize);
        match self.divisions()[kind] {
            Some(divisions) if ports > 0.0 && cpi > 0.0 => {
                let taken = divisions.operations * divider.mean_interval(divisions.slow);
                (taken / (ports * cpi)).min(1.0)
            }
            _ => 0.0,
        }
    }

    /// Cycles per instruction that divisions wait for dividers, of a chain of so many cycles per
    /// instruction.
    ///
    /// A profile says by what share the longest chain gets longer with one divider that each
    /// division takes for so many cycles ([`DivisionSpec`]). Several dividers are one that is taken
    /// for less, what co-runners leave of one is a divider that is taken for longer, and on a core
    /// whose chains take longer the same groups of divisions wait less.
    pub(super) fn divider_wait(&self, held: &ResourceShares, chain: f64) -> f64 {
        let kinds = self.divisions().into_iter().zip(&self.model.dividers);
        let longer = kinds
            .zip(held.divided)
            .map(|((divisions, divider), taken)| {
                let ports = divider.ports.reach(self.on_core as usize);
                match divisions {
                    Some(divisions) if ports > 0.0 => {
                        let interval = divider.mean_interval(divisions.slow);
                        let cycles = interval / (ports * (1.0 - taken));
                        divisions.lengthening(cycles / self.chain.stretch)
                    }
                    _ => 0.0,
                }
            });
        chain * longer.sum::<f64>()
    }
}

/// Cycles from the request of a line to its arrival, by the level that has it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CacheLatencies {
    l1: f64,
    /// Of the LLC where there is no L2.
    pub(crate) l2: f64,
    has_l2: bool,
    pub(crate) llc: f64,
    /// False where memory comes behind the L2.
    pub(crate) has_llc: bool,
    /// Of another LLC domain, where domains supply each other.
    pub(crate) remote: Option<f64>,
    /// Of idle memory behind the LLC, in addition to the LLC's.
    pub(crate) memory: f64,
    /// Cycles that the last level of the TLB adds to a load.
    pub(crate) far_page: f64,
}

impl CacheLatencies {
    fn new(chip: &Chip, place: PuPlace, home_node: usize) -> Self {
        let core = chip.core_spec(place);
        let hz = chip.frequency_hz(place);
        let cycles = |ns: f64| ns * 1e-9 * hz;
        let llc = &chip.spec().llc;
        let has_llc = chip.llc_kib(place.llc) > 0.0;
        let nearest = core.l2.as_ref().unwrap_or(&core.l1d).latency_cycles;
        // On a slow clock too, a hit in the LLC has passed the caches before it.
        let llc_cycles = if has_llc {
            cycles(llc.latency_ns).max(nearest)
        } else {
            nearest
        };
        let l2 = core.l2.as_ref();
        Self {
            l1: core.l1d.latency_cycles,
            l2: l2.map_or(llc_cycles, |l2| l2.latency_cycles),
            has_l2: l2.is_some(),
            llc: llc_cycles,
            has_llc,
            remote: llc.remote_latency_ns.map(cycles),
            memory: cycles(chip.memory_latency_ns(place, home_node)),
            far_page: core.tlb.hit_cycles.unwrap_or(0.0),
        }
    }

    /// Cycles per instruction that hits in L2 and LLC add to the latency of the mean instruction.
    ///
    /// A hit adds its latency less the L1's, but no more than `overlap` of its latency, because
    /// loads that overlap like misses to memory are on no chain. Without the bound a bigger cache
    /// could hurt.
    pub(super) fn hits(&self, misses: &Misses, overlap: f64) -> (f64, f64) {
        let cost = |cycles: f64| (cycles - self.l1).min(cycles * overlap).max(0.0);
        let here = (misses.data[1] - misses.data[2]) * cost(self.llc);
        let remote = self.remote.map_or(0.0, |cycles| {
            (misses.data[2] - misses.data[3]) * cost(cycles)
        });
        let in_l2 = self.l2_hits(misses);
        (in_l2 * cost(self.l2), misses.exposed * (here + remote))
    }

    /// Cycles per instruction that hits in L2 and LLC cost in a full window, `None` if the profile
    /// lacks them; bounded as those of [`CacheLatencies::hits`] are; `wide` as in [`IlpSpec::miss_cost`].
    pub(super) fn measured_hits(
        &self,
        ilp: &IlpSpec,
        misses: &Misses,
        (overlap, wide): (f64, f64),
    ) -> Option<(f64, f64)> {
        let cost = |cycles: f64| Some(ilp.miss_cost(cycles - self.l1, wide)?.min(cycles * overlap));
        let here = (misses.data[1] - misses.data[2]) * cost(self.llc)?;
        let remote = match self.remote {
            Some(cycles) => (misses.data[2] - misses.data[3]) * cost(cycles)?,
            None => 0.0,
        };
        let in_l2 = self.l2_hits(misses);
        Some((in_l2 * cost(self.l2)?, misses.exposed * (here + remote)))
    }

    /// Cycles per instruction that translations by the last level of the TLB cost in a full window; 0
    /// if the profile lacks the cost of late loads.
    pub(super) fn translations(&self, ilp: &IlpSpec, misses: &Misses, wide: f64) -> f64 {
        misses.far_pages * ilp.miss_cost(self.far_page, wide).unwrap_or(0.0)
    }

    /// Hits in the L2 per instruction.
    pub(super) fn l2_hits(&self, misses: &Misses) -> f64 {
        if self.has_l2 {
            misses.data[0] - misses.data[1]
        } else {
            0.0
        }
    }

    /// Cycles per instruction that misses add to the wait of a mispredicted branch, for each load
    /// that misses on its way. Data beyond the L2 counts as if it were in the LLC, wherever it is,
    /// because waiting for memory has a term of its own.
    pub(super) fn branch_delay(&self, misses: &Misses) -> f64 {
        let in_l2 = misses.data[0] - misses.data[1];
        let beyond = misses.exposed * misses.data[1];
        let late = in_l2 * (self.l2 - self.l1) + beyond * (self.llc - self.l1);
        late.max(0.0) + misses.far_pages * self.far_page
    }
}
