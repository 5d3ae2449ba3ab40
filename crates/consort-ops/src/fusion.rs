//! Pairs of operations in a row that front ends of some cores handle as one operation.
//!
//! An operation knows its part in such a pair; the core decides which pairs it fuses. An operation
//! of two operands, one of them in memory, is a load and a computation
//! ([`FusedPair::is_executed_as_one`] is false: ports execute both). A comparison and the branch on
//! it are one operation up to and in its port.

use strum::VariantArray;

/// Part of an operation in a pair that a front end can fuse.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum Fusion {
    /// It is in no pair.
    #[default]
    None,
    /// Load for the next operation of its instruction, from an address without an index.
    Operand,
    /// The same from an address with an index, for an operation of two operands that updates one.
    IndexedUpdate,
    /// The same for any other operation.
    Indexed,
    /// Store of the result of the operation before it, of the same instruction.
    Result,
    /// Comparison of registers and constants.
    Compare,
    /// Test of registers and constants.
    Test,
    /// Conjunction of registers and constants.
    And,
    /// Addition or subtraction of registers and constants.
    Add,
    /// Increment or decrement of a register.
    Increment,
    /// Disjunction, exclusive or not, of registers and constants.
    Logic,
    /// One of comparison, test, conjunction, addition and subtraction with an operand in memory.
    Memory,
    /// Branch on equality or on the order of signed numbers.
    OnOrder,
    /// Branch on the order of unsigned numbers, or on a carry.
    OnCarry,
    /// Branch on a sign, an overflow or a parity.
    OnFlag,
}

impl Fusion {
    /// Every part, in the order of [`Fusion::index`]. Trace files contain the index, so new parts
    /// come last.
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Position in [`Fusion::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

/// Kind of pair that a front end can fuse, by its first operation, or [`FusedPair::Result`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, VariantArray)]
pub enum FusedPair {
    /// [`Fusion::Operand`] and its computation.
    Operand,
    /// [`Fusion::IndexedUpdate`] and its computation.
    IndexedUpdate,
    /// [`Fusion::Indexed`] and its computation.
    Indexed,
    /// A computation and the store of its result.
    Result,
    /// [`Fusion::Compare`] and a branch.
    Compare,
    /// [`Fusion::Test`] and a branch.
    Test,
    /// [`Fusion::And`] and a branch.
    And,
    /// [`Fusion::Add`] and a branch.
    Add,
    /// [`Fusion::Increment`] and a branch.
    Increment,
    /// [`Fusion::Logic`] and a branch.
    Logic,
    /// [`Fusion::Memory`] and a branch.
    Memory,
}

impl FusedPair {
    /// Every pair, in the order of [`FusedPair::index`].
    pub const ALL: [Self; Self::VARIANTS.len()] = *Self::VARIANTS.first_chunk().expect("all");

    /// Position in [`FusedPair::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }

    /// Key in program files.
    #[must_use]
    pub const fn key(self) -> &'static str {
        match self {
            Self::Operand => "operand",
            Self::IndexedUpdate => "indexed_update",
            Self::Indexed => "indexed",
            Self::Result => "result",
            Self::Compare => "compare",
            Self::Test => "test",
            Self::And => "and",
            Self::Add => "add",
            Self::Increment => "increment",
            Self::Logic => "logic",
            Self::Memory => "memory",
        }
    }

    /// True if a port executes the pair as one operation.
    #[must_use]
    pub const fn is_executed_as_one(self) -> bool {
        !matches!(
            self,
            Self::Operand | Self::IndexedUpdate | Self::Indexed | Self::Result
        )
    }

    /// The pair of an operation with this part and the next operation, of the same instruction or
    /// not, if they can be one.
    ///
    /// Conditions are those of Intel's cores from Sandy Bridge on (Intel, Optimization Reference
    /// Manual, 2.3.2.1); AMD's cores fuse comparisons with branches on single flags as well, which
    /// hardly occur.
    #[must_use]
    pub fn find(first: Fusion, second: Fusion, same_instruction: bool) -> Option<Self> {
        if same_instruction {
            return match first {
                Fusion::Operand => Some(Self::Operand),
                Fusion::IndexedUpdate => Some(Self::IndexedUpdate),
                Fusion::Indexed => Some(Self::Indexed),
                _ => (second == Fusion::Result).then_some(Self::Result),
            };
        }
        let (order, carry, flag) = match second {
            Fusion::OnOrder => (true, true, true),
            Fusion::OnCarry => (false, true, true),
            Fusion::OnFlag => (false, false, true),
            _ => return None,
        };
        match first {
            Fusion::Compare if carry => Some(Self::Compare),
            Fusion::Test if flag => Some(Self::Test),
            Fusion::And if flag => Some(Self::And),
            Fusion::Add if carry => Some(Self::Add),
            Fusion::Increment if order => Some(Self::Increment),
            Fusion::Logic if flag => Some(Self::Logic),
            Fusion::Memory if carry => Some(Self::Memory),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_limit_pairs() {
        let pairs = |first| {
            [Fusion::OnOrder, Fusion::OnCarry, Fusion::OnFlag]
                .map(|on| FusedPair::find(first, on, false).is_some())
        };
        assert_eq!(pairs(Fusion::Test), [true; 3]);
        assert_eq!(pairs(Fusion::Compare), [true, true, false]);
        assert_eq!(pairs(Fusion::Increment), [true, false, false]);
        assert_eq!(pairs(Fusion::Operand), [false; 3]);
        assert_eq!(FusedPair::find(Fusion::Test, Fusion::None, false), None);
    }

    #[test]
    fn operand_pairs_within_its_instruction() {
        let pair = |same| FusedPair::find(Fusion::Operand, Fusion::None, same);
        assert_eq!(pair(false), None);
        assert_eq!(pair(true), Some(FusedPair::Operand));
    }

    #[test]
    fn parts_and_pairs_are_listed_by_index() {
        assert!((0..).zip(Fusion::ALL).all(|(at, part)| part.index() == at));
        assert!(
            (0..)
                .zip(FusedPair::ALL)
                .all(|(at, pair)| pair.index() == at)
        );
    }
}
