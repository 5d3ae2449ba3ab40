//! Linear systems of as many unknowns as threads share a core.

/// Most unknowns: the threads of the widest core.
pub(super) const MOST: usize = super::parameters::MAX_WAYS as usize;

/// One value per thread of a core; those past the number of threads are unused.
pub(super) type MatrixRow = [f64; MOST];

/// A square system of `n` unknowns in fixed storage.
#[derive(Clone, Copy, Debug)]
pub(super) struct LinearSystem {
    pub(super) n: usize,
    pub(super) rows: [MatrixRow; MOST],
}

impl LinearSystem {
    /// Solves for one right side by Gaussian elimination with partial pivoting;
    /// none where a pivot vanishes or the solution is not finite.
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

    /// The largest sum of magnitudes in a row of the inverse: the factor by which an error of the
    /// right side can grow in the solution. Infinite where there is no inverse.
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
