//! `pdpa`: each program's cores by how efficiently it uses them, blind to its neighbours.
//!
//! Source: Corbalan, Martorell, Labarta, "Performance-driven processor allocation" (OSDI 2000), as
//! Bhadauria and McKee (ICS 2010) adapt it; see [`crate::coscheduling::PdpaChooser`].
//!
//! Observes every program alone on all cores and on one, then all of them together with the cores
//! that each step of the search gives them, a quantum of 2 s each. Pitfall: the thresholds are
//! estimated; a program between them keeps what it has.

use super::options::{ALPHA, QUANTUM, QUANTUM_MS, is_metered, quantum_ns, revert_option};
use super::{CoschedulingSettings, Rotations};
use crate::coscheduling::PdpaChooser;
use crate::policy::{OptionInfo, PolicyInfo, PolicyOptions, PolicyResult};
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;

/// Energy is reported and decides nothing but whether to go back to the gang.
const SIGNALS: &[Signal] = &[Signal::Cycles, Signal::Instructions, Signal::Energy];

pub(crate) const INFO: PolicyInfo = PolicyInfo {
    name: "pdpa",
    family: "co-scheduling",
    source: "Corbalan et al., OSDI 2000; Bhadauria and McKee, ICS 2010",
    needs: &[Signal::Instructions],
    uses: |_| SIGNALS,
    tier_min: Tier::Counters,
    quantum_ms: QUANTUM_MS,
    live: true,
    simulated: true,
    summary: "runs programs at the same time, each on as many cores as it uses efficiently",
    options: &[
        QUANTUM,
        ALPHA,
        OptionInfo {
            name: "low",
            default: "0.5",
            meaning: "efficiency below which a program is given fewer cores (0 to 1)",
        },
        OptionInfo {
            name: "high",
            default: "0.9",
            meaning: "efficiency above which a program is given more cores (0 to 1)",
        },
        revert_option("false"),
    ],
    open,
};

fn open(_: &Topology, offers: &SignalOffers, options: &PolicyOptions<'_>) -> PolicyResult {
    let chooser = PdpaChooser::new(options.share("low")?, options.share("high")?);
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: Some(options.share("alpha")?),
        phase: None,
        revert: options.flag("revert")?,
    };
    Ok(Box::new(Rotations::new(settings, chooser)))
}
