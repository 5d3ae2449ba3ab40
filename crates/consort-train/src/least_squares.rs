//! Least squares of one component.

use super::set::TrainingSet;
use consort_core::model::ComponentParameters;
use nalgebra::{DMatrix, DVector, Vector4};
use std::fmt;

/// Columns of the design matrix.
const COLUMNS: usize = 4;

/// Below this proportion of the largest diagonal element of R, a column counts
/// as dependent on the others. Measured stacks are good to about 1e-6, the
/// arithmetic to 1e-15; anything between separates the two.
const DEPENDENT_BELOW: f64 = 1e-10;

/// Values that differ less than this are the same share.
const SAME_SHARE: f64 = 1e-9;

/// One row of the regression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RegressionRow {
    own: f64,
    others: f64,
    together: f64,
}

impl RegressionRow {
    /// Returns true where the component occurs neither alone nor together.
    pub(super) fn is_zero(&self) -> bool {
        let values = [self.own, self.others, self.together];
        values.iter().all(|v| v.abs() < SAME_SHARE)
    }

    /// Returns true where the component does not occur in threads that run alone.
    pub(super) fn is_zero_alone(&self) -> bool {
        [self.own, self.others].iter().all(|v| v.abs() < SAME_SHARE)
    }

    fn regressors(&self) -> [f64; COLUMNS] {
        [1.0, self.own, self.others, self.own * self.others]
    }

    fn residual(&self, parameters: &ComponentParameters) -> f64 {
        self.together - parameters.predict_component(self.own, self.others)
    }
}

/// Reason why a component cannot be fitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SingularCause {
    /// Fewer rows than coefficients.
    Rows(usize),
    /// The own share is the same in all rows.
    Own,
    /// The co-runners' share is the same in all rows.
    Others,
    /// Some other dependence.
    Dependent,
}

impl fmt::Display for SingularCause {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rows(rows) => write!(out, "{rows} rows for {COLUMNS} coefficients"),
            Self::Own => out.write_str("the share of the thread alone is the same in all rows"),
            Self::Others => out.write_str("the share of the co-runners is the same in all rows"),
            Self::Dependent => out.write_str(
                "the share alone, that of the co-runners and their product depend on each other",
            ),
        }
    }
}

/// The rows of one component.
pub(super) fn rows(set: &TrainingSet, component: usize) -> Vec<RegressionRow> {
    let regression = |row: &super::set::TrainingRow| RegressionRow {
        own: row.own[component],
        others: row.others[component],
        together: row.together[component],
    };
    set.rows.iter().map(regression).collect()
}

/// The coefficients of a component that no thread has alone, such as waiting for co-runners:
/// only `alpha` can be told, and the mean has the smallest sum of squared residuals.
pub(super) fn solve_zero_alone(rows: &[RegressionRow]) -> ComponentParameters {
    let sum: f64 = rows.iter().map(|row| row.together).sum();
    ComponentParameters {
        alpha: sum / rows.len() as f64,
        ..ComponentParameters::default()
    }
}

/// The coefficients with the smallest sum of squared residuals, by QR
/// decomposition with column pivoting (Golub and Van Loan, "Matrix
/// Computations", section 5.4).
pub(super) fn solve(rows: &[RegressionRow]) -> Result<ComponentParameters, SingularCause> {
    if rows.len() < COLUMNS {
        return Err(SingularCause::Rows(rows.len()));
    }
    let flat: Vec<f64> = rows.iter().flat_map(RegressionRow::regressors).collect();
    let design = DMatrix::from_row_slice(rows.len(), COLUMNS, &flat);
    let qr = design.col_piv_qr();
    let r = qr.r();
    let diagonal = |i: usize| r[(i, i)].abs();
    if (0..COLUMNS).any(|i| diagonal(i) <= DEPENDENT_BELOW * diagonal(0)) {
        return Err(find_dependence(rows));
    }
    let mut right = DVector::from_iterator(rows.len(), rows.iter().map(|row| row.together));
    qr.q_tr_mul(&mut right);
    let mut solution = Vector4::from_iterator(right.iter().copied());
    if !r.solve_upper_triangular_mut(&mut solution) {
        return Err(find_dependence(rows));
    }
    qr.p().inv_permute_rows(&mut solution);
    let [alpha, beta, gamma, delta] = solution.into();
    Ok(ComponentParameters {
        alpha,
        beta,
        gamma,
        delta,
    })
}

fn find_dependence(rows: &[RegressionRow]) -> SingularCause {
    let constant = |value: fn(&RegressionRow) -> f64| {
        rows.iter()
            .all(|row| (value(row) - value(&rows[0])).abs() < SAME_SHARE)
    };
    if constant(|row| row.own) {
        SingularCause::Own
    } else if constant(|row| row.others) {
        SingularCause::Others
    } else {
        SingularCause::Dependent
    }
}

/// Share of the variance that the parameters explain; none without variance.
pub(super) fn r2(rows: &[RegressionRow], parameters: &ComponentParameters) -> Option<f64> {
    let pairs = rows
        .iter()
        .map(|row| (row.together, row.residual(parameters)));
    explained_variance(&pairs.collect::<Vec<_>>())
}

/// R² of values and their residuals; none where the values do not vary.
pub(super) fn explained_variance(values_and_residuals: &[(f64, f64)]) -> Option<f64> {
    let count = values_and_residuals.len() as f64;
    let mean = values_and_residuals.iter().map(|(v, _)| v).sum::<f64>() / count;
    let square_sum = |of: &dyn Fn(&(f64, f64)) -> f64| -> f64 {
        values_and_residuals
            .iter()
            .map(|pair| of(pair) * of(pair))
            .sum()
    };
    let total = square_sum(&|(value, _)| value - mean);
    let left = square_sum(&|(_, residual)| *residual);
    (total > SAME_SHARE * SAME_SHARE * count).then(|| 1.0 - left / total)
}
