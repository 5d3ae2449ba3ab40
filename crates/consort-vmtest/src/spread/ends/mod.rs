//! Placements that the kernel makes of the threads that remain when half of them end.

mod document;
mod inside;
mod measurement;

pub use document::ends_document;
pub use inside::measure_ends_inside;
pub use measurement::{EndsExtent, EndsMeasurement};
