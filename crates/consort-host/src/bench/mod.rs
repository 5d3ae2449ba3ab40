//! Benches of the live machine: the daemon's cost, and the cost of being managed.

mod daemon;
mod overhead;

pub use overhead::OverheadBench;

use consort_experiment::bench::Bench;
use daemon::DaemonBench;

/// Every bench: those of the simulator and the policies, then those of the live machine, with
/// this bench of pairs.
#[must_use]
pub fn all_benches(overhead: OverheadBench) -> Vec<Box<dyn Bench>> {
    let mut all = consort_experiment::bench::all_benches();
    all.push(Box::new(DaemonBench));
    all.push(Box::new(overhead));
    all
}
