//! Training on slowdowns alone, and the part of slowdowns that depends on who runs with whom.

use super::{TrainingRow, TrainingSet};
use consort_core::model::{ComponentParameters, LevelParameters};
use consort_core::stats::{EffectCell, EffectShares, MainEffects};
use nalgebra::{DMatrix, DVector};
use std::collections::BTreeMap;

/// Sum of squares of interactions below which there is none.
const NO_INTERACTION: f64 = 1e-18;

/// Singular values below this share of the largest count as 0: stacks are good to about a hundredth,
/// and the coefficients of a direction in which programs differ by less would only repeat noise.
const NEGLIGIBLE: f64 = 1e-2;

/// Fits the slowdown, the sum over all components, by least squares over the own share, the
/// co-runners' share and their product of every component.
///
/// A slowdown does not say how it is split: since shares sum to 1, any constant can be moved between
/// `alpha`, all `beta` and all `gamma` without a change of the sum. The coefficients of smallest
/// norm are chosen (pseudo-inverse), with no `alpha`. Returns the parameters of all components, and
/// the names of components that never occurred.
pub(super) fn fit_slowdowns(set: &TrainingSet) -> (Vec<ComponentParameters>, Vec<String>) {
    let is_absent = |component: usize| {
        let is_zero = |row: &TrainingRow| row.own[component] == 0.0 && row.others[component] == 0.0;
        set.rows.iter().all(is_zero)
    };
    let all = 0..set.components.len();
    let (absent, present): (Vec<usize>, Vec<usize>) = all.partition(|c| is_absent(*c));
    let regressors = |row: &TrainingRow| -> Vec<f64> {
        let each = |c: &usize| [row.own[*c], row.others[*c], row.own[*c] * row.others[*c]];
        present.iter().flat_map(each).collect()
    };
    let flat: Vec<f64> = set.rows.iter().flat_map(regressors).collect();
    let design = DMatrix::from_row_slice(set.rows.len(), 3 * present.len(), &flat);
    let slowdowns =
        DVector::from_iterator(set.rows.len(), set.rows.iter().map(TrainingRow::slowdown));
    let decomposed = design.svd(true, true);
    let least = NEGLIGIBLE * decomposed.singular_values.max();
    let solution = decomposed
        .solve(&slowdowns, least)
        .unwrap_or_else(|_| DVector::zeros(3 * present.len()));
    let mut parameters = vec![ComponentParameters::default(); set.components.len()];
    for (place, component) in present.iter().enumerate() {
        parameters[*component] = ComponentParameters {
            alpha: 0.0,
            beta: solution[3 * place],
            gamma: solution[3 * place + 1],
            delta: solution[3 * place + 2],
        };
    }
    let absent = absent.iter().map(|&c| set.components[c].clone());
    (parameters, absent.collect())
}

/// Shares of the variance of slowdowns of pairs: by victim, by co-runner, and the rest, on which
/// pairing lives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowdownShares {
    /// Shares of the rows' slowdowns.
    pub measured: EffectShares,
    /// Shares of the level's predictions for the same pairs.
    pub predicted: EffectShares,
    /// Share of the variance of the measured interaction that the predicted one explains (R²); below
    /// 0 if no interaction at all would have been the better prediction, `None` if there is none.
    pub interaction_r2: Option<f64>,
}

