//! Strangers that contend for a cache.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;
use crate::policies::holistic::shape::MachinePart;

pub(super) const RULE: PricingRule = PricingRule {
    name: "cache demand",
    sentence: "strangers with high cache demand and no sharing run in different domains",
    basis: "a cache is divided by accesses, and misses grow with 1/sqrt(capacity) (Hartstein et \
            al., CF 2006) x cycles per miss",
    needs: &[Characteristic::LlcAccesses, Characteristic::LlcMisses],
    cost,
};

fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    // Misses with the whole of the largest domain, from those seen with a part of them.
    let growth_now = 1.0 + growth(case, &case.now.domains, &case.totals.accesses_now, group);
    let whole = known.or_zero(Characteristic::LlcMisses) / growth_now;
    let added = whole * growth(case, &case.shape.domains, &case.totals.accesses, group);
    case.shape.groups[group].running * added * known.miss_cycles()
}

/// Growth of a program's misses by sharing domains and by smaller ones, relative to its misses alone
/// in the largest, mean over its running threads; it has as much of a domain as it has of its
/// accesses.
fn growth(case: &PricingCase<'_>, domains: &[MachinePart], accesses: &[f64], group: usize) -> f64 {
    let own = case.known[group].or_zero(Characteristic::LlcAccesses);
    let (mut sum, mut all) = (0.0, 0.0);
    for (domain, total) in domains.iter().zip(accesses) {
        let running = domain.find_share(group).map_or(0.0, |s| s.running);
        if own * running > 0.0 {
            sum += running * ((total / (own * running * domain.cache)).sqrt() - 1.0);
            all += running;
        }
    }
    if all > 0.0 { sum / all } else { 0.0 }
}
