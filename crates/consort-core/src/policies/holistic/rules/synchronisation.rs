//! Siblings that wait for each other.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;
use crate::policies::holistic::shape::ProgramOccupancy;

/// Time in which the operating system evens out what siblings have had, s: a tick at 250 Hz,
/// after which Linux balances run queues. Who waits more often than that goes at the last one's
/// pace.
const EVEN_AFTER_S: f64 = 0.004;

pub(super) const RULE: PricingRule = PricingRule {
    name: "synchronisation",
    sentence: "siblings that synchronise often are pinned, so that none lags",
    basis: "programs that wait more often than run queues are balanced go at the pace of the \
            sibling with the least of a PU, and wait while a stranger has one's turn",
    needs: &[Characteristic::Syncs, Characteristic::Lag],
    cost,
};

fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let manner = &case.shape.groups[group];
    let lag = if manner.pinned {
        relative_lag(manner)
    } else {
        known.or_zero(Characteristic::Lag)
    };
    let late = 1.0 - (1.0 - lag.clamp(0.0, 1.0)) * all_running_probability(manner);
    let often = (known.or_zero(Characteristic::Syncs) * EVEN_AFTER_S).min(1.0);
    manner.running * known.hz() * often * late
}

/// Distance of the sibling with the least of a PU behind the mean, relative to the mean.
fn relative_lag(manner: &ProgramOccupancy) -> f64 {
    let mean = manner.running / manner.threads.max(1.0);
    if mean > 0.0 {
        (mean - manner.least) / mean
    } else {
        0.0
    }
}

/// The chance that no stranger has the PU of any sibling that one waits for, when turns on
/// different PUs do not know of each other.
fn all_running_probability(manner: &ProgramOccupancy) -> f64 {
    let off = manner.strangers * (1.0 - manner.least);
    libm::pow(1.0 - off.clamp(0.0, 1.0), (manner.threads - 1.0).max(0.0))
}
