//! The equations of one component for the threads of one core.

use crate::model::matrix::{MOST, Matrix, Row};
use crate::model::parameters::Parameters;

/// Roots that lie outside 0 to 1 by less are taken for 0 or 1: the accuracy that
/// the inverse model promises, and less than the fit's own error.
pub(super) const SLACK: f64 = 0.02;

/// Newton steps before a start is given up; it doubles the digits at each.
const STEPS: usize = 20;

/// A step below this ends Newton's method, in shares.
const SMALL_STEP: f64 = 1e-13;

/// What is known of one component on one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct Equations {
    pub(super) parameters: Parameters,
    /// Number of threads.
    pub(super) n: usize,
    /// The component together, in ST cycles.
    pub(super) together: Row,
    /// The component alone as far as it is known.
    pub(super) guess: Row,
    /// Whether the nearest shares will do where there are no roots. While the
    /// slowdowns are still guessed, roots that exist may be out of sight.
    pub(super) lenient: bool,
}

impl Equations {
    /// The shares alone, all within 0 to 1; none where there are no such roots.
    pub(super) fn solve(&self) -> Option<Row> {
        if self.parameters.is_never_alone() {
            return Some([0.0; MOST]);
        }
        if self.n == 2 {
            return self.quadratic();
        }
        self.newton()
    }

    /// How much an error of the component together may grow in the solution.
    pub(super) fn sensitivity(&self, solution: &Row) -> f64 {
        if self.parameters.is_never_alone() {
            return 0.0;
        }
        self.jacobian(solution).inverse_norm()
    }

    /// Closed form for two threads. The difference of both equations gives the
    /// difference of the shares; put into one equation it leaves
    /// `delta x² + (beta + gamma + delta d) x + alpha + gamma d - y = 0`.
    fn quadratic(&self) -> Option<Row> {
        let p = &self.parameters;
        let [first, second, ..] = self.together;
        let difference = (first - second) / (p.beta - p.gamma);
        let linear = p.beta + p.gamma + p.delta * difference;
        let constant = p.alpha + p.gamma * difference - second;
        let mut discriminant = linear * linear - 4.0 * p.delta * constant;
        if self.lenient {
            discriminant = discriminant.max(0.0);
        }
        let both = roots(p.delta, linear, constant, discriminant).map(|x| {
            let mut shares = [0.0; MOST];
            (shares[0], shares[1]) = (x + difference, x);
            self.within(shares)
        });
        let distance =
            |shares: &Row| (shares[0] - self.guess[0]).abs() + (shares[1] - self.guess[1]).abs();
        let valid = both.into_iter().flatten();
        valid.min_by(|a, b| distance(a).total_cmp(&distance(b)))
    }

    fn newton(&self) -> Option<Row> {
        let mut shares = self.guess;
        for _ in 0..STEPS {
            let step = self.jacobian(&shares).solve(self.residual(&shares))?;
            let mut largest = 0.0;
            for (share, step) in shares.iter_mut().zip(&step[..self.n]) {
                *share -= step;
                largest = f64::max(largest, step.abs());
            }
            if largest < SMALL_STEP {
                return self.within(shares);
            }
        }
        None
    }

    /// The shares with those outside 0 to 1 moved in; none where one is farther
    /// out than may be, or not a number.
    fn within(&self, mut shares: Row) -> Option<Row> {
        let slack = if self.lenient { f64::MAX } else { SLACK };
        for share in &mut shares[..self.n] {
            if !(-slack..=1.0 + slack).contains(share) {
                return None;
            }
            *share = share.clamp(0.0, 1.0);
        }
        Some(shares)
    }

    pub(super) fn residual(&self, shares: &Row) -> Row {
        let sum: f64 = shares[..self.n].iter().sum();
        let mut residual = [0.0; MOST];
        for (i, share) in shares[..self.n].iter().enumerate() {
            residual[i] = self.parameters.together(*share, sum - share) - self.together[i];
        }
        residual
    }

    /// Derivative of what thread `i` sees by the share of thread `j`.
    pub(super) fn jacobian(&self, shares: &Row) -> Matrix {
        let p = &self.parameters;
        let sum: f64 = shares[..self.n].iter().sum();
        let mut rows = [[0.0; MOST]; MOST];
        for (i, share) in shares[..self.n].iter().enumerate() {
            rows[i][..self.n].fill(p.gamma + p.delta * share);
            rows[i][i] = p.beta + p.delta * (sum - share);
        }
        Matrix { n: self.n, rows }
    }
}

/// Roots of `a x² + b x + c` with this discriminant, computed without
/// cancellation (Press et al., "Numerical Recipes", section 5.6); a root that
/// does not exist is not finite.
fn roots(a: f64, b: f64, c: f64, discriminant: f64) -> [f64; 2] {
    let q = -(b + discriminant.sqrt().copysign(b)) / 2.0;
    [q / a, c / q]
}
