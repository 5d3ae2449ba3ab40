//! Cycles per instruction of SPEC programs alone.

use super::{MeasuredProgram, NAME, NAVARRO, SoloCpiFigures};
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};

/// Agreement of one program.
const PROGRAM: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: NAVARRO,
    unit: "cycles/instr",
    tolerance: Tolerance::relative(0.10),
};

/// Mean of the errors' sizes.
const MEAN: CheckTemplate<'static> = CheckTemplate {
    unit: "% mean error",
    tolerance: Tolerance::absolute(0.0),
    ..PROGRAM
};

/// Largest mean error that counts as fitting together, percent.
const MOST_PERCENT: f64 = 10.0;

pub(super) fn checks(pairs: &[(&MeasuredProgram, &SoloCpiFigures)]) -> Vec<ValidationCheck> {
    let programs = pairs.iter().map(|(measured, ours)| {
        let id = format!("cpi/{}", measured.name);
        let what = format!("CPI of {} alone, prefetchers on, whole LLC", measured.name);
        let published = PublishedFigure::Value(measured.figures.cpi_prefetch);
        PROGRAM.check(id, what, published, ours.cpi_prefetch)
    });
    let on = mean_error("prefetchers on, whole LLC", pairs, |a| a.cpi_prefetch);
    let whole = mean_error("prefetchers off, whole LLC", pairs, |a| a.cpi_whole);
    let small = mean_error("prefetchers off, 3.5 MB of LLC", pairs, |a| a.cpi_small);
    let means = [("on", on), ("off", whole), ("off-small", small)];
    let means = means.map(|(id, (what, ours, note))| {
        let published = PublishedFigure::AtMost(MOST_PERCENT);
        let check = MEAN.check(format!("cpi-mean/{id}"), what, published, ours);
        check.with_note(note)
    });
    programs.chain(means).collect()
}

/// Text, mean size of the errors in percent, and the largest error.
fn mean_error(
    what: &str,
    pairs: &[(&MeasuredProgram, &SoloCpiFigures)],
    of: fn(&SoloCpiFigures) -> f64,
) -> (String, f64, String) {
    let mut sum = 0.0;
    let mut largest = (0.0_f64, "");
    for (measured, ours) in pairs {
        let error = 100.0 * (of(ours) / of(&measured.figures) - 1.0);
        sum += error.abs();
        if error.abs() > largest.0.abs() {
            largest = (error, &measured.name);
        }
    }
    let text = format!("CPI of {} programs alone, {what}", pairs.len());
    let note = format!("largest: {} {:+.1} %", largest.1, largest.0);
    (text, sum / pairs.len() as f64, note)
}
