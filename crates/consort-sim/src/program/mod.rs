//! Program profiles: what a program asks of a chip.

mod spec;

pub use spec::*;
