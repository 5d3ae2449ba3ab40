//! Spread of spinning threads over an idle machine by the kernel: measured in a guest, counted on
//! the host.
//!
//! Purpose: the placements that a real Linux scheduler makes, for comparing a model with them.
//!
//! Usage: [`Measurement::take`] boots guests in which [`measure_inside`] starts spinning threads
//! again and again and prints one [`SpreadSnapshot`] per moment; the host sorts the snapshots into
//! [`ThreadSpread`]s and counts them in a [`SpreadTally`]. [`EndsMeasurement::take`] and [`measure_ends_inside`] do the
//! same for the threads that remain when others end. `linux-placements` is both sides in one
//! program.
//!
//! Pitfalls: the thread that starts the others and takes the snapshots needs a CPU too. It sleeps
//! between snapshots, but on a full machine a snapshot puts it on the CPU of a spinning thread for
//! a moment, which the balancer may act on.

mod document;
mod inside;
mod measurement;
mod snapshot;
mod spinners;
mod tally;

pub use document::{document, ends_document};
pub use inside::{measure_ends_inside, measure_inside};
pub use measurement::{EndsExtent, EndsMeasurement, GuestIdentity, Measurement, MeasurementExtent};
pub use snapshot::{SpinnerArrival, SpreadSnapshot, parse_snapshots};
pub use tally::{SpreadCounts, SpreadTally, ThreadSpread};
