//! Needs of a thread's instructions on its core: slots, cycles of fetch, ports.
//!
//! A cycle of fetch brings at most so many operations from one aligned block of code, and ends at a
//! taken branch. A run of instructions is as likely to end behind each of them, so what is left of
//! it at a block's border is distributed as the whole run is, and the mean is exact but for how
//! many operations a block holds. Code that is there decoded comes without regard to blocks, as far
//! as the cache of decoded operations holds it.

use super::caches::{CacheSets, SETS};
use super::core_model::{CoreModel, WORKS, WorkAmounts};
use crate::machine::detail::{BufferSharing, FusionPair, WorkKind};
use crate::machine::tables::FrontTables;
use crate::math::{exp, pow};
use crate::phase::{LineEffect, Phase};
use crate::program::{MixSpec, PhaseSpec, StretchSpec};

/// Operations per cycle of dispatch in the pipeline in which the resolution of branches is measured.
const RESOLUTION_WIDTH: f64 = 4.0;

/// Needs of an average instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct InstructionNeeds {
    /// Operations.
    pub(crate) operations: f64,
    /// Dispatch slots, and entries of a reorder buffer: operations less the ones that are fused with
    /// the one before.
    pub(crate) slots: f64,
    /// Operations that a thread dispatches at most in a cycle.
    pub(crate) width: u32,
    /// Cycles of dispatch, were nothing else in the way: one over the instructions of a group.
    pub(crate) dispatch_turns: f64,
    /// Cycles of fetch.
    pub(crate) fetch_turns: f64,
    /// Cycles without fetch behind taken branches, which co-runners can use.
    pub(crate) bubbles: f64,
    /// Share of the turns of fetch behind which they pass, 0 to 1.
    pub(crate) pauses: f64,
    /// Integer operations that are executed with the branch behind them: of no count, but they
    /// write registers.
    pub(crate) joined: f64,
    /// Operations by work.
    pub(crate) count: WorkAmounts,
    /// Port cycles by work.
    pub(crate) works: WorkAmounts,
}

/// Needs of an average instruction of some of a phase's stretches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct StretchNeeds {
    /// Share of the phase's instructions, 0 to 1.
    pub(crate) share: f64,
    pub(crate) needs: InstructionNeeds,
}

impl StretchNeeds {
    /// Works out the needs of a phase's stretches on a core with `on_core` threads that dispatches
    /// `width` of its operations per cycle.
    pub(crate) fn for_phase(
        model: &CoreModel,
        phase: &Phase,
        width: f64,
        on_core: f64,
    ) -> Vec<Self> {
        let mut all: Vec<Self> = Vec::with_capacity(phase.stretches.len());
        let mut before: Option<&StretchSpec> = None;
        let kinds = DistinguishedKinds::new(model, phase);
        let fused = FusedOperations::new(model, phase);
        let code = CodeSupply::new(&model.tables.front, phase, &fused, on_core);
        for stretch in &phase.stretches {
            // Stretches that were not measured are alike in pairs, and this costs more than the rest.
            let like = |before: &&StretchSpec| {
                before.taken == stretch.taken
                    && before.operations == stretch.operations
                    && fused.slots(before) == fused.slots(stretch)
            };
            let fetch_turns = match (before.filter(like), all.last()) {
                (Some(_), Some(last)) => last.needs.fetch_turns,
                _ => code.fetch_cycles(stretch.taken, fused.slots(stretch)),
            };
            all.push(Self {
                share: stretch.share,
                needs: InstructionNeeds::for_stretch(
                    model,
                    &phase.spec,
                    stretch,
                    (&kinds, &fused),
                    (width, fetch_turns),
                ),
            });
            before = Some(stretch);
        }
        all
    }
}

impl InstructionNeeds {
    /// Means over stretches of execution.
    pub(crate) fn mean(stretches: &[StretchNeeds]) -> Self {
        let mut mean = Self::default();
        for StretchNeeds { share, needs } in stretches {
            mean.width = needs.width;
            mean.operations += share * needs.operations;
            mean.slots += share * needs.slots;
            mean.dispatch_turns += share * needs.dispatch_turns;
            mean.fetch_turns += share * needs.fetch_turns;
            mean.bubbles += share * needs.bubbles;
            mean.joined += share * needs.joined;
            mean.pauses += share * needs.fetch_turns * needs.pauses;
            for at in 0..needs.works.len() {
                mean.count[at] += share * needs.count[at];
                mean.works[at] += share * needs.works[at];
            }
        }
        mean.pauses /= mean.fetch_turns.max(f64::MIN_POSITIVE);
        mean
    }

