//! Program profiles: demands of a program on a chip.

mod branch;
mod code;
mod ilp;
pub mod presets;
mod spec;
mod validate;

pub use branch::*;
pub use code::{CodeSpec, FETCH_WIDTHS, KindsSpec, PairsSpec};
pub use ilp::{
    ChainSpec, DivisionSpec, FpSchedulerSpec, ILP_WINDOWS, IlpSpec, MISS_CYCLES, MOST_CHAIN_SETS,
    NEAR_USES, PARTIAL_LOAD_CYCLES,
};
pub use spec::*;
pub use validate::validate;

use crate::describe::{self, DescribeError};

/// Reads and validates a program file's text; `file` is its name for messages.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(file: &str, text: &str) -> Result<ProgramSpec, DescribeError> {
    describe::parse(file, text, validate)
}
