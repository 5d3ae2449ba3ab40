//! The parameters of one level from a training set.

use super::slowdowns::fit_slowdowns;
use super::{TrainingRow, TrainingSet};
use consort_core::model::{ComponentParameters, LevelParameters, ModelError};
use nalgebra::{DMatrix, DVector, Vector4};
use std::fmt;
use thiserror::Error;

/// Fewest programs for a fit. A component has four coefficients; with fewer programs its shares
/// take fewer values, and noise alone decides between the coefficients.
pub const MIN_PROGRAMS: usize = 4;

/// A fitted level.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLevel {
    /// The parameters.
    pub level: LevelParameters,
    /// Share of the variance of each component together that the model explains on the training set
    /// (R²); `None` if the component does not vary.
    pub r2: Vec<Option<f64>>,
    /// Components that never occurred; their parameters are all 0.
    pub absent: Vec<String>,
}

/// Reason why a training set gives no model.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum FitError {
    /// Too few programs.
    #[error("training on {found} programs ({what}); at least {MIN_PROGRAMS} are needed")]
    TooFewPrograms {
        /// Number of programs.
        found: usize,
        /// Description of the set.
        what: String,
    },
    /// An impossible number of folds.
    #[error("{folds} folds over {programs} programs; from 2 to {programs} are possible")]
    Folds {
        /// Requested folds.
        folds: usize,
        /// Programs of the set.
        programs: usize,
    },
    /// A row that cannot be used.
    #[error("row {row} ({program}): {problem}")]
    Row {
        /// Place in the set, from 0.
        row: usize,
        /// Its program.
        program: String,
        /// The problem and the expectation.
        problem: String,
    },
    /// The rows do not determine the parameters of a component.
    #[error(
        "component '{component}' cannot be fitted at {ways} threads per core: {cause}; add training programs that differ in it"
    )]
    Singular {
        /// The component.
        component: String,
        /// Threads per core.
        ways: u32,
        /// Columns that are constant or dependent.
        cause: String,
    },
    /// The parameters are impossible.
    #[error("the fit gives no usable level: {0}")]
    Level(#[from] ModelError),
}

/// Fits every component by least squares over the regressors 1, own share, co-runners' shares, and
/// their product (equation 1 of the paper). If only slowdowns are known, all components are fitted to
/// them at once, without `alpha`.
///
/// # Errors
/// Too few programs, rows of another shape than the set or with values that are not finite, or a
/// component whose regressors are dependent.
pub fn fit(set: &TrainingSet) -> Result<FittedLevel, FitError> {
    let found = set.programs().len();
    if found < MIN_PROGRAMS {
        let what = format!("machine '{}', {} threads per core", set.machine, set.ways);
        return Err(FitError::TooFewPrograms { found, what });
    }
    check_rows(set)?;
    if set.slowdowns_only {
        let (parameters, absent) = fit_slowdowns(set);
        return Ok(FittedLevel {
            level: LevelParameters::new(set.ways, parameters)?,
            r2: vec![None; set.components.len()],
            absent,
        });
    }
    let mut parameters = Vec::new();
    let mut r2 = Vec::new();
    let mut absent = Vec::new();
    for (component, name) in set.components.iter().enumerate() {
        let rows = rows(set, component);
        let is_zero =
            |value: fn(&RegressionRow) -> f64| rows.iter().all(|row| value(row).abs() < SAME_SHARE);
        let is_zero_alone = is_zero(|row| row.own) && is_zero(|row| row.others);
        if is_zero_alone && is_zero(|row| row.together) {
            absent.push(name.clone());
            parameters.push(ComponentParameters::default());
            r2.push(None);
            continue;
        }
        let solved = if is_zero_alone {
            // A component that no thread has alone, such as waiting for co-runners, determines only
            // `alpha`, and the mean has the smallest sum of squared residuals.
            let sum: f64 = rows.iter().map(|row| row.together).sum();
            ComponentParameters {
                alpha: sum / rows.len() as f64,
                ..ComponentParameters::default()
            }
        } else {
            solve(&rows).map_err(|cause| FitError::Singular {
                component: name.clone(),
                ways: set.ways,
                cause: cause.to_string(),
            })?
        };
        let pairs = rows.iter().map(|row| (row.together, row.residual(&solved)));
        r2.push(explained_variance(&pairs.collect::<Vec<_>>()));
        parameters.push(solved);
    }
    let level = LevelParameters::new(set.ways, parameters)?;
    Ok(FittedLevel { level, r2, absent })
}

/// Checks that every row has stacks of the set's components that can be used.
pub(super) fn check_rows(set: &TrainingSet) -> Result<(), FitError> {
    for (place, row) in set.rows.iter().enumerate() {
        check_row(set, row).map_err(|problem| FitError::Row {
            row: place,
            program: row.program.clone(),
            problem,
        })?;
    }
    Ok(())
}

fn check_row(set: &TrainingSet, row: &TrainingRow) -> Result<(), String> {
    let stacks = [
        ("own", &row.own),
        ("others", &row.others),
        ("together", &row.together),
        ("measured", &row.measured),
    ];
    for (name, stack) in stacks {
        let expected = set.components.len();
        if stack.len() != expected {
            let found = stack.len();
            return Err(format!(
                "{name} has {found} components where the set has {expected}"
            ));
        }
        if !stack.iter().all(|v| v.is_finite()) {
            return Err(format!("{name} holds a value that is not finite"));
        }
    }
    if row.slowdown() <= 0.0 {
        return Err("together sums to nothing; it must sum to the slowdown".to_owned());
    }
    Ok(())
}

/// Columns of the design matrix.
const COLUMNS: usize = 4;

/// Below this proportion of the largest diagonal element of R, a column counts
/// as dependent on the others. Measured stacks are good to about 1e-6, the
/// arithmetic to 1e-15; anything between separates the two.
const DEPENDENT_BELOW: f64 = 1e-10;

/// Values that differ less than this are the same share.
const SAME_SHARE: f64 = 1e-9;

#[derive(Clone, Copy, Debug, PartialEq)]
struct RegressionRow {
    own: f64,
    others: f64,
    together: f64,
}

impl RegressionRow {
    fn regressors(&self) -> [f64; COLUMNS] {
        [1.0, self.own, self.others, self.own * self.others]
    }

    fn residual(&self, parameters: &ComponentParameters) -> f64 {
        self.together - parameters.predict_component(self.own, self.others)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SingularCause {
    Rows(usize),
    /// The own share is the same in all rows.
    Own,
    /// The co-runners' share is the same in all rows.
    Others,
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

fn rows(set: &TrainingSet, component: usize) -> Vec<RegressionRow> {
    let regression = |row: &TrainingRow| RegressionRow {
        own: row.own[component],
        others: row.others[component],
        together: row.together[component],
    };
    set.rows.iter().map(regression).collect()
}

/// The coefficients with the smallest sum of squared residuals, by QR decomposition with column
/// pivoting (Golub and Van Loan, "Matrix Computations", section 5.4).
fn solve(rows: &[RegressionRow]) -> Result<ComponentParameters, SingularCause> {
    if rows.len() < COLUMNS {
        return Err(SingularCause::Rows(rows.len()));
    }
    let flat: Vec<f64> = rows.iter().flat_map(RegressionRow::regressors).collect();
    let design = DMatrix::from_row_slice(rows.len(), COLUMNS, &flat);
    let qr = design.col_piv_qr();
    let r = qr.r();
    let diagonal = |i: usize| r[(i, i)].abs();
    // Column pivoting sorts the diagonal by size, so the first element is the largest.
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

/// R² of values and their residuals; `None` if the values do not vary.
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