    /// Returns the same needs where a thread dispatches so many operations per cycle.
    pub(crate) fn at_width(self, model: &CoreModel, phase: &Phase, width: f64) -> Self {
        let fused = FusedOperations::new(model, phase);
        let turns = |stretch: &StretchSpec| {
            stretch.share * dispatch_turns(model, stretch, fused.slots(stretch), width)
        };
        Self {
            width: width as u32,
            dispatch_turns: phase.stretches.iter().map(turns).sum(),
            ..self
        }
    }

    /// Cycles per instruction of dispatch in the pipeline in which the resolution of branches is
    /// measured.
    pub(super) fn measured_dispatch(&self) -> f64 {
        self.operations / RESOLUTION_WIDTH
    }

    /// Share of the way from a dispatch of four operations per cycle, for which costs are measured, to
    /// one of eight, 0 to 1.
    pub(super) fn share_of_wide_dispatch(&self) -> f64 {
        let [four, eight] = [4.0, 8.0].map(|width| self.operations / width);
        ((four - self.dispatch_turns) / (four - eight)).clamp(0.0, 1.0)
    }

    /// Operations per instruction of a kind of work by which ports differ; 0 of others.
    pub(crate) fn work_operations(&self, work: WorkKind) -> f64 {
        let at = WORKS.iter().position(|&known| known == work);
        at.map_or(0.0, |at| self.count[at])
    }

    fn for_stretch(
        model: &CoreModel,
        phase: &PhaseSpec,
        stretch: &StretchSpec,
        (kinds, fused): (&DistinguishedKinds, &FusedOperations),
        (width, fetch_turns): (f64, f64),
    ) -> Self {
        let direct = stretch.taken * phase.direct_share();
        let bubbles = direct * model.bubble;
        let pauses = if bubbles > 0.0 {
            (direct / fetch_turns).min(1.0)
        } else {
            0.0
        };
        let mut count = count(model, phase, stretch);
        let mut works = core::array::from_fn(|at: usize| count[at] * model.intervals[at]);
        kinds.distinguish(model, &mut count, &mut works);
        // A branch is executed with the comparison before it.
        let joined = fused.branches(stretch).min(count[INTEGER]);
        count[INTEGER] -= joined;
        works[INTEGER] -= joined * model.intervals[INTEGER];
        let slots = fused.slots(stretch);
        Self {
            operations: stretch.operations,
            slots,
            width: width as u32,
            dispatch_turns: dispatch_turns(model, stretch, slots, width),
            fetch_turns,
            bubbles,
            pauses,
            joined,
            count,
            works,
        }
    }
}

/// Position of integer operations in [`WORKS`].
const INTEGER: usize = 0;

/// Pairs of operations that a core fuses.
struct FusedOperations {
    /// Pairs with a load, per load.
    loads: f64,
    /// Pairs with a store, per store.
    stores: f64,
    /// Pairs with a branch, per branch.
    branches: f64,
}

impl FusedOperations {
    fn new(model: &CoreModel, phase: &Phase) -> Self {
        let (mut loads, mut stores, mut branches) = (0.0, 0.0, 0.0);
        let fuses = &model.tables.front.fuses;
        for (pair, _, amount) in phase.spec.code.pairs.pairs() {
            if !fuses[pair.index()] {
                continue;
            }
            match pair {
                FusionPair::Operand | FusionPair::IndexedUpdate | FusionPair::Indexed => {
                    loads += amount;
                }
                FusionPair::Result => stores += amount,
                _ => branches += amount,
            }
        }
        let mean = |of: fn(&MixSpec) -> f64| {
            let each = phase.stretches.iter();
            each.map(|s| s.share * s.operations * of(&s.mix))
                .sum::<f64>()
        };
        let part = |amount: f64, all: f64| {
            if all > 0.0 {
                (amount / all).min(1.0)
            } else {
                0.0
            }
        };
        Self {
            loads: part(loads, mean(|mix| mix.load)),
            stores: part(stores, mean(|mix| mix.store)),
            branches: part(branches, mean(|mix| mix.branch)),
        }
    }

