//! Machine descriptions: what a chip is made of.

mod spec;

pub use spec::*;
