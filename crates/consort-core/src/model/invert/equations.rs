//! The equations of one component for the threads of one core, and the linear systems that solve
//! them.

use crate::model::level::ComponentParameters;

/// Most unknowns: the threads of the widest core.
pub(super) const MOST: usize = crate::model::MAX_WAYS as usize;

/// One value per thread of a core; values past the number of threads are unused.
pub(super) type MatrixRow = [f64; MOST];

/// A square system of `n` unknowns, in fixed storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearSystem {
    pub(super) n: usize,
    pub(super) rows: [MatrixRow; MOST],
}

impl LinearSystem {
    /// Solves for one right side by Gaussian elimination with partial pivoting; `None` if a pivot
    /// vanishes or the solution is not finite.
    pub(super) fn solve(&self, right: MatrixRow) -> Option<MatrixRow> {
        if self.n == 2 {
            return self.solve_two(right);
        }
        let (mut left, mut right) = (*self, right);
        for column in 0..left.n {
            left.pivot(column, &mut right);
            for row in column + 1..left.n {
                left.eliminate(column, row, &mut right);
            }
        }
        left.substitute(right)
    }

    /// Solves for two unknowns, without moving rows as long as for the widest core.
    fn solve_two(&self, mut right: MatrixRow) -> Option<MatrixRow> {
        let ([mut above, mut below], [mut first, mut second]) = (
            [self.rows[0], self.rows[1]].map(|row| (row[0], row[1])),
            [right[0], right[1]],
        );
        if above.0.abs().total_cmp(&below.0.abs()).is_le() {
            (above, below) = (below, above);
            (first, second) = (second, first);
        }
        let factor = below.0 / above.0;
        right[1] = (second - factor * first) / (below.1 - factor * above.1);
        right[0] = (first - above.1 * right[1]) / above.0;
        (right[0].is_finite() && right[1].is_finite()).then_some(right)
    }

    /// Largest sum of magnitudes in a row of the inverse: the factor by which an error of the right
    /// side can grow in the solution. Infinite without an inverse.
    pub(super) fn inverse_norm(&self) -> f64 {
        let mut sums = [0.0; MOST];
        for column in 0..self.n {
            let mut unit = [0.0; MOST];
            unit[column] = 1.0;
            let Some(solution) = self.solve(unit) else {
                return f64::INFINITY;
            };
            for (sum, value) in sums.iter_mut().zip(&solution[..self.n]) {
                *sum += value.abs();
            }
        }
        sums.iter().copied().fold(0.0, f64::max)
    }

    fn pivot(&mut self, column: usize, right: &mut MatrixRow) {
        let size = |row: &usize| self.rows[*row][column].abs();
        let largest = (column..self.n).max_by(|a, b| size(a).total_cmp(&size(b)));
        let largest = largest.unwrap_or(column);
        self.rows.swap(column, largest);
        right.swap(column, largest);
    }

    fn eliminate(&mut self, column: usize, row: usize, right: &mut MatrixRow) {
        let above = self.rows[column];
        let factor = self.rows[row][column] / above[column];
        let both = self.rows[row].iter_mut().zip(&above);
        for (value, above) in both.take(self.n) {
            *value -= factor * above;
        }
        right[row] -= factor * right[column];
    }

    fn substitute(&self, mut right: MatrixRow) -> Option<MatrixRow> {
        for row in (0..self.n).rev() {
            let known = self.rows[row].iter().zip(&right);
            let sum: f64 = known.take(self.n).skip(row + 1).map(|(a, x)| a * x).sum();
            right[row] = (right[row] - sum) / self.rows[row][row];
        }
        let solved = right[..self.n].iter().all(|x| x.is_finite());
        solved.then_some(right)
    }
}

/// Roots outside 0 to 1 by at most this are taken for 0 or 1: the accuracy that the inverse model
/// promises, and less than the fit's own error.
pub(super) const SLACK: f64 = 0.02;

/// Most Newton steps; each doubles the number of correct digits.
const STEPS: usize = 20;

/// A step below this ends Newton's method, in shares.
const SMALL_STEP: f64 = 1e-13;

/// The equations of one component for the threads of one core.
#[derive(Clone, Copy, Debug)]
pub(super) struct ComponentEquations {
    pub(super) parameters: ComponentParameters,
    /// Number of threads.
    pub(super) n: usize,
    /// The component together, in ST cycles.
    pub(super) together: MatrixRow,
    /// Best guess of the component alone.
    pub(super) guess: MatrixRow,
    /// True if the nearest shares suffice when there are no roots. While the slowdowns are still
    /// guesses, existing roots may be out of reach.
    pub(super) lenient: bool,
}

impl ComponentEquations {
    /// Solves for the shares alone, all within 0 to 1; `None` without such roots.
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

/// Solves for the shares of a component that two threads have alone, in closed form; of two roots
/// those nearer to the guess. `together` is the measured component, in ST cycles. `None` as in
/// [`ComponentEquations::solve`].
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

/// Returns true if a share lies at most `slack` outside 0 to 1; false for NaN.
fn is_near(share: f64, slack: f64) -> bool {
    (-slack..=1.0 + slack).contains(&share)
}

/// Clamps shares to 0 to 1; false if one is farther out than allowed, or not a number.
fn clamp_shares(shares: &mut [f64], lenient: bool) -> bool {
    let most = slack(lenient);
    let near = shares.iter().all(|share| is_near(*share, most));
    shares
        .iter_mut()
        .for_each(|share| *share = share.clamp(0.0, 1.0));
    near
}

/// Roots of `a x² + b x + c` with this discriminant, computed without cancellation (Press et al.,
/// "Numerical Recipes", section 5.6). A root that does not exist is not finite.
fn roots(a: f64, b: f64, c: f64, discriminant: f64) -> [f64; 2] {
    let q = -(b + discriminant.sqrt().copysign(b)) / 2.0;
    [q / a, c / q]
}
