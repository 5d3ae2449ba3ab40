//! How plans are held on threads, without programs seeing it.
//!
//! Programs size their thread pools by their affinity, and what they start inherits it: a mask
//! that lasts is seen. So a thread is *nudged* by default: its mask is narrowed and widened again
//! at once, which moves it, and from then on it stays where the scheduler keeps it. Who drifts is
//! nudged again, with a bound per second (`budget`). A thread that does not hold its place so
//! (`adherence`) may be *pinned*, if it is a worker: one that starts no others (`starters`).
//!
//! Usage, by the live machine: `assign` gives the threads of a plan their places, `order` says what
//! the [`Enactor`](crate::enact::Enactor) is to do with each now; `note` and `settle` take in what
//! came of it.

mod adherence;
mod budget;
mod enforcement;
mod kind;
mod pairs;
mod seats;
mod starters;

pub use adherence::Tally;
pub(crate) use enforcement::{Enforcement, Whereabouts};
pub use kind::{EnactChoice, EnactorKind, EnactorStatus, enactors};
pub(crate) use seats::neighbours;