/// Shares of the variance of a set's slowdowns, each pair by the mean of its rows; `None` unless all
/// rows have one co-runner.
pub fn slowdown_shares(level: &LevelParameters, set: &TrainingSet) -> Option<SlowdownShares> {
    let programs: Vec<&str> = set.programs().into_iter().collect();
    let place = |name: &str| programs.binary_search(&name).ok();
    let mut sums: BTreeMap<(usize, usize), [f64; 3]> = BTreeMap::new();
    for row in &set.rows {
        let [co_runner] = &row.co_runners[..] else {
            return None;
        };
        let sums = sums
            .entry((place(&row.program)?, place(co_runner)?))
            .or_default();
        sums[0] += row.slowdown();
        sums[1] += level.slowdown(&row.own, &row.others);
        sums[2] += 1.0;
    }
    let cells = |part: usize| -> Vec<EffectCell> {
        let mean = |(&(row, column), sums): (&(usize, usize), &[f64; 3])| {
            (row, column, sums[part] / sums[2])
        };
        sums.iter().map(mean).collect()
    };
    let (measured, predicted) = (cells(0), cells(1));
    let effects = [MainEffects::fit(&measured)?, MainEffects::fit(&predicted)?];
    let left = |effects: &MainEffects, cell: &EffectCell| cell.2 - effects.predict(cell.0, cell.1);
    let (mut total, mut unexplained) = (0.0, 0.0);
    for (measured, predicted) in measured.iter().zip(&predicted) {
        let interaction = left(&effects[0], measured);
        total += interaction.powi(2);
        unexplained += (interaction - left(&effects[1], predicted)).powi(2);
    }
    Some(SlowdownShares {
        measured: effects[0].shares(&measured),
        predicted: effects[1].shares(&predicted),
        interaction_r2: (total > NO_INTERACTION).then(|| 1.0 - unexplained / total),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{cross_validate, errors, fit};
    use super::*;

    const COMPONENTS: usize = 3;

    /// Rows of programs of known stacks, each next to each, with slowdowns by known parameters.
    fn set(parameters: &[ComponentParameters]) -> TrainingSet {
        let stacks: Vec<[f64; COMPONENTS]> = (0..8_u32)
            .map(|n| {
                let (a, b) = (0.1 + 0.1 * f64::from(n), 0.15 * f64::from(n * 5 % 7) / 1.1);
                let sum = a + b + 0.3;
                [a / sum, b / sum, 0.3 / sum]
            })
            .collect();
        let level = LevelParameters::new(2, parameters.to_vec()).unwrap();
        let mut rows = Vec::new();
        for (program, own) in stacks.iter().enumerate() {
            for (other, others) in stacks.iter().enumerate() {
                let slowdown = level.slowdown(own, others);
                rows.push(TrainingRow {
                    co_run: rows.len() as u64,
                    program: format!("p{program}"),
                    co_runners: vec![format!("p{other}")],
                    own: own.to_vec(),
                    others: others.to_vec(),
                    together: own.map(|share| share * slowdown).to_vec(),
                    measured: own.to_vec(),
                });
            }
        }
        TrainingSet {
            machine: "m".to_owned(),
            ways: 2,
            components: ["base", "memory", "branch"].map(str::to_owned).to_vec(),
            slowdowns_only: true,
            rows,
        }
    }

    fn component(beta: f64, gamma: f64, delta: f64) -> ComponentParameters {
        ComponentParameters {
            alpha: 0.0,
            beta,
            gamma,
            delta,
        }
    }

    #[test]
    fn known_parameters_come_back() {
        // Of smallest norm: the betas and the gammas have the same sum.
        let known = [
            component(1.2, 0.8, 0.3),
            component(0.8, 1.0, 0.9),
            component(0.7, 0.9, 0.1),
        ];
        let set = set(&known);
        let fitted = fit(&set).unwrap().level;
        for (found, known) in fitted.parameters().iter().zip(known) {
            for ((name, found), (_, known)) in found.named_values().iter().zip(known.named_values())
            {
                assert!((found - known).abs() < 1e-6, "{name}: {found} for {known}");
            }
        }
        let held_out = cross_validate(&set, 4).unwrap();
        assert!(held_out.forward.size.mean_absolute_percent < 0.5);
        let seen = errors(&fitted, &set).unwrap();
        assert_eq!((seen.inverted, seen.inverse.count), (0, 0));
    }

    #[test]
    fn products_alone_make_interaction() {
        let sum = set(&[
            component(1.4, 0.5, 0.0),
            component(1.6, 0.7, 0.0),
            component(1.2, 0.3, 0.0),
        ]);
        let shares = slowdown_shares(&fit(&sum).unwrap().level, &sum).unwrap();
        assert!(shares.measured.interaction < 1e-9, "{shares:?}");
        let product = set(&[
            component(1.0, 0.0, 0.9),
            component(1.0, 0.0, 0.9),
            component(1.0, 0.0, 0.9),
        ]);
        let shares = slowdown_shares(&fit(&product).unwrap().level, &product).unwrap();
        assert!(shares.measured.interaction > 0.05, "{shares:?}");
        assert!((shares.predicted.interaction - shares.measured.interaction).abs() < 1e-6);
        assert!(shares.interaction_r2.unwrap() > 0.999);
    }
}
