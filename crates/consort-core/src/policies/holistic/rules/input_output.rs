//! Threads that wait for input and output.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;

/// Time that a thread that comes back waits for a PU that is taken, s: the least that Linux lets a
/// thread run (3 ms on 8 PUs).
const WAIT_S: f64 = 0.003;

pub(super) const RULE: PricingRule = PricingRule {
    name: "input and output",
    sentence: "threads with frequent input and output are free to run anywhere",
    basis: "a thread that comes back to a PU that is taken waits 3 ms; pinned that is its own PU, \
            free it is only when all are taken",
    needs: &[Characteristic::Inputs],
    cost,
};

fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let manner = &case.shape.groups[group];
    let taken = if manner.pinned {
        manner.others
    } else {
        case.totals.all_taken
    };
    let waits = known.or_zero(Characteristic::Inputs) * WAIT_S * taken;
    manner.running * known.hz() * waits.min(1.0)
}
