//! LLC misses of SPEC programs alone.

use super::{MeasuredProgram, NAME, NAVARRO, SoloCpiFigures};
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};

/// Differences of a twentieth of a miss per kilo-instruction are within the rounding of two inputs'
/// figures and change no CPI by a percent.
const MISSES: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: NAVARRO,
    unit: "misses/kinstr",
    tolerance: Tolerance::relative_above(0.10, 0.05),
};

pub(super) fn checks(pairs: &[(&MeasuredProgram, &SoloCpiFigures)]) -> Vec<ValidationCheck> {
    let check = |(measured, ours): &(&MeasuredProgram, &SoloCpiFigures)| {
        let name = &measured.name;
        let of = |size: &str, at: &str, of: fn(&SoloCpiFigures) -> f64| {
            let what = format!("LLC misses of {name} alone, prefetchers off, {at}");
            let published = PublishedFigure::Value(of(&measured.figures));
            MISSES.check(format!("misses-{size}/{name}"), what, published, of(ours))
        };
        [
            of("whole", "whole LLC", |a| a.mpki_whole),
            of("small", "3.5 MB of LLC", |a| a.mpki_small),
        ]
    };
    pairs.iter().flat_map(check).collect()
}
