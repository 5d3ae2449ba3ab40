//! Costs of fetching and dispatching a program's code, and what some cores make of its operations.

use crate::machine::detail::{FusionPair, WorkKind};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Costs of fetching and dispatching code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CodeSpec {
    /// Operations per instruction, at least 1; 1 where it is missing.
    #[serde(default)]
    pub operations: Option<f64>,
    /// Taken branches per instruction, 0 to 1; where it is missing, the traced programs' mean share
    /// of branches.
    #[serde(default)]
    pub taken: Option<f64>,
    /// Turns of fetch per instruction that bring as many operations as each of [`FETCH_WIDTHS`] and
    /// end at a taken branch; where they are missing, as for runs of random lengths.
    #[serde(default)]
    pub turns: Option<[f64; FETCH_WIDTHS.len()]>,
    /// Share of the taken branches whose instructions say where to, 0 to 1; where it is missing,
    /// the traced programs' mean.
    #[serde(default)]
    pub direct: Option<f64>,
    /// Bytes per instruction; 4 where it is missing.
    #[serde(default)]
    pub bytes: Option<f64>,
    /// Share of the lines of code that follow one which was fetched just before, 0 to 1: what
    /// fetching the next line along saves. Where it is missing, as runs between branches have it.
    #[serde(default)]
    pub sequential: Option<f64>,
    /// Share of loads and stores that are of floating-point or vector registers, 0 to 1; where it
    /// is missing, the share of such instructions among those that compute.
    #[serde(default)]
    pub vector_accesses: Option<f64>,
    /// Operations of kinds that only some cores distinguish; none where it is missing.
    #[serde(default)]
    pub kinds: KindsSpec,
    /// Pairs of operations that some front ends fuse; none where it is missing.
    #[serde(default)]
    pub pairs: PairsSpec,
}

/// Operations per turn for which turns of fetch are measured.
pub const FETCH_WIDTHS: [f64; 4] = [4.0, 6.0, 8.0, 12.0];

/// Pairs of operations in a row that some front ends handle as one operation, per instruction; an
/// operation can be in two pairs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PairsSpec {
    /// Loads from addresses without an index, and their computations.
    #[serde(default)]
    pub operand: f64,
    /// Loads from addresses with an index, and computations of two operands that update one.
    #[serde(default)]
    pub indexed_update: f64,
    /// Loads from addresses with an index, and other computations.
    #[serde(default)]
    pub indexed: f64,
    /// Computations and the stores of their results by the same instruction.
    #[serde(default)]
    pub result: f64,
    /// Comparisons of registers and constants, and branches on them.
    #[serde(default)]
    pub compare: f64,
    /// Tests of registers and constants, and branches on them.
    #[serde(default)]
    pub test: f64,
    /// Conjunctions of registers and constants, and branches on them.
    #[serde(default)]
    pub and: f64,
    /// Additions or subtractions of registers and constants, and branches on them.
    #[serde(default)]
    pub add: f64,
    /// Increments or decrements of registers, and branches on them.
    #[serde(default)]
    pub increment: f64,
    /// Disjunctions of registers and constants, and branches on them.
    #[serde(default)]
    pub logic: f64,
    /// Comparisons and the like with an operand in memory, and branches on them.
    #[serde(default)]
    pub memory: f64,
}

impl PairsSpec {
    /// Each pair, with its key and its number per instruction, in the order of [`FusionPair::ALL`].
    pub fn pairs(&self) -> [(FusionPair, &'static str, f64); FusionPair::ALL.len()] {
        [
            (FusionPair::Operand, "operand", self.operand),
            (
                FusionPair::IndexedUpdate,
                "indexed_update",
                self.indexed_update,
            ),
            (FusionPair::Indexed, "indexed", self.indexed),
            (FusionPair::Result, "result", self.result),
            (FusionPair::Compare, "compare", self.compare),
            (FusionPair::Test, "test", self.test),
            (FusionPair::And, "and", self.and),
            (FusionPair::Add, "add", self.add),
            (FusionPair::Increment, "increment", self.increment),
            (FusionPair::Logic, "logic", self.logic),
            (FusionPair::Memory, "memory", self.memory),
        ]
    }
}

/// Operations of kinds that only some cores distinguish, per instruction; parts of the operations
/// of their classes in `mix`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct KindsSpec {
    /// Population counts, bit scans, gathering and scattering of bits, checksums.
    #[serde(default)]
    pub count: f64,
    /// Address computations of three operands.
    #[serde(default)]
    pub address: f64,
    /// Shifts of two registers together.
    #[serde(default)]
    pub double_shift: f64,
    /// Conversions between integers in general registers and floating-point numbers.
    #[serde(default)]
    pub convert: f64,
    /// Moves between general and vector registers.
    #[serde(default)]
    pub cross: f64,
    /// Packed multiplications of integers, but for `wide_vector_multiply`.
    #[serde(default)]
    pub vector_multiply: f64,
    /// Packed multiplications of integers of 32 bits or more into integers of the same length.
    #[serde(default)]
    pub wide_vector_multiply: f64,
}

impl KindsSpec {
    /// The work of each kind, with its key and its operations per instruction.
    pub fn works(&self) -> [(WorkKind, &'static str, f64); 7] {
        [
            (WorkKind::Count, "count", self.count),
            (WorkKind::Address, "address", self.address),
            (WorkKind::DoubleShift, "double_shift", self.double_shift),
            (WorkKind::Convert, "convert", self.convert),
            (WorkKind::Cross, "cross", self.cross),
            (
                WorkKind::VectorMultiply,
                "vector_multiply",
                self.vector_multiply,
            ),
            (
                WorkKind::WideVectorMultiply,
                "wide_vector_multiply",
                self.wide_vector_multiply,
            ),
        ]
    }
}
