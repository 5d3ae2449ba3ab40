//! Spread of spinning threads over an idle machine by the kernel: measured in a guest, counted on
//! the host.
//!
//! Purpose: the placements that a real Linux scheduler makes, for comparing a model with them.
//!
//! Usage: [`Measurement::take`] boots guests in which [`measure_inside`] starts spinning threads
//! again and again and prints one [`SpreadSnapshot`] per look at them; the host sorts the looks into
//! [`ThreadSpread`]s and counts them in a [`SpreadTally`]. [`EndsMeasurement::take`] and [`measure_ends_inside`] do the
//! same for the threads that remain when others end. `linux-placements` is both sides in one
//! program.
//!
//! Pitfalls: the thread that starts and looks needs a PU too. It sleeps between looks, but a look
//! at a full machine puts it beside a spinning thread for a moment, which the balancer may act on.

mod arrival;
mod document;
mod ends;
mod inside;
mod look;
mod measurement;
mod spinners;
mod tally;
mod task;
mod threads_per_pu;

pub use arrival::SpinnerArrival;
pub use document::document;
pub use ends::{EndsExtent, EndsMeasurement, ends_document, measure_ends_inside};
pub use inside::measure_inside;
pub use look::{SpreadSnapshot, parse_snapshots};
pub use measurement::{GuestIdentity, Measurement, MeasurementExtent};
pub use tally::{SpreadCounts, SpreadTally};
pub use threads_per_pu::ThreadSpread;
