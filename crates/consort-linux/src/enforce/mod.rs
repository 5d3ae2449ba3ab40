//! Enforcement: keeping threads where the plan has them, without programs seeing it.
//!
//! Programs size their thread pools by their affinity, and the threads that they start inherit it:
//! a lasting mask shows. So a thread is *nudged* by default: its mask is narrowed and widened again
//! at once, which moves it, and from then on it stays where the scheduler keeps it. A thread that
//! drifts is nudged again, with a bound per second (`budget`) and one on the time for which its mask
//! is narrow (`windows`). One that nudges do not keep in place
//! (`adherence`) may be *pinned*, if it is a worker: a thread that starts no others (`starters`).
//!
//! Usage, by the live machine: `assign` gives the threads of a plan their places, `choose_wish` returns the
//! mask that the [`Enactor`](crate::enact::Enactor) is to give each thread now; `note` and `settle`
//! take in the records and running times that show the effect.

mod adherence;
mod enforcement;
mod kind;
mod pairs;
mod starters;
mod windows;

pub use adherence::AdherenceTally;
pub(crate) use enforcement::{Enforcement, ThreadPosition};
pub use kind::{EnactChoice, EnactorKind, EnactorStatus, enactors};
pub(crate) use pairs::neighbours;
pub use windows::WindowCounts;
