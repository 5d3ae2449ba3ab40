//! All edges against the duals of a fractional matching.

use super::super::sweep::PricingSweep;
use super::FractionalMatching;

impl FractionalMatching<'_> {
    /// Makes each edge of negative slack a candidate and lowers the dual of one end until it is
    /// allowed. Whether there was one.
    pub(super) fn price(&mut self) -> bool {
        let mut sweep = PricingSweep::new(self.costs, &self.duals);
        let mut refused = false;
        for first in 0..self.duals.len() {
            let mut from = first + 1;
            while let Some(second) = sweep.first_refused(first, from) {
                refused = true;
                self.admit(first, second);
                sweep.set(first, self.duals[first]);
                from = second + 1;
            }
        }
        refused
    }

    /// Makes an edge a candidate, and lowers the dual of its first end where the duals refuse it.
    pub(super) fn admit(&mut self, first: usize, second: usize) {
        self.connect(first, second);
        let slack = self.slack(first, second);
        if slack < 0 {
            self.duals[first] += slack;
            self.separate(first);
        }
    }
}
