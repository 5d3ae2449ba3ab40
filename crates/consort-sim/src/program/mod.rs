//! Program profiles: what a program asks of a chip.

mod curve;
mod phase;
mod spec;

pub use curve::MissCurve;
pub use phase::Phase;
pub use spec::*;