    /// Branches per instruction of a stretch that are fused with the comparison before them.
    fn branches(&self, stretch: &StretchSpec) -> f64 {
        self.branches * stretch.mix.branch * stretch.operations
    }

    /// Dispatch slots per instruction of a stretch.
    fn slots(&self, stretch: &StretchSpec) -> f64 {
        let mix = &stretch.mix;
        let fused = self.loads * mix.load + self.stores * mix.store + self.branches * mix.branch;
        stretch.operations * (1.0 - fused.min(FUSED))
    }
}

/// Share of operations that are fused with the one before them, at most: a comparison with an
/// operand in memory, a branch on it.
const FUSED: f64 = 2.0 / 3.0;

/// Kinds of operations that a core distinguishes, as parts of the operations of their usual work.
struct DistinguishedKinds([(WorkKind, f64); 7]);

impl DistinguishedKinds {
    fn new(model: &CoreModel, phase: &Phase) -> Self {
        let mut usual = WorkAmounts::default();
        for stretch in &phase.stretches {
            let count = count(model, &phase.spec, stretch);
            for (sum, amount) in usual.iter_mut().zip(count) {
                *sum += stretch.share * amount;
            }
        }
        let mut left = [1.0; WORKS.len()];
        let kinds = phase.spec.code.kinds.works();
        Self(kinds.map(|(work, _, operations)| {
            let at = model.executed_as[work.usual().index()];
            let part = if usual[at] > 0.0 {
                (operations / usual[at]).min(left[at])
            } else {
                0.0
            };
            left[at] -= part;
            (work, part)
        }))
    }

    /// Executes these kinds on their own ports and for their own time.
    fn distinguish(&self, model: &CoreModel, count: &mut WorkAmounts, works: &mut WorkAmounts) {
        let usual = *count;
        for (work, part) in self.0 {
            let from = model.executed_as[work.usual().index()];
            let to = model.executed_as[work.index()];
            let amount = part * usual[from];
            count[from] -= amount;
            count[to] += amount;
            works[from] -= amount * model.intervals[from];
            works[to] += amount * f64::from(model.tables.times[work.index()].interval_cycles);
        }
    }
}

/// Operations per instruction, by work.
fn count(model: &CoreModel, phase: &PhaseSpec, stretch: &StretchSpec) -> WorkAmounts {
    let (mix, vector) = (&stretch.mix, phase.vector_accesses());
    let [.., named_load, named_store, _, _] = model.named;
    let vector_stores = if named_store { mix.store * vector } else { 0.0 };
    let vector_loads = if named_load { mix.load * vector } else { 0.0 };
    let shares = [
        mix.int - stretch.multiply,
        mix.fp,
        mix.vector - stretch.moves,
        mix.load,
        mix.store,
        mix.branch,
        mix.store - vector_stores,
        vector_loads,
        vector_stores,
        stretch.multiply,
        stretch.moves,
    ];
    shares.map(|share| share * stretch.operations)
}

/// Cycles of dispatch per instruction. A group takes so many branches, and other operations in
/// what is left of its slots.
fn dispatch_turns(model: &CoreModel, stretch: &StretchSpec, operations: f64, width: f64) -> f64 {
    let Some(group) = model.tables.group else {
        return operations / width;
    };
    let slots = f64::from(group.slots);
    let width = width.min(slots);
    let branches = (f64::from(group.branches) * width / slots).floor().max(1.0);
    let plain = (width - branches).max(1.0);
    let of_branches = stretch.mix.branch * operations / branches;
    let of_others = (1.0 - stretch.mix.branch) * operations / plain;
    of_branches.max(of_others).max(operations / width)
}

/// Taken branches per instruction, at least: where there are none, runs are long.
const RAREST: f64 = 1e-4;

/// Deviation of an instruction's length over its mean, estimated: eleven of the traced programs have
/// 0.17 to 0.49, their median is 0.44.
const LENGTHS: f64 = 0.45;

/// Code that a line of decoded operations covers, bytes.
const DECODED_BYTES: f64 = 32.0;

/// Supply of a thread's code on its core.
struct CodeSupply<'a> {
    front: &'a FrontTables,
    /// Bytes of code per instruction.
    bytes: f64,
    /// Share of the code that is not there decoded, 0 to 1.
    undecoded: f64,
    /// Turns that decoded code takes, over those of runs of random lengths.
    turns: f64,
}

