//! Models of the operating system: CPUs on which threads start and wake, and moves of threads.
//!
//! One file per model, one line per model in [`MODELS`]. A model sees what its original could
//! see: CPUs with their domains and queues, threads with their masks; not rates, phases or
//! programs. On a machine with a hardware scheduler it sees logical cores that are all alike.

mod linux;
mod linux_acmp;
mod linux_variants;
mod os_topology;
mod os_view;
mod simple;

pub(crate) use os_topology::OsTopology;
pub(crate) use os_view::OsView;

use crate::engine::draw::RandomStream;
use thiserror::Error;

/// Longest time between two attempts to balance, ms.
const TICK_MS: u64 = 16;

/// The next tick after a moment, ms.
fn next_tick_ms(ms: u64) -> u64 {
    (ms / TICK_MS + 1) * TICK_MS
}

/// Reason why a thread needs a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlacementReason {
    /// It has just been created.
    Start,
    /// It was blocked.
    Wake,
    /// It may no longer be where it was.
    Moved,
}

/// A model of the operating system. Threads and CPUs by index.
pub(crate) trait OsModel {
    /// The CPU for a thread that has none. It may run on at least one.
    fn choose_pu(&mut self, view: &OsView<'_>, thread: usize, why: PlacementReason) -> usize;

    /// A queued thread for a CPU that has become idle.
    fn pull_thread(&mut self, _view: &OsView<'_>, _pu: usize) -> Option<usize> {
        None
    }

    /// The next moment after this one to even out load, ms from the start of the run; `None` if there
    /// is nothing to even out as long as no thread comes to a CPU or leaves it.
    fn next_balance_ms(&self, _view: &OsView<'_>, _ms: u64) -> Option<u64> {
        None
    }

    /// One move that evens out load at such a moment, ms from the start of the run; called again
    /// until there is none.
    fn balance_move(&mut self, _view: &OsView<'_>, _ms: u64) -> Option<(usize, usize)> {
        None
    }

    /// The CPU for every thread at the beginning of a policy's quantum, where the model deals
    /// them out anew.
    fn deal_threads(&mut self, _view: &OsView<'_>) -> Vec<(usize, usize)> {
        Vec::new()
    }
}

/// A model in the registry.
#[derive(Clone, Copy, Debug)]
pub struct OsInfo {
    /// Name on the command line.
    pub name: &'static str,
    /// Description in a line.
    pub summary: &'static str,
    /// Makes the model from its draws and the seed of the run.
    build: fn(RandomStream, u64) -> Box<dyn OsModel>,
}

/// Every model.
pub const MODELS: &[OsInfo] = &[
    linux::INFO,
    linux::INFO_2_6,
    linux_acmp::INFO,
    linux_variants::GROUPED,
    linux_variants::ITMT,
    simple::PINNED,
    simple::RANDOM,
];

/// There is no model of that name.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown operating system model '{name}'; {hint}")]
pub struct UnknownOs {
    name: String,
    hint: String,
}

/// The model of a name.
///
/// # Errors
/// [`UnknownOs`] with the nearest name.
pub fn find(name: &str) -> Result<&'static OsInfo, UnknownOs> {
    let found = MODELS.iter().find(|info| info.name == name);
    found.ok_or_else(|| UnknownOs {
        name: name.to_owned(),
        hint: consort_core::hint(name, MODELS.iter().map(|info| info.name)),
    })
}

/// Makes the model of a name.
pub(crate) fn build(
    name: &str,
    draw: RandomStream,
    seed: u64,
) -> Result<Box<dyn OsModel>, UnknownOs> {
    Ok((find(name)?.build)(draw, seed))
}

#[cfg(test)]
mod tests;
