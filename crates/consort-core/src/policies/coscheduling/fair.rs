//! Options and construction that the two fair schedulers of HOLISYN share.

use super::options::{
    QUANTUM, is_metered, quantum_ns, revert_option, secondary_condition, standard,
};
use super::{CoschedulingSettings, Rotations};
use crate::coscheduling::{ContendedResource, FairChooser};
use crate::policy::{OptionInfo, PolicyOptions, PolicyResult};
use crate::signal::SignalOffers;

/// Options of both.
pub(super) const OPTIONS: &[OptionInfo] = &[
    QUANTUM,
    OptionInfo {
        name: "alpha",
        default: "0.1",
        meaning: "programs this close to linear scaling run alone; also of the secondary condition (0 to 1)",
    },
    OptionInfo {
        name: "better-than",
        default: "gang",
        meaning: "where each member's energy-delay must have been higher for a newcomer to stay: gang, or slot without the newcomer",
    },
    OptionInfo {
        name: "secondary",
        default: "printed",
        meaning: "secondary condition for taking a core: printed, reversed or off (see docs/coscheduling.md)",
    },
    OptionInfo {
        name: "phase",
        default: "0.1",
        meaning: "shift of a program's LLC miss rate or share of busy cores that is a new phase (0 to 1)",
    },
    revert_option("true"),
];

/// Opens one of the two, by the resource that `order` tells the use of.
pub(super) fn open(
    order: ContendedResource,
    offers: &SignalOffers,
    options: &PolicyOptions<'_>,
) -> PolicyResult {
    let alpha = options.share("alpha")?;
    let chooser = FairChooser::new(
        order,
        standard(options)?,
        secondary_condition(options)?,
        alpha,
    );
    let settings = CoschedulingSettings {
        quantum_ns: quantum_ns(options)?,
        metered: is_metered(offers),
        sampled: true,
        alpha: Some(alpha),
        phase: Some(options.share("phase")?),
        revert: options.flag("revert")?,
    };
    Ok(Box::new(Rotations::new(settings, chooser)))
}
