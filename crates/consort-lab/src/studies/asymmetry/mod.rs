//! What the studies of asymmetric chips share: machines, workloads, their runs under each policy.
//!
//! A [`case::Case`] is a workload on a machine with its work measured; a [`grid::Grid`] holds its
//! runs under several policies. [`chips`] gives the machines and their single cores,
//! [`programs`] the workloads.
//!
//! Pitfall: work of a single-threaded program is what it does alone on a large core, so that
//! slowdowns are against the best that there is; a program of several threads has the whole
//! machine, under `linux`, to itself.

pub(super) mod case;
pub(crate) mod chips;
pub(super) mod closed;
pub(super) mod compared;
pub(super) mod continued;
mod entrant;
pub(super) mod favours;
pub(super) mod grid;
pub(super) mod headlines;
pub(super) mod ideal;
pub(crate) mod migration;
pub(super) mod mixes;
mod observers;
pub(crate) mod programs;
pub(super) mod readings;
pub(super) mod returns;
pub(super) mod runs;
pub(super) mod single;
pub(super) mod spec_mixes;
pub(super) mod splash;
pub(super) mod views;
mod watch;

use crate::study::StudyError;

/// The published work.
pub(super) const SOURCE: &str = "Markovic, \"Hardware Thread Scheduling Algorithms for Single-ISA \
    Asymmetric CMPs\", PhD thesis, UPC 2015";

/// What the studies on one large and three small cores do otherwise.
pub(super) const DIFFERS_GROUP: &str = "Machine and programs are simulated: all 29 programs of SPEC \
    CPU2006, 13 of SPLASH-2, from profiles. Instance k of n of a program of SPEC begins where k/n of a \
    pass through its phases is over; where the profile has one phase all are alike. An instance's work \
    is what it does in 0.2 s alone on the large core, that of a program of SPLASH-2 what it does in \
    0.2 s alone on the whole machine. Whoever is done starts again until the last has done its work \
    once, single threads of a program included. The source's Linux is linux-acmp, which deals threads \
    to cores in turn and keeps them there; linux, which knows no core types, stands beside it. \
    fair-progress estimates by PIE what the other kind of core would do; it is run in hardware, every \
    1 ms, and in the operating system, every 4 ms, aligned with time slices but for one quantum of \
    eleven, which is a slice longer. The quick scale has 4 programs, 0.05 s and 2 runs.";

/// The same seed for all that share their runs.
pub(super) const SEED: u64 = 15;

/// The operating system beneath policies on other grounds than the source's.
pub(super) const OS: &str = "linux";

/// The source's operating system, beneath every policy on its ground, and the baseline there.
pub(super) const BASE: &str = "linux-acmp";

/// Names what part of a study failed.
pub(super) fn failed<E>(part: &str) -> impl Fn(E) -> StudyError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let part = part.to_owned();
    move |error| StudyError::part(part.as_str(), error)
}
