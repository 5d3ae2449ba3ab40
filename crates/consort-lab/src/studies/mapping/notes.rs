//! Notes that several of these studies have, and their output.

use super::sweep::PairRuns;
use crate::study::StudyOutput;
use consort_data::{Figure, ReportTable};
use consort_experiment::NOT_MODELLED;

/// Note on resources that the simulation does not model.
pub(in crate::studies) fn not_modelled() -> String {
    let what = NOT_MODELLED.iter();
    let what: Vec<String> = what.map(|(what, why)| format!("{what} ({why})")).collect();
    format!("Not modelled, and so without numbers: {}.", what.join("; "))
}

impl PairRuns {
    /// Output of a study of these runs, with a last note where some were stopped.
    pub fn output(
        &self,
        tables: Vec<ReportTable>,
        figures: Vec<Figure>,
        mut notes: Vec<String>,
    ) -> StudyOutput {
        notes.extend(stopped(self));
        StudyOutput {
            tables,
            figures,
            notes,
            runs: self.seeds,
        }
    }
}

/// Note on runs that were stopped, if any were.
fn stopped(runs: &PairRuns) -> Option<String> {
    let stopped = runs.stopped();
    let mut names: Vec<String> = Vec::new();
    for (pair, mapping) in &stopped {
        names.push(format!("{} under {mapping}", pair.join("+")));
    }
    (!names.is_empty()).then(|| {
        format!(
            "Stopped before the slower program had done its work three times, in {} of {} cases: {}.",
            names.len(),
            runs.pairs.len() * super::plan::MAPPINGS.len(),
            names.join(", "),
        )
    })
}
