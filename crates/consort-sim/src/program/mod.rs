//! Program profiles: what a program asks of a chip.

mod curve;
mod ilp;
mod lines;
mod phase;
pub mod presets;
mod spec;
mod stretches;
mod validate;

pub use curve::MissCurve;
pub use ilp::{
    ChainSpec, DivisionSpec, FpSchedulerSpec, ILP_WINDOWS, IlpSpec, MISS_CYCLES, NEAR_USES,
};
pub(crate) use lines::Lines;
pub use phase::Phase;
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
