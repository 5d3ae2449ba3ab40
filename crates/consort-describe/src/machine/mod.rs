//! Machine descriptions: what a chip is made of.
//!
//! A [`MachineRef`] such as `power7:smt=2` names a file or one of the
//! [`presets`]; [`MachineRef::load`] gives its description, validated.

pub mod detail;
mod edit;
pub mod presets;
mod quantity;
mod reference;
mod spec;
pub mod tables;
mod validate;

pub use edit::{KeyChange, apply_changes};
pub use quantity::Quantity;
pub use reference::{LoadedMachine, MachineError, MachineRef, MachineSource};
pub use spec::*;
pub use validate::{MAX_PUS, validate};

use crate::describe::{self, DescribeError};

/// Reads and validates a machine file's text; `file` is its name for messages.
///
/// # Errors
/// The first thing wrong with it.
pub fn parse(file: &str, text: &str) -> Result<MachineSpec, DescribeError> {
    describe::parse(file, text, validate)
}
