//! What is measured of a stream of operations. Every meter takes operations one at a time and
//! can be asked at the end; none knows of the others.

mod branches;
mod dataflow;
mod distance;
mod fit;
mod memory;
mod mix;
mod stack;

pub use branches::{Branches, PREDICTOR_KIB};
pub use dataflow::{Dataflow, WINDOWS};
pub use distance::Distances;
pub use fit::{PowerLaw, power_law};
pub use memory::{Memory, MemoryFigures};
pub use mix::Mix;
pub use stack::{CAPACITIES, Depths, LruStack};
