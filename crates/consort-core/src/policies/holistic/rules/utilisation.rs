//! Cores without work while threads wait.

use super::{PricingCase, PricingRule};

pub(super) const RULE: PricingRule = PricingRule {
    name: "utilisation",
    sentence: "no core is without work while a thread waits for another",
    basis: "the cycles of PUs without a thread, as far as others have several",
    needs: &[],
    cost,
};

/// Cost of idle PUs; a program's part of it is that of its waiting threads among all.
fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let all = case.totals.waiting;
    if all <= 0.0 {
        return 0.0;
    }
    let manner = &case.shape.groups[group];
    let idle = (case.shape.idle as f64).min(all);
    case.known[group].hz() * idle * (manner.threads - manner.running) / all
}
