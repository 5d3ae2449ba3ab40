//! The caller's cost of a group, made safe to compare.

/// Asks the caller; empty groups cost nothing, groups that are too large are infinitely dear.
pub(super) struct GroupCosts<F> {
    ask: F,
    ways: usize,
}

impl<F: FnMut(&[usize]) -> f64> GroupCosts<F> {
    pub(super) fn new(ask: F, ways: usize) -> Self {
        Self { ask, ways }
    }

    /// Cost of a group in any order.
    pub(super) fn cost(&mut self, group: &[usize]) -> f64 {
        if group.is_empty() {
            return 0.0;
        }
        if group.len() > self.ways {
            return f64::INFINITY;
        }
        let mut members = group.to_vec();
        members.sort_unstable();
        let cost = (self.ask)(&members);
        // Minus infinity has no place in a sum; such a group is wrong, so dear.
        if cost.is_nan() || cost == f64::NEG_INFINITY {
            f64::INFINITY
        } else {
            cost
        }
    }

    /// Cost of two groups as one.
    pub(super) fn joint_cost(&mut self, first: &[usize], second: &[usize]) -> f64 {
        self.cost(&[first, second].concat())
    }
}
