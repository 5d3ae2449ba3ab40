//! Programs that a level predicts worst, and the component that it is worst in.

use consort_core::model::LevelParameters;
use consort_experiment::train::{TrainingRow, TrainingSet};
use serde::Serialize;
use std::collections::BTreeMap;

/// One program's errors on the training set.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct WorstProgram {
    /// The program.
    pub(super) program: String,
    /// Mean slowdown measured.
    pub(super) slowdown: f64,
    /// Mean slowdown predicted.
    pub(super) predicted: f64,
    /// Mean magnitude of the errors, as a share of the measured slowdown.
    pub(super) mean_abs: f64,
    /// The component with the largest mean magnitude of residuals.
    pub(super) component: String,
    /// That mean, in ST cycles of the program.
    pub(super) residual: f64,
}

/// Sums over one program's rows.
#[derive(Default)]
struct ProgramErrorSums {
    rows: f64,
    slowdown: f64,
    predicted: f64,
    relative: f64,
    residuals: Vec<f64>,
}

/// Returns all programs, worst first.
pub(super) fn rank_worst(level: &LevelParameters, set: &TrainingSet) -> Vec<WorstProgram> {
    let mut programs: BTreeMap<&str, ProgramErrorSums> = BTreeMap::new();
    for row in &set.rows {
        programs.entry(&row.program).or_default().add(level, row);
    }
    let mut worst: Vec<WorstProgram> = programs
        .into_iter()
        .map(|(program, sums)| sums.worst_program(program, &set.components))
        .collect();
    worst.sort_by(|a, b| b.mean_abs.total_cmp(&a.mean_abs));
    worst
}

impl ProgramErrorSums {
    fn add(&mut self, level: &LevelParameters, row: &TrainingRow) {
        let mut together = vec![0.0; row.own.len()];
        level.predict_stack(&row.own, &row.others, &mut together);
        let (slowdown, predicted) = (row.slowdown(), level.slowdown(&row.own, &row.others));
        self.rows += 1.0;
        self.slowdown += slowdown;
        self.predicted += predicted;
        self.relative += (predicted - slowdown).abs() / slowdown;
        self.residuals.resize(together.len(), 0.0);
        let both = together.iter().zip(&row.together);
        for (sum, (predicted, measured)) in self.residuals.iter_mut().zip(both) {
            *sum += (predicted - measured).abs();
        }
    }

    fn worst_program(&self, program: &str, components: &[String]) -> WorstProgram {
        let named = components.iter().zip(&self.residuals);
        let largest = named.max_by(|a, b| a.1.total_cmp(b.1));
        WorstProgram {
            program: program.to_owned(),
            slowdown: self.slowdown / self.rows,
            predicted: self.predicted / self.rows,
            mean_abs: self.relative / self.rows,
            component: largest.map_or_else(String::new, |(name, _)| name.clone()),
            residual: largest.map_or(0.0, |(_, sum)| sum / self.rows),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::model::ComponentParameters;

    #[test]
    fn the_program_and_the_component_that_are_off_come_first() {
        let unchanged = ComponentParameters {
            beta: 1.0,
            ..ComponentParameters::default()
        };
        let level = LevelParameters::new(2, vec![unchanged; 2]).unwrap();
        let row = |program: &str, data: f64| TrainingRow {
            program: program.to_owned(),
            own: vec![0.5, 0.5],
            others: vec![0.5, 0.5],
            together: vec![0.5, data],
            ..TrainingRow::default()
        };
        let set = TrainingSet {
            ways: 2,
            components: vec!["base".to_owned(), "data".to_owned()],
            rows: vec![row("right", 0.5), row("wrong", 1.5)],
            ..TrainingSet::default()
        };
        let worst = rank_worst(&level, &set);
        assert_eq!(
            (worst[0].program.as_str(), worst[0].component.as_str()),
            ("wrong", "data")
        );
        assert_eq!((worst[0].slowdown, worst[0].predicted), (2.0, 1.0));
        assert_eq!((worst[0].mean_abs, worst[0].residual), (0.5, 1.0));
        assert_eq!(worst[1].mean_abs, 0.0);
    }
}
