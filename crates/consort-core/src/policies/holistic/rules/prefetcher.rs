//! Siblings and their prefetcher.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;

pub(super) const RULE: PricingRule = PricingRule {
    name: "prefetcher",
    sentence: "with high sharing, or low sharing and high excess, siblings share a prefetcher; with \
               both low whatever reduces misses is right",
    basis: "lines on the memory path that were seen to be added when siblings are apart, or that \
            each of their domains fetches again, x the time that they hold it",
    needs: &[Characteristic::Path, Characteristic::Excess],
    cost,
};

/// Prefetchers go with domains. Of shared data each domain's prefetcher fetches its own copy.
fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let excess = known.or_zero(Characteristic::Excess);
    let again = known.or_zero(Characteristic::Sharing);
    let added =
        known.or_zero(Characteristic::Path) * excess.max(again) * case.shape.separated_share(group);
    case.shape.groups[group].running * added * known.hz()
}
