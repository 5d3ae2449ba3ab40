//! Main effects of two factors on a value, and the interaction that they leave.

/// Turns of fitting: each halves the error at least if most cells are known.
const TURNS: u32 = 100;

/// A known value: number of the row, of the column, and the value.
pub type EffectCell = (usize, usize, f64);

/// Mean of a table, and how far each row and each column lies from it.
///
/// The effects have the smallest sum of squared residuals. They are fitted in turns (backfitting),
/// because cells may be missing: the mean over a row is then over other columns than that over the
/// next.
#[derive(Clone, Debug, PartialEq)]
pub struct MainEffects {
    /// Mean over all cells.
    pub mean: f64,
    /// Effects of rows, by number; 0 for a row without cells.
    pub rows: Vec<f64>,
    /// Effects of columns, by number; 0 for a column without cells.
    pub columns: Vec<f64>,
}

/// Shares of the variance of a table, 0 to 1; they sum to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct EffectShares {
    /// Share that the row explains.
    pub rows: f64,
    /// Share that the column explains.
    pub columns: f64,
    /// The rest, which depends on both.
    pub interaction: f64,
}

impl MainEffects {
    /// The effects in these cells; `None` without cells.
    pub fn fit(cells: &[EffectCell]) -> Option<Self> {
        let values: Vec<f64> = cells.iter().map(|cell| cell.2).collect();
        let mean = super::mean(&values)?;
        let count = |of: fn(&EffectCell) -> usize| cells.iter().map(of).max().map_or(0, |n| n + 1);
        let mut effects = Self {
            mean,
            rows: vec![0.0; count(|cell| cell.0)],
            columns: vec![0.0; count(|cell| cell.1)],
        };
        for _ in 0..TURNS {
            let rows = cells
                .iter()
                .map(|&(r, c, v)| (r, v - mean - effects.columns[c]));
            effects.rows = means(effects.rows.len(), rows);
            let columns = cells
                .iter()
                .map(|&(r, c, v)| (c, v - mean - effects.rows[r]));
            effects.columns = means(effects.columns.len(), columns);
        }
        Some(effects)
    }

    /// The value that the effects give for a cell; an unknown row or column has none.
    pub fn predict(&self, row: usize, column: usize) -> f64 {
        let effect = |effects: &[f64], at: usize| effects.get(at).copied().unwrap_or(0.0);
        self.mean + effect(&self.rows, row) + effect(&self.columns, column)
    }

    /// Shares of the variance of the cells that were fitted.
    pub fn shares(&self, cells: &[EffectCell]) -> EffectShares {
        let sum = |part: &dyn Fn(&EffectCell) -> f64| -> f64 {
            cells.iter().map(|cell| part(cell) * part(cell)).sum()
        };
        let rows = sum(&|cell| self.rows[cell.0]);
        let columns = sum(&|cell| self.columns[cell.1]);
        let left = sum(&|cell| cell.2 - self.predict(cell.0, cell.1));
        let total = (rows + columns + left).max(f64::MIN_POSITIVE);
        EffectShares {
            rows: rows / total,
            columns: columns / total,
            interaction: left / total,
        }
    }
}

/// Means of values by number; 0 for a number without values.
fn means(count: usize, values: impl Iterator<Item = (usize, f64)>) -> Vec<f64> {
    let mut sums = vec![(0.0, 0.0_f64); count];
    for (at, value) in values {
        sums[at].0 += value;
        sums[at].1 += 1.0;
    }
    let means = sums.into_iter().map(|(sum, count)| sum / count.max(1.0));
    means.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table(
        value: impl Fn(usize, usize) -> f64,
        known: impl Fn(usize, usize) -> bool,
    ) -> Vec<EffectCell> {
        let all = (0..6).flat_map(|row| (0..5).map(move |column| (row, column)));
        let known = all.filter(|&(row, column)| known(row, column));
        known
            .map(|(row, column)| (row, column, value(row, column)))
            .collect()
    }

    #[test]
    fn missing_cells_follow_from_main_effects() {
        let value = |row: usize, column: usize| 3.0 + row as f64 - 0.5 * column as f64;
        let cells = table(value, |row, column| row != column);
        let effects = MainEffects::fit(&cells).unwrap();
        assert!((effects.predict(2, 2) - value(2, 2)).abs() < 1e-9);
        assert!(effects.shares(&cells).interaction < 1e-12);
    }

    #[test]
    fn interaction_is_what_effects_leave() {
        let value = |row: usize, column: usize| {
            if (row + column).is_multiple_of(2) {
                1.0
            } else {
                2.0
            }
        };
        let cells = table(value, |_, column| column < 4);
        let shares = MainEffects::fit(&cells).unwrap().shares(&cells);
        assert!(shares.interaction > 0.999, "{shares:?}");
        assert_eq!(MainEffects::fit(&[]), None);
    }
}
