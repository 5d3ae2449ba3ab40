//! `workover`: FPU-heavy threads on different cores, each beside light ones.
//!
//! Source: Peternier, Ansaloni, Bonetta, Pautasso, Binder, "Improving Execution
//! Unit Occupancy on SMT-based Processors through Hardware-aware Thread
//! Scheduling" (FGCS), sections 3 and 4.
//!
//! Observes cycles (or CPU time) and FPU usage per thread, by default once per
//! second. Group g holds the next most FPU-heavy threads, as many as there are
//! cores with more than g PUs; its members get the g-th PUs, each on another
//! core, the heaviest beside the lightest. A thread that stays in its group
//! stays on its PU, a returning thread gets the PU that it used most, so
//! threads move only when group membership changes.
//!
//! Beyond the paper: `margin` keeps noise from swapping threads of nearly equal
//! usage (0 is the paper's rule); `numa` deals threads to nodes first, which the
//! paper leaves to future work. Where the paper leaves threads that use little
//! FPU to the OS, they are placed as long as they share the machine with a heavy
//! one, since being its neighbour is what they are for; when no thread is heavy,
//! nobody is restricted.

use super::occupancy::{GroupArrangement, OPTIONS, Occupancy};
use crate::policy::{ALL_USUAL, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

#[doc(alias = "WorkOver")]
pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "workover",
    family: "unit-occupancy",
    source: "Peternier et al., FGCS, sections 3-4",
    needs: &[Signal::CpuTime, Signal::FpUsage],
    uses: ALL_USUAL,
    tier_min: Tier::Sampling,
    quantum_ms: 1000,
    live: true,
    simulated: true,
    summary: "puts FPU-heavy threads on different cores, each beside light ones",
    options: OPTIONS,
    open,
};

fn open(_: &Topology, _: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    Ok(Box::new(Occupancy::new(
        GroupArrangement::AcrossCores,
        options,
    )?))
}
