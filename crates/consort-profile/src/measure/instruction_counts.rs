//! Instructions and operations by purpose.

use consort_ops::{Branch, FusedPair, Fusion, Op, OpKind};

use super::PartialTally;

/// Counts of instructions and operations.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InstructionCounts {
    /// Instructions.
    pub instructions: u64,
    /// Operations by [`OpKind::index`].
    pub operations: [u64; OpKind::ALL.len()],
    /// Loads and stores of floating-point or vector registers.
    pub vector_accesses: u64,
    /// Bytes of code of the instructions.
    pub code_bytes: u64,
    /// Branches that were taken.
    pub taken: u64,
    /// Taken branches whose instructions contain the target.
    pub direct: u64,
    /// Pairs of operations that a front end can fuse, by [`FusedPair::index`].
    pub pairs: [u64; FusedPair::ALL.len()],
    /// Part of the last operation in a pair.
    last: Fusion,
}

impl PartialTally for InstructionCounts {
    fn merge(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        self.instructions.merge(&other.instructions, with);
        self.operations.merge(&other.operations, with);
        self.vector_accesses.merge(&other.vector_accesses, with);
        self.code_bytes.merge(&other.code_bytes, with);
        self.taken.merge(&other.taken, with);
        self.direct.merge(&other.direct, with);
        self.pairs.merge(&other.pairs, with);
    }
}

impl InstructionCounts {
    /// Adds an operation.
    pub fn add_op(&mut self, op: &Op) {
        self.instructions += u64::from(op.first);
        self.operations[op.kind.index()] += 1;
        if let Some(pair) = FusedPair::find(self.last, op.fusion, !op.first) {
            self.pairs[pair.index()] += 1;
        }
        self.last = op.fusion;
        if let Some(branch) = op.branch {
            self.add_branch(branch);
        }
        if op.first {
            self.code_bytes += u64::from(op.length);
        }
        self.vector_accesses += u64::from(op.data.is_some_and(|data| data.is_vector));
    }

    /// Adds a block: counts of its operations without the outcome of its branch, and that branch.
    pub fn add_block(&mut self, operations: &Self, branch: Option<Branch>) {
        self.merge(operations, u64::wrapping_add);
        self.last = operations.last;
        if let Some(branch) = branch {
            self.add_branch(branch);
        }
    }

    fn add_branch(&mut self, branch: Branch) {
        self.taken += u64::from(branch.taken);
        self.direct += u64::from(branch.taken && branch.turn.is_direct());
    }

    /// Operations of a kind.
    #[must_use]
    pub const fn kind_count(&self, kind: OpKind) -> u64 {
        self.operations[kind.index()]
    }

    /// Operations of all kinds.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        self.operations.iter().sum()
    }

    /// Share of the operations that `is` picks, 0 to 1.
    #[must_use]
    pub fn share(&self, is: impl Fn(OpKind) -> bool) -> f64 {
        let picked = OpKind::ALL.into_iter().filter(|&kind| is(kind));
        picked.map(|kind| self.kind_count(kind)).sum::<u64>() as f64
            / self.operation_count().max(1) as f64
    }

    /// Share of loads and stores that are of floating-point or vector registers, 0 to 1.
    #[must_use]
    pub fn vector_access_share(&self) -> f64 {
        let accesses = self.kind_count(OpKind::Load) + self.kind_count(OpKind::Store);
        self.vector_accesses as f64 / accesses.max(1) as f64
    }
}
