//! Programs in turns on one L1.

use super::{PricingCase, PricingRule};
use crate::policies::holistic::characteristics::Characteristic;

/// Lines of an L1D: 32 KiB of 64 bytes, as most of the described machines have.
const LINES: f64 = 512.0;
/// Cycles to fetch one of them again from the next cache: the described machines have 8 to 21.
const REFILL_CYCLES: f64 = 14.0;

pub(super) const RULE: PricingRule = PricingRule {
    name: "level 1",
    sentence: "threads that find nearly everything in the L1 do not take turns with strangers on it",
    basis: "an L1 of 512 lines is filled again at 14 cycles a line after a stranger's turn, as far \
            as it is hit",
    needs: &[Characteristic::NearHits, Characteristic::Switches],
    cost,
};

fn cost(case: &PricingCase<'_>, group: usize) -> f64 {
    let known = &case.known[group];
    let manner = &case.shape.groups[group];
    let refills = known.or_zero(Characteristic::Switches) * manner.strangers;
    let cycles = LINES * REFILL_CYCLES * known.or_zero(Characteristic::NearHits);
    manner.running * (refills * cycles).min(known.hz())
}
