//! Siblings that share data.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;

pub(super) const RULE: PricingRule = PricingRule {
    name: "data sharing",
    sentence: "siblings that share data run in one cache domain",
    basis: "misses that were seen to be added when siblings are apart x cycles per miss (L2MP, \
            Wang et al., section IV)",
    needs: &[Characteristic::LlcMisses, Characteristic::Sharing],
    cost,
};

/// Misses grow with the share of pairs of siblings that are apart.
fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let sharing = known.or_zero(Characteristic::Sharing);
    let seen = known.or_zero(Characteristic::LlcMisses);
    let together = seen / (1.0 + sharing * case.now.separated_share(group));
    let added = together * sharing * case.shape.separated_share(group);
    case.shape.groups[group].running * added * known.miss_cycles()
}
