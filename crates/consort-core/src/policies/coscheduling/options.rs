//! Options that several of the policies have.

use crate::coscheduling::{EnergyDelayBaseline, SecondaryCondition};
use crate::policy::{OptionInfo, PolicyError, PolicyOptions};
use crate::signal::{Signal, SignalOffers};

/// Length of a quantum.
pub(super) const QUANTUM: OptionInfo = OptionInfo {
    name: "quantum",
    default: "2000",
    meaning: "length of a quantum, ms (a number from 1)",
};

/// Distance from linear scaling up to which programs are left alone.
pub(super) const ALPHA: OptionInfo = OptionInfo {
    name: "alpha",
    default: "0.1",
    meaning: "programs this close to linear scaling run alone (0 to 1)",
};

/// Return to the gang from slots that prove worse: usual for the fair schedulers, while the others
/// are compared as they are.
pub(super) const fn revert_option(default: &'static str) -> OptionInfo {
    OptionInfo {
        name: "revert",
        default,
        meaning: "go back to the gang when a round's energy-delay is worse than the gang's",
    }
}

/// Usual length of a quantum, ms.
pub(super) const QUANTUM_MS: u64 = 2000;

/// The length of a quantum, ns.
pub(super) fn quantum_ns(options: &PolicyOptions<'_>) -> Result<u64, PolicyError> {
    Ok(options.count("quantum")?.saturating_mul(1_000_000))
}

/// Returns true where a machine tells energy.
pub(super) fn is_metered(offers: &SignalOffers) -> bool {
    offers.tier_of(Signal::Energy).is_some()
}

/// Reads the secondary condition for taking a core.
pub(super) fn secondary_condition(
    options: &PolicyOptions<'_>,
) -> Result<SecondaryCondition, PolicyError> {
    let words = [
        ("printed", SecondaryCondition::Printed),
        ("reversed", SecondaryCondition::Reversed),
        ("off", SecondaryCondition::Off),
    ];
    options.one_of("secondary", &words, "printed, reversed or off")
}

/// Reads the standard that a newcomer's slot must be better than for every member.
pub(super) fn standard(options: &PolicyOptions<'_>) -> Result<EnergyDelayBaseline, PolicyError> {
    let words = [
        ("gang", EnergyDelayBaseline::Gang),
        ("slot", EnergyDelayBaseline::Slot),
    ];
    options.one_of("better-than", &words, "gang or slot")
}
