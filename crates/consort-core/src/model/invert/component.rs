//! The equations of one component for the threads of one core.

use crate::model::matrix::{LinearSystem, MOST, MatrixRow};
use crate::model::parameters::ComponentParameters;

/// Roots that lie outside 0 to 1 by less are taken for 0 or 1: the accuracy that
/// the inverse model promises, and less than the fit's own error.
pub(super) const SLACK: f64 = 0.02;

/// Newton steps before a start is given up; it doubles the digits at each.
const STEPS: usize = 20;

/// A step below this ends Newton's method, in shares.
const SMALL_STEP: f64 = 1e-13;

/// Known values of one component on one core, from which the equations follow.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComponentEquations {
    pub(super) parameters: ComponentParameters,
    /// Number of threads.
    pub(super) n: usize,
    /// The component together, in ST cycles.
    pub(super) together: MatrixRow,
    /// The component alone as far as it is known.
    pub(super) guess: MatrixRow,
    /// True where the nearest shares will do if there are no roots. While the slowdowns are still
    /// guessed, roots that exist may be out of sight.
    pub(super) lenient: bool,
}

impl ComponentEquations {
    /// The shares alone, all within 0 to 1; none where there are no such roots.
    pub(super) fn solve(&self) -> Option<MatrixRow> {
        if self.parameters.is_never_alone() {
            return Some([0.0; MOST]);
        }
        if self.n == 2 {
            return self.quadratic();
        }
        self.newton()
    }

    /// Largest factor by which an error of the component together grows in the solution.
    pub(super) fn sensitivity(&self, solution: &MatrixRow) -> f64 {
        if self.parameters.is_never_alone() {
            return 0.0;
        }
        self.jacobian(solution).inverse_norm()
    }

    fn quadratic(&self) -> Option<MatrixRow> {
        let both = |row: &MatrixRow| [row[0], row[1]];
        let (together, guess) = (both(&self.together), both(&self.guess));
        let found = solve_two_threads(&self.parameters, together, guess, self.lenient)?;
        let mut shares = [0.0; MOST];
        shares[..2].copy_from_slice(&found);
        Some(shares)
    }

    fn newton(&self) -> Option<MatrixRow> {
        let mut shares = self.guess;
        for _ in 0..STEPS {
            let step = self.jacobian(&shares).solve(self.residual(&shares))?;
            let mut largest = 0.0;
            for (share, step) in shares.iter_mut().zip(&step[..self.n]) {
                *share -= step;
                largest = f64::max(largest, step.abs());
            }
            if largest < SMALL_STEP {
                return clamp_shares(&mut shares[..self.n], self.lenient).then_some(shares);
            }
        }
        None
    }

    pub(super) fn residual(&self, shares: &MatrixRow) -> MatrixRow {
        let sum: f64 = shares[..self.n].iter().sum();
        let mut residual = [0.0; MOST];
        for (i, share) in shares[..self.n].iter().enumerate() {
            residual[i] = self.parameters.predict_component(*share, sum - share) - self.together[i];
        }
        residual
    }

    /// Derivative of what thread `i` sees by the share of thread `j`.
    pub(super) fn jacobian(&self, shares: &MatrixRow) -> LinearSystem {
        let p = &self.parameters;
        let sum: f64 = shares[..self.n].iter().sum();
        let mut rows = [[0.0; MOST]; MOST];
        for (i, share) in shares[..self.n].iter().enumerate() {
            rows[i][..self.n].fill(p.gamma + p.delta * share);
            rows[i][i] = p.beta + p.delta * (sum - share);
        }
        LinearSystem { n: self.n, rows }
    }
}

/// The shares of a component that two threads have alone, in closed form: those nearest to the
/// guess. `together` is what is seen of it, in ST cycles. None as in [`ComponentEquations::solve`].
///
/// The difference of both equations gives the difference of the shares; put into one equation it
/// leaves `delta x² + (beta + gamma + delta d) x + alpha + gamma d - y = 0`.
pub(super) fn solve_two_threads(
    p: &ComponentParameters,
    [first, second]: [f64; 2],
    guess: [f64; 2],
    lenient: bool,
) -> Option<[f64; 2]> {
    let difference = (first - second) / (p.beta - p.gamma);
    let linear = p.beta + p.gamma + p.delta * difference;
    let constant = p.alpha + p.gamma * difference - second;
    let mut discriminant = linear * linear - 4.0 * p.delta * constant;
    if lenient {
        discriminant = discriminant.max(0.0);
    }
    let [one, other] = roots(p.delta, linear, constant, discriminant);
    let most = slack(lenient);
    let valid = |x: f64| is_near(x + difference, most) && is_near(x, most);
    let shares = |x: f64| [(x + difference).clamp(0.0, 1.0), x.clamp(0.0, 1.0)];
    let distance = |[a, b]: [f64; 2]| (a - guess[0]).abs() + (b - guess[1]).abs();
    match (valid(one), valid(other)) {
        (true, true) if distance(shares(other)) < distance(shares(one)) => Some(shares(other)),
        (true, _) => Some(shares(one)),
        (false, true) => Some(shares(other)),
        (false, false) => None,
    }
}

/// Distance by which shares may lie outside 0 to 1.
fn slack(lenient: bool) -> f64 {
    if lenient { f64::MAX } else { SLACK }
}

/// Returns true where a share lies at most `slack` outside 0 to 1; false for NaN.
fn is_near(share: f64, slack: f64) -> bool {
    (-slack..=1.0 + slack).contains(&share)
}

/// Moves shares outside 0 to 1 in; false where one is farther out than may be, or not a number.
fn clamp_shares(shares: &mut [f64], lenient: bool) -> bool {
    let most = slack(lenient);
    let near = shares.iter().all(|share| is_near(*share, most));
    shares
        .iter_mut()
        .for_each(|share| *share = share.clamp(0.0, 1.0));
    near
}

/// Roots of `a x² + b x + c` with this discriminant, computed without
/// cancellation (Press et al., "Numerical Recipes", section 5.6); a root that
/// does not exist is not finite.
fn roots(a: f64, b: f64, c: f64, discriminant: f64) -> [f64; 2] {
    let q = -(b + discriminant.sqrt().copysign(b)) / 2.0;
    [q / a, c / q]
}
