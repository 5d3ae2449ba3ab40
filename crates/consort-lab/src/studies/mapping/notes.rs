//! What the notes of these studies have in common.

use super::sweep::Runs;
use crate::experiment::NOT_MODELLED;

/// What the simulation has no mechanism for.
pub(in crate::studies) fn not_modelled() -> String {
    let what = NOT_MODELLED.iter();
    let what: Vec<String> = what.map(|(what, why)| format!("{what} ({why})")).collect();
    format!("Not modelled, and so without numbers: {}.", what.join("; "))
}

/// Which runs were stopped.
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

/// What turns and moves cost.
pub(in crate::studies) const TURNS: &str = "Where strangers share a core in turns (spr, and os for the \
    most part), a thread that waits for siblings gives its core to a stranger, and takes it back when \
    it wakes if the stranger has run longer by a granularity of 3 ms, as in Linux before 6.6. A \
    program whose barriers or serial sections come more often than that waits for some of them. os \
    also moves threads that wake to cores that are idle, where caches have to be filled again.";
