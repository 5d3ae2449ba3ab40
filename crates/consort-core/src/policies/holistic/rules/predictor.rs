//! Programs on one branch predictor.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;

/// Growth of mispredictions, relative to them, when half of the predictor is a stranger's: 2^0.2 -
/// 1, with the exponent that the described programs are given.
const GROWTH: f64 = 0.148_698;

pub(super) const RULE: PricingRule = PricingRule {
    name: "predictor",
    sentence: "siblings share a branch predictor, strangers do not",
    basis: "cycles lost to branches grow by 2^0.2 when the predictor is shared with a stranger",
    needs: &[Characteristic::BranchCycles],
    cost,
};

fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let manner = &case.shape.groups[group];
    let lost = known.or_zero(Characteristic::BranchCycles) * known.hz();
    manner.running * lost * GROWTH * manner.strangers
}
