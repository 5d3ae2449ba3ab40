//! Outcomes of applying a plan and of restoring, for people and for `explain`.

use super::guardian::GuardianHealth;
use crate::proc::ProcError;
use consort_core::{PuSet, ThreadId};
use nix::errno::Errno;
use std::path::PathBuf;
use std::time::Duration;

/// The wish of a plan for one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ThreadWish {
    /// The original mask.
    Unrestricted,
    /// A lasting mask of these PUs, as far as the original mask and the cpuset have them.
    Only(PuSet),
    /// A move to these PUs now, with the original mask: the thread goes there if it can run, and is
    /// not kept there.
    Nudge(PuSet),
}

/// Reason for which a thread did not get the wanted mask. It keeps, or goes back to, a mask within
/// its original one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The thread is not managed: never adopted, foreign, or let go.
    NotManaged,
    /// No wanted PU lies within the original mask and the cpuset; the thread
    /// was left unrestricted.
    NoPuLeft,
    /// The journal could not be written, so the thread must not be restricted; the text has the
    /// reason.
    NotJournalled(String),
    /// There is no guardian and none can be started.
    NoGuardian,
    /// The thread cannot be looked up for the moment; it stays managed, as it is.
    Unseen(ProcError),
    /// The kernel refused; `EPERM` when the thread belongs to another user.
    Kernel(Errno),
}

/// Outcome of [`apply`](super::Enactor::apply).
#[derive(Debug, Default)]
pub struct ApplyReport {
    /// Threads whose mask was written, with the mask that they have now.
    pub written: Vec<(ThreadId, PuSet)>,
    /// Threads that were nudged; they are among the written ones, with their original masks.
    pub nudged: Vec<ThreadId>,
    /// For each of these, the time for which its mask was narrow, at most.
    pub windows: Vec<(ThreadId, Duration)>,
    /// Number of threads that had the wanted mask already.
    pub unchanged: usize,
    /// Number of threads that have exited and were forgotten.
    pub gone: usize,
    /// Threads that were let go because somebody else had changed their mask, with the mask found.
    pub released: Vec<(ThreadId, PuSet)>,
    /// Threads whose cpuset or online PUs changed; their mask was asserted again.
    pub shifted: Vec<ThreadId>,
    /// Threads that did not get the wanted mask, with the reason.
    pub refused: Vec<(ThreadId, Refusal)>,
    /// State of the guardian.
    pub guardian: GuardianHealth,
}

/// Outcome of a restoration.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Number of threads that were put back.
    pub restored: usize,
    /// Those threads.
    pub threads: Vec<ThreadId>,
    /// Number of threads that had exited.
    pub gone: usize,
    /// Number of threads whose mask others had changed and that were left alone.
    pub released: usize,
    /// Number of stopped programs that were continued.
    pub continued: usize,
    /// Threads that could not be put back, and first threads of processes that could not be
    /// continued, each with the kernel's answer.
    pub failed: Vec<(ThreadId, Errno)>,
    /// Number of cgroups made for pausing that were thawed, emptied and removed.
    pub thawed: usize,
    /// Cgroups that could not be thawed or emptied, each with the reason.
    pub frozen: Vec<(PathBuf, String)>,
    /// Number of threads from which a core-scheduling cookie of Consort's was taken.
    pub cleared: usize,
    /// Threads that keep such a cookie, each with the kernel's answer.
    pub stuck: Vec<(ThreadId, Errno)>,
    /// True if every managed thread was seen with its original mask at the end, nothing is left
    /// paused, and no thread has a cookie of Consort's.
    pub complete: bool,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotManaged => f.write_str("it is not managed"),
            Self::NoPuLeft => f.write_str("none of the PUs is within its mask and the cpuset"),
            Self::NotJournalled(why) => write!(f, "its mask could not be journalled: {why}"),
            Self::NoGuardian => f.write_str("there is no guardian to put it back"),
            Self::Unseen(error) => write!(f, "it cannot be looked up: {error}"),
            Self::Kernel(errno) => write!(f, "the kernel refused: {errno}"),
        }
    }
}
