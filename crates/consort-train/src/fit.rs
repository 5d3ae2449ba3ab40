//! The parameters of one level from a training set.

use super::least_squares::{self, SingularCause};
use super::set::{TrainingRow, TrainingSet};
use consort_core::model::{ComponentParameters, LevelParameters, ModelError};
use thiserror::Error;

/// Fewest programs that a fit may stand on. A component has four coefficients;
/// with fewer programs than that its shares take fewer values, and noise alone
/// decides between them.
pub const MIN_PROGRAMS: usize = 4;

/// A fitted level.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedLevel {
    /// The parameters.
    pub level: LevelParameters,
    /// Share of the variance of each component together that the model
    /// explains on the training set (R²); none where the component does not
    /// vary.
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
        /// Programs that there are.
        found: usize,
        /// Part of the set that this is.
        what: String,
    },
    /// A number of folds that cannot be.
    #[error("{folds} folds over {programs} programs; from 2 to {programs} are possible")]
    Folds {
        /// Folds asked for.
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
        /// Problem, and what would be right.
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

/// Fits every component by least squares over the regressors 1, own share,
/// co-runners' shares, and their product (spec: equation 1 of the paper).
///
/// # Errors
/// Too few programs, rows of other shape than the set or with values that are
/// not finite, or a component whose regressors are dependent.
pub fn fit(set: &TrainingSet) -> Result<FittedLevel, FitError> {
    check(set)?;
    let mut parameters = Vec::new();
    let mut r2 = Vec::new();
    let mut absent = Vec::new();
    for (component, name) in set.components.iter().enumerate() {
        let rows = least_squares::rows(set, component);
        if rows.iter().all(least_squares::RegressionRow::is_zero) {
            absent.push(name.clone());
            parameters.push(ComponentParameters::default());
            r2.push(None);
            continue;
        }
        let solved = if rows.iter().all(least_squares::RegressionRow::is_zero_alone) {
            least_squares::solve_zero_alone(&rows)
        } else {
            least_squares::solve(&rows).map_err(|cause| singular_error(set, name, cause))?
        };
        r2.push(least_squares::r2(&rows, &solved));
        parameters.push(solved);
    }
    let level = LevelParameters::new(set.ways, parameters)?;
    Ok(FittedLevel { level, r2, absent })
}

fn singular_error(set: &TrainingSet, component: &str, cause: SingularCause) -> FitError {
    FitError::Singular {
        component: component.to_owned(),
        ways: set.ways,
        cause: cause.to_string(),
    }
}

fn check(set: &TrainingSet) -> Result<(), FitError> {
    let found = set.programs().len();
    if found < MIN_PROGRAMS {
        let what = format!("machine '{}', {} threads per core", set.machine, set.ways);
        return Err(FitError::TooFewPrograms { found, what });
    }
    check_rows(set)
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
