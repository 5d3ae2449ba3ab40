//! Program profiles: what a program asks of a chip.

mod curve;
mod phase;
pub mod presets;
mod spec;
pub(crate) mod validate;

pub use curve::MissCurve;
pub use phase::Phase;
pub use spec::*;
