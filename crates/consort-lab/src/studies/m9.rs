//! M9: where the time of threads goes, for four pairs of programs.
//!
//! Keys. Table `headline`: rows `A+B, PROGRAM, MAPPING, WHAT`. Table `times`: rows `A+B/PROGRAM/MAPPING`; columns `progress_percent`, `spin_percent`,
//! `overhead_percent`, `queue_percent`, `asleep_percent`, `io_percent` (together all of the threads'
//! time), `utilisation_percent`. A figure for each pair, with the key `A-B`.

use super::mapping::measures::{Measure, TIMES, UTILISATION};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, Pair};
use super::mapping::sweep::{self, Runs};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::Context;
use consort_report::{Cell, Headline, Table};

/// Runs the study.
pub(super) fn run(context: &Context<'_>, file: &StudyFile) -> Result<StudyOutput, StudyError> {
    let runs = sweep::runs(context)?;
    Ok(runs.output(
        vec![headline(&runs)?, table(file, &runs)?],
        PAIRS
            .iter()
            .map(|pair| view(&runs, *pair).parts(file, &pair.join("-")))
            .collect::<Result<_, _>>()?,
        PAIRS.map(|pair| sentence(&runs, pair)).to_vec(),
    ))
}

const PAIRS: [Pair; 4] = [
    ["facesim", "streamcluster"],
    ["canneal", "fluidanimate"],
    ["streamcluster", "bodytrack"],
    ["bodytrack", "vips"],
];

fn view(runs: &Runs, pair: Pair) -> PairView<'_> {
    PairView {
        runs,
        pair,
        mappings: &MAPPINGS,
        measures: &TIMES,
    }
}

fn headline(runs: &Runs) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for measure in std::iter::once(UTILISATION).chain(TIMES) {
        for pair in PAIRS {
            for (place, program) in pair.iter().enumerate() {
                for mapping in MAPPINGS {
                    let (both, title) = (pair.join("+"), measure.title);
                    let row = format!("{both}, {program}, {mapping}, {title}");
                    let cell = runs.cell(pair, place, mapping, measure.value);
                    headline.add(&row, measure.unit_name(), cell)?;
                }
            }
        }
    }
    Ok(headline.into_table())
}

fn table(file: &StudyFile, runs: &Runs) -> Result<Table, StudyError> {
    let shown: Vec<Measure> = TIMES.into_iter().chain([UTILISATION]).collect();
    let mut rows = Vec::new();
    for pair in PAIRS {
        for (place, program) in pair.iter().enumerate() {
            for mapping in MAPPINGS {
                let cell = |m: &Measure| runs.cell(pair, place, mapping, m.value);
                let cells: Vec<Cell> = shown.iter().map(cell).collect();
                rows.push((format!("{}/{program}/{mapping}", pair.join("+")), cells));
            }
        }
    }
    file.table("times", rows)
}

fn sentence(runs: &Runs, pair: Pair) -> String {
    format!("{}. {}", pair.join(" with "), view(runs, pair).sentence())
}