impl<'a> CodeSupply<'a> {
    /// The share of decoded code follows from the misses of a cache as large as the code that all
    /// lines cover, for lines so long, over the lines that runs between taken branches touch.
    /// Threads have equal parts of what they share.
    fn new(front: &'a FrontTables, phase: &Phase, fused: &FusedOperations, on_core: f64) -> Self {
        let bytes = phase.spec.code_bytes();
        let undecoded = front.op_cache.map_or(1.0, |cache| {
            let parts = match cache.sharing {
                BufferSharing::Private => 1.0,
                BufferSharing::Halved => on_core.min(2.0),
                BufferSharing::Shared | BufferSharing::Partitioned => on_core,
            };
            let lines = f64::from(cache.ops / cache.line_ops.max(1)) / parts;
            let effect = LineEffect::for_code(&phase.spec, DECODED_BYTES);
            let capacity = lines * DECODED_BYTES / effect.space;
            let missed = match &phase.spec.instruction_conflicts {
                Some(conflicts) => {
                    (phase.code.mpki(capacity) + conflicts.conflicts(capacity, cache.ways)) / 1000.0
                }
                None => {
                    let sets = CacheSets::from_ways(cache.ways);
                    let mut held = [0.0; SETS];
                    for (held, share) in held.iter_mut().zip(sets.capacities()) {
                        *held = share * capacity;
                    }
                    sets.misses(&phase.code, held)
                }
            };
            let missed = effect.misses * missed;
            let touched = phase.spec.taken_branches() + bytes / DECODED_BYTES;
            (missed / touched).min(1.0)
        });
        Self {
            front,
            bytes,
            undecoded,
            turns: front.op_cache.map_or(1.0, |cache| {
                measured_turns(phase, fused, f64::from(cache.width))
            }),
        }
    }

    /// Cycles of fetch per instruction of so many taken branches and operations.
    fn fetch_cycles(&self, taken: f64, operations: f64) -> f64 {
        let goes_on = goes_on(taken, operations);
        let taken = taken.max(RAREST);
        let decoding = || {
            let block = operations * f64::from(self.front.fetch_bytes) / self.bytes;
            CodeRun { goes_on, block }.cycles(f64::from(self.front.fetch_width))
        };
        // Lines of decoded operations follow each other within a cycle.
        let run = match self.front.op_cache {
            None => decoding(),
            Some(cache) => {
                let decoded = self.turns / (1.0 - pow(goes_on, f64::from(cache.width)));
                if self.undecoded > 0.0 {
                    decoded + self.undecoded * (decoding() - decoded).max(0.0)
                } else {
                    decoded
                }
            }
        };
        taken * run
    }
}

/// Likelihood that another operation follows in a run, 0 to 1.
fn goes_on(taken: f64, operations: f64) -> f64 {
    1.0 - (taken.max(RAREST) / operations).min(1.0)
}

/// Turns of so many slots that a phase's code takes as measured, over those of runs of random
/// lengths; 1 if they were not measured.
fn measured_turns(phase: &Phase, fused: &FusedOperations, width: f64) -> f64 {
    let (mut at_random, mut operations, mut slots) = (0.0, 0.0, 0.0);
    for stretch in &phase.stretches {
        let of_stretch = fused.slots(stretch);
        let going_on = pow(goes_on(stretch.taken, of_stretch), width);
        at_random += stretch.share * stretch.taken.max(RAREST) / (1.0 - going_on);
        operations += stretch.share * stretch.operations;
        slots += stretch.share * of_stretch;
    }
    let turns = phase.spec.fetch_turns(width * operations / slots);
    turns.map_or(1.0, |turns| turns / at_random)
}

/// Operations from one taken branch to the next.
struct CodeRun {
    /// Likelihood that another operation follows, 0 to 1.
    goes_on: f64,
    /// Operations that an aligned block of code holds, on average.
    block: f64,
}

