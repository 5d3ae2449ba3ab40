//! Notes that several of these studies have.

use super::sweep::Runs;
use consort_experiment::NOT_MODELLED;

/// Note on resources that the simulation does not model.
pub(in crate::studies) fn not_modelled() -> String {
    let what = NOT_MODELLED.iter();
    let what: Vec<String> = what.map(|(what, why)| format!("{what} ({why})")).collect();
    format!("Not modelled, and so without numbers: {}.", what.join("; "))
}

/// Note on runs that were stopped, if any were.
pub(in crate::studies) fn stopped(runs: &Runs) -> Option<String> {
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
