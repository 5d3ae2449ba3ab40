//! Programs on one memory path.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;
use crate::policies::holistic::shape::MachinePart;

pub(super) const RULE: PricingRule = PricingRule {
    name: "bandwidth",
    sentence: "programs of high bandwidth do not run at the same time on one memory path: beside a \
               heavier co-runner they are spread over time, beside a lighter one over space",
    basis: "a path that is asked for L times what it has slows everybody on it down by L",
    needs: &[Characteristic::Path],
    cost,
};

/// Cost of a path that is asked for L times what it has: 1 - 1/L of a program's cycles on it are
/// lost.
fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let nodes = case.shape.nodes.iter().zip(&case.totals.paths);
    let lost = |(node, &all): (&MachinePart, &f64)| {
        let share = node.find_share(group)?;
        let asked = if case.shape.in_turns {
            case.known[group].or_zero(Characteristic::Path) * share.threads.min(node.pus as f64)
        } else {
            all
        };
        Some(share.running * (1.0 - 1.0 / asked.max(1.0)))
    };
    case.known[group].hz() * nodes.filter_map(lost).sum::<f64>()
}