impl CodeRun {
    /// Mean cycles that fetch takes for it.
    fn cycles(&self, width: f64) -> f64 {
        let survives = pow(self.goes_on, self.block);
        if survives >= 1.0 {
            return f64::INFINITY;
        }
        let (mut entered, mut crossed) = (0.0, 0.0);
        let mut before = 0.0;
        let mut likely = 1.0;
        let turn = pow(self.goes_on, width);
        while before < self.block + 4.0 * self.deviation() {
            entered += likely * (1.0 - before / self.block).max(0.0);
            crossed += likely * self.overflow_likelihood(before);
            before += width;
            likely *= turn;
        }
        // A branch leads to any instruction of a block, crossing its border to the first.
        let crosses = self.goes_on * (1.0 - survives) / (self.block * (1.0 - self.goes_on));
        entered + crosses.min(1.0) * crossed / (1.0 - survives)
    }

    /// Likelihood that a block holds more than so many operations, 0 to 1: the normal distribution
    /// by its logistic approximation.
    fn overflow_likelihood(&self, operations: f64) -> f64 {
        const LOGISTIC: f64 = 1.702;
        if operations == 0.0 {
            return 1.0;
        }
        let beyond = self.block - operations - 0.5;
        1.0 / (1.0 + exp(-LOGISTIC * beyond / self.deviation()))
    }

    /// Deviation of the operations in a block, as of renewals.
    fn deviation(&self) -> f64 {
        LENGTHS * self.block.sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::presets;
    use rand::{Rng, RngExt, SeedableRng};
    use rand_pcg::Pcg64Mcg;

    fn phase(change: impl FnOnce(&mut PhaseSpec)) -> Phase {
        let program = include_str!("../../../consort-describe/tests/small/program.toml");
        let mut program = crate::program::parse("small", program).unwrap();
        change(&mut program.phases[0]);
        Phase::new(&program.phases[0])
    }

    fn needs(machine: &str, phase: &Phase) -> InstructionNeeds {
        let spec = presets::find(machine).unwrap();
        let core = spec.core_types.values().next().unwrap();
        let model = &CoreModel::joined_and_halved(core)[1];
        InstructionNeeds::mean(&StretchNeeds::for_phase(
            model,
            phase,
            core.dispatch_width,
            1.0,
        ))
    }

    /// A phase whose stretches are alike, with such a share of branches.
    fn with_branches(share: f64) -> Phase {
        let mut phase = phase(|p| p.mix.branch = share);
        for stretch in &mut phase.stretches {
            stretch.mix.branch = share;
        }
        phase
    }

    #[test]
    fn group_ends_with_its_branches() {
        // Six slots, two of them for branches alone.
        let plain = needs("power7", &with_branches(0.0)).dispatch_turns;
        assert_eq!(plain, 1.0 / 4.0);
        let third = needs("power7", &with_branches(1.0 / 3.0)).dispatch_turns;
        assert!((third - 1.0 / 6.0).abs() < 1e-12, "{third}");
    }

    const BLOCK: u32 = 32;

    /// Cycles for a run from a random place, of instructions of 1 to 7 bytes.
    fn fetched(random: &mut impl Rng, width: u32, goes_on: f64) -> f64 {
        let mut at = random.random_range(0..BLOCK);
        let (mut cycles, mut left, mut block) = (1, width, at / BLOCK);
        loop {
            if left == 0 || at / BLOCK != block {
                cycles += 1;
                (left, block) = (width, at / BLOCK);
            }
            left -= 1;
            at += random.random_range(1..=7);
            if !random.random_bool(goes_on) {
                return f64::from(cycles);
            }
        }
    }

    #[test]
    fn random_code_takes_computed_cycles() {
        const RUNS: u32 = 100_000;
        let mut random = Pcg64Mcg::seed_from_u64(1);
        for (width, goes_on) in [(4, 0.9), (4, 0.97), (8, 0.9), (5, 0.8), (3, 0.95)] {
            let sum: f64 = (0..RUNS)
                .map(|_| fetched(&mut random, width, goes_on))
                .sum();
            let run = CodeRun {
                goes_on,
                block: f64::from(BLOCK) / 4.0,
            };
            let ratio = run.cycles(f64::from(width)) * f64::from(RUNS) / sum;
            assert!((0.95..1.05).contains(&ratio), "{width} {goes_on}: {ratio}");
        }
    }

    #[test]
    fn branch_per_instruction_takes_one_cycle() {
        let run = CodeRun {
            goes_on: 0.0,
            block: 8.0,
        };
        assert_eq!(run.cycles(4.0), 1.0);
    }
}
