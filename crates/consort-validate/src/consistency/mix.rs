//! Instruction mixes of the program files against the published ones.

use super::NAME;
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::data::PublishedData;
use crate::error::ValidateError;
use consort_sim::program::{MixSpec, ProgramSpec, presets};
use serde::Deserialize;

const MIX: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "Markovic, Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs (UPC 2015), Table 3.2",
    unit: "% of instr",
    tolerance: Tolerance::absolute(0.1),
};

#[derive(Deserialize)]
struct PublishedMixRow {
    program: String,
    branch: f64,
    load: f64,
    store: f64,
}

/// For each class the program that is farthest off: if that one agrees, all do.
pub(super) fn checks(data: &PublishedData) -> Result<Vec<ValidationCheck>, ValidateError> {
    let mut all = Vec::new();
    for line in data.parse_rows::<PublishedMixRow>("spec2006-mix.csv")? {
        let program = presets::find(&line.program)?;
        all.push((line, mean_mix(&program)));
    }
    type Pick = fn(&PublishedMixRow, &MixSpec) -> (f64, f64);
    let classes: [(&str, Pick); 3] = [
        ("branches", |l, m| (l.branch, 100.0 * m.branch)),
        ("loads", |l, m| (l.load, 100.0 * m.load)),
        ("stores", |l, m| (l.store, 100.0 * m.store)),
    ];
    let farthest = |(class, of): (&str, Pick)| {
        let off = |(line, mix): &(PublishedMixRow, MixSpec)| {
            let (published, ours) = of(line, mix);
            (ours - published).abs()
        };
        let (line, mix) = all.iter().max_by(|a, b| off(a).total_cmp(&off(b)))?;
        let (published, ours) = of(line, mix);
        let what = format!(
            "share of {class} of {}, the farthest off of {} programs",
            line.program,
            all.len()
        );
        Some(MIX.check(
            format!("mix/{class}"),
            what,
            PublishedFigure::Value(published),
            ours,
        ))
    };
    Ok(classes.into_iter().filter_map(farthest).collect())
}

/// Mean over the phases, weighted by their lengths.
fn mean_mix(program: &ProgramSpec) -> MixSpec {
    let length: f64 = program.phases.iter().map(|p| p.length_ginstr).sum();
    let of = |class: fn(&MixSpec) -> f64| -> f64 {
        let phases = program.phases.iter();
        phases
            .map(|p| p.length_ginstr / length * class(&p.mix))
            .sum()
    };
    MixSpec {
        fp: of(|m| m.fp),
        vector: of(|m| m.vector),
        int: of(|m| m.int),
        load: of(|m| m.load),
        store: of(|m| m.store),
        branch: of(|m| m.branch),
    }
}
