//! The exchange for rules that rank logical cores: the first among the small with the last among
//! the large.

use super::{LogicalCore, LogicalCoreGroup, Swap};
use std::cmp::Ordering;

/// Exchanges the logical core with the highest claim on a small core for the one with the lowest
/// on a large core, if its claim is higher. Those without a claim come behind all others. Of
/// equals the one with the lowest PU is taken.
///
/// Small cores on which nobody is active are passed over, and so are all in kernel mode.
pub(in crate::policies) fn promote(
    group: &LogicalCoreGroup<'_>,
    claim: impl Fn(&LogicalCore<'_>) -> Option<f64>,
    why: &'static str,
) -> Option<Swap> {
    let may = |seat: &&LogicalCore<'_>| seat.is_ready() && !seat.active.is_empty();
    let order = |a: &&LogicalCore<'_>, b: &&LogicalCore<'_>| compare(claim(a), claim(b));
    // `max_by` takes the last of equals.
    let small = group.small.iter().rev().filter(may).max_by(order)?;
    let user = group.large.iter().filter(|seat| !seat.is_in_kernel());
    let large = user.min_by(order)?;
    order(&small, &large).is_gt().then(|| Swap {
        small: small.logical,
        large: large.logical,
        why: why.into(),
    })
}

/// Nothing is less than anything.
fn compare(a: Option<f64>, b: Option<f64>) -> Ordering {
    match (a, b) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => a.is_some().cmp(&b.is_some()),
    }
}
