//! The enactors that there are, and which of them the user wants.

use consort_ext::Availability;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use thiserror::Error;

/// What keeps a thread in its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum EnactorKind {
    /// Its mask is narrowed and widened again at once; seen by nobody, kept by the scheduler.
    Nudge,
    /// Its mask is narrow as long as the plan has it there.
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

/// Which enactors may be used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EnactChoice {
    /// Nudges; pins for workers that nudges do not keep in place.
    #[default]
    Auto,
    /// One of them and no other; threads that may not be pinned are nudged all the same.
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

/// No enactor has this name.
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

/// Whether an enactor can be used on a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnactorStatus {
    /// Which one.
    pub name: EnactorKind,
    /// Whether it can be used.
    pub available: bool,
    /// Why, or why not.
    pub reason: String,
}

/// The enactors, best first for programs that do not start threads all the time, with the reason
/// for each that is missing.
pub fn enactors(root: &Path) -> Vec<EnactorStatus> {
    let status = |name, available, reason: &str| EnactorStatus {
        name,
        available,
        reason: reason.to_owned(),
    };
    let (ext, why) = match consort_ext::probe(root) {
        Availability::Ready => (
            true,
            "a scheduler in the kernel that follows plans".to_owned(),
        ),
        Availability::Not(obstacle) => (false, obstacle.to_string()),
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
