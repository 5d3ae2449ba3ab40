//! Mixes of short stretches of execution, which a mean over the program hides.
//!
//! A stretch is as long as the buffers between fetch, dispatch and ports can even out. Stretches
//! are counted by their accesses to memory, their branches and their computation, and the sum of
//! each kind is kept.

use consort_ops::{Branch, Op, OpKind};

use super::{InstructionCounts, PartialTally};

/// Instructions of a stretch, at least; a block that comes as a whole belongs to one stretch.
const LENGTH: u64 = 64;
/// Bounds between kinds: accesses to memory per operation.
const ACCESSES: [f64; 3] = [0.25, 0.4, 0.55];
/// The same for taken branches.
const TAKEN: [f64; 3] = [0.04, 0.09, 0.15];
/// The same for operations on floating-point or vector registers.
const COMPUTING: [f64; 2] = [0.0625, 0.25];
/// Integer multiplications per operation from which a stretch has a kind of its own.
const MULTIPLYING: f64 = 0.0625;

const KINDS_OF_COMPUTING: usize = COMPUTING.len() + 2;
const KINDS: usize = (ACCESSES.len() + 1) * (TAKEN.len() + 1) * KINDS_OF_COMPUTING;

/// Most mixes that a program is given.
const MOST: usize = 8;

/// Sums of the mixes of stretches of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StretchCounts(Box<[InstructionCounts; KINDS]>);

impl Default for StretchCounts {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| {
            InstructionCounts::default()
        })))
    }
}

impl PartialTally for StretchCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.0.merge(&other.0, with);
    }
}

impl StretchCounts {
    /// The mixes of the most frequent kinds of stretches; each other kind is added to the one that
    /// is most like it.
    #[must_use]
    pub fn mixes(&self) -> Vec<InstructionCounts> {
        let mut kinds: Vec<usize> = (0..KINDS)
            .filter(|&kind| self.0[kind].instructions > 0)
            .collect();
        kinds.sort_by_key(|&kind| std::cmp::Reverse(self.0[kind].instructions));
        let rare = kinds.split_off(kinds.len().min(MOST));
        let mut mixes: Vec<InstructionCounts> =
            kinds.iter().map(|&kind| self.0[kind].clone()).collect();
        for kind in rare {
            let nearest = (0..kinds.len()).min_by_key(|&at| kind_distance(kinds[at], kind));
            if let Some(at) = nearest {
                mixes[at].add(&self.0[kind]);
            }
        }
        mixes
    }
}

/// Meter of stretches.
#[derive(Debug, Clone, Default)]
pub struct Stretches {
    open: InstructionCounts,
    counts: StretchCounts,
}

impl Stretches {
    /// Adds an operation.
    #[inline]
    pub fn add_op(&mut self, op: &Op) {
        if op.first && self.open.instructions >= LENGTH {
            self.close();
        }
        self.open.add_op(op);
    }

    /// Adds a block: counts of its operations without the outcome of its branch, and that branch.
    pub fn add_block(&mut self, operations: &InstructionCounts, branch: Option<Branch>) {
        if self.open.instructions >= LENGTH {
            self.close();
        }
        self.open.add_block(operations, branch);
    }

    /// Counts of all stretches that have ended.
    #[must_use]
    pub const fn counts(&self) -> &StretchCounts {
        &self.counts
    }

    fn close(&mut self) {
        let mix = std::mem::take(&mut self.open);
        self.counts.0[stretch_kind(&mix)].add(&mix);
    }
}

/// Number of the kind of a stretch.
fn stretch_kind(mix: &InstructionCounts) -> usize {
    let all = mix.operation_count().max(1) as f64;
    let share = |count: u64| count as f64 / all;
    let accesses = share(mix.kind_count(OpKind::Load) + mix.kind_count(OpKind::Store));
    let taken = level(&TAKEN, share(mix.taken));
    (level(&ACCESSES, accesses) * (TAKEN.len() + 1) + taken) * KINDS_OF_COMPUTING
        + computing_kind(mix)
}

fn computing_kind(mix: &InstructionCounts) -> usize {
    let multiplies = mix.share(|kind| kind == OpKind::Multiply) >= MULTIPLYING;
    match level(&COMPUTING, mix.share(OpKind::is_vector_side)) {
        0 if multiplies => COMPUTING.len() + 1,
        level => level,
    }
}

fn level(bounds: &[f64], share: f64) -> usize {
    bounds.partition_point(|&bound| bound <= share)
}

/// Distance of two kinds: the number of levels by which they differ.
fn kind_distance(one: usize, other: usize) -> usize {
    let levels = |kind: usize| {
        let rest = kind / KINDS_OF_COMPUTING;
        let taken = TAKEN.len() + 1;
        [kind % KINDS_OF_COMPUTING, rest % taken, rest / taken]
    };
    let pairs = levels(one).into_iter().zip(levels(other));
    pairs.map(|(one, other)| one.abs_diff(other)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(ops: impl Iterator<Item = OpKind>) -> StretchCounts {
        let mut stretches = Stretches::default();
        ops.for_each(|kind| stretches.add_op(&Op::new(kind, 0)));
        stretches.counts().clone()
    }

    #[test]
    fn program_of_two_parts_has_two_mixes() {
        let ops = (0..64_000).map(|i| match i / 6400 % 2 {
            0 => OpKind::Load,
            _ => OpKind::FpAdd,
        });
        let mixes = counted(ops).mixes();
        assert_eq!(mixes.len(), 2);
        let [loads, adds] = [0, 1].map(|at: usize| &mixes[at]);
        assert_eq!(loads.kind_count(OpKind::Load), loads.instructions);
        assert_eq!(adds.kind_count(OpKind::FpAdd), adds.instructions);
        // All but the last stretch, which has not ended.
        assert_eq!(loads.instructions + adds.instructions, 64_000 - LENGTH);
    }

    #[test]
    fn alternation_within_a_stretch_is_one_mix() {
        let ops = (0..64_000).map(|i| match i % 2 {
            0 => OpKind::Load,
            _ => OpKind::FpAdd,
        });
        assert_eq!(counted(ops).mixes().len(), 1);
    }

    #[test]
    fn rare_kinds_join_the_most_similar_ones() {
        // Stretches of all shares of loads, of multiplications and of additions.
        let ops = (0..640_000_u64).map(|i| {
            let (stretch, at) = (i / LENGTH, i % LENGTH);
            match at {
                at if at < stretch % 64 => OpKind::Load,
                at if at < stretch * 7 % 64 => OpKind::Multiply,
                at if at < stretch * 11 % 64 => OpKind::FpAdd,
                _ => OpKind::Integer,
            }
        });
        let mixes = counted(ops).mixes();
        assert_eq!(mixes.len(), MOST);
        let all: u64 = mixes.iter().map(|mix| mix.instructions).sum();
        assert_eq!(all, 640_000 - LENGTH);
        // Kinds have three levels; the level of accesses comes last.
        let nearest = [
            kind_distance(0, 1),
            kind_distance(0, KINDS_OF_COMPUTING),
            kind_distance(0, KINDS - 1),
        ];
        assert_eq!(nearest, [1, 1, 9]);
    }
}
