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
mod starters;
mod windows;

pub use adherence::AdherenceTally;
pub(crate) use adherence::neighbours;
pub(crate) use enforcement::{Enforcement, ThreadPosition};
pub use windows::WindowCounts;

use consort_ext::SchedExtSupport;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// A means by which a thread is kept in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnactorKind {
    /// A mask that is narrowed and widened again at once: no program sees it, and the scheduler
    /// leaves the thread where it was moved.
    Nudge,
    /// A mask that stays narrow as long as the plan has the thread there.
    Pin,
    /// A `sched_ext` scheduler in the kernel.
    Ext,
}

impl EnactorKind {
    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nudge => "nudge",
            Self::Pin => "pin",
            Self::Ext => "ext",
        }
    }
}

impl fmt::Display for EnactorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The enactors that may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnactChoice {
    /// Pins for workers that nudges do not keep in place, nudges for all other threads.
    #[default]
    Auto,
    /// One enactor and no other, except that threads that may not be pinned are nudged.
    Only(EnactorKind),
}

impl EnactChoice {
    /// The names of all choices, as [`str::parse`] takes them.
    pub const NAMES: [&str; 4] = ["auto", "nudge", "pin", "ext"];

    /// The enactor that is used first.
    pub fn first(self) -> EnactorKind {
        match self {
            Self::Auto => EnactorKind::Nudge,
            Self::Only(kind) => kind,
        }
    }
}

impl fmt::Display for EnactChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Only(kind) => kind.fmt(f),
        }
    }
}

/// Error for a name that no enactor has.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown enactor '{0}'; there are auto, nudge, pin and ext")]
pub struct UnknownEnactor(String);

impl FromStr for EnactChoice {
    type Err = UnknownEnactor;

    fn from_str(name: &str) -> Result<Self, UnknownEnactor> {
        match name {
            "auto" => Ok(Self::Auto),
            "nudge" => Ok(Self::Only(EnactorKind::Nudge)),
            "pin" => Ok(Self::Only(EnactorKind::Pin)),
            "ext" => Ok(Self::Only(EnactorKind::Ext)),
            _ => Err(UnknownEnactor(name.to_owned())),
        }
    }
}

/// Availability of an enactor on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnactorStatus {
    /// The enactor.
    pub name: EnactorKind,
    /// True if the host lets it be used.
    pub available: bool,
    /// Effect of the enactor on programs, or the obstacle to using it.
    pub reason: String,
}

/// Availability of all enactors, best first for programs that do not start threads all the time.
pub fn enactors(root: &Path) -> Vec<EnactorStatus> {
    let status = |name, available, reason: &str| EnactorStatus {
        name,
        available,
        reason: reason.to_owned(),
    };
    let (ext, why) = match consort_ext::probe(root) {
        SchedExtSupport::Ready => (
            true,
            "a scheduler in the kernel that follows plans".to_owned(),
        ),
        SchedExtSupport::Not(obstacle) => (false, obstacle.to_string()),
    };
    vec![
        status(
            EnactorKind::Nudge,
            true,
            "masks are narrowed for microseconds only: programs see their own",
        ),
        status(
            EnactorKind::Pin,
            true,
            "lasting masks, which programs see and new threads inherit for a moment",
        ),
        status(EnactorKind::Ext, ext, &why),
    ]
}
