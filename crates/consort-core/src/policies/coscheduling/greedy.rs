//! `greedy`: programs at the number of cores that is best for them alone, packed into slots.
//!
//! Source: Bhadauria and McKee, ICS 2010, the greedy scheduler; see
//! [`crate::coscheduling::GreedyChooser`].
//!
//! Observes every program alone with every number of cores, a quantum of 2 s each. Pitfalls: that
//! is long, and while a program has few cores the others are idle; what was measured is not
//! measured again, whatever phases come.

use super::options::{QUANTUM, QUANTUM_MS, is_metered, quantum_ns, revert_option};
use super::{CoschedulingSettings, Rotations};
use crate::coscheduling::GreedyChooser;
use crate::policy::{PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

/// Without energy it goes by cores and time.
const SIGNALS: &[Signal] = &[Signal::Cycles, Signal::Instructions, Signal::Energy];

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "greedy",
    family: "co-scheduling",
    source: "Bhadauria and McKee, ICS 2010, the greedy scheduler",
    needs: &[Signal::Instructions],
    uses: |_| SIGNALS,
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "packs programs at the number of cores that suits each by itself",
    options: &[QUANTUM, revert_option("false")],
    open,
};

fn open(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: None,
        phase: None,
        revert: options.flag("revert")?,
    };
    Ok(Box::new(Rotations::new(settings, GreedyChooser::default())))
}
