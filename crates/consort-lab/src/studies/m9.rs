//! M9: where the time of threads goes, for four pairs of programs.
//!
//! Keys. Table `headline`: rows `A+B, PROGRAM, MAPPING, WHAT`. Table `times`: rows `A+B/PROGRAM/MAPPING`; columns `progress_percent`, `spin_percent`,
//! `overhead_percent`, `queue_percent`, `asleep_percent`, `io_percent` (together all of the threads'
//! time), `utilisation_percent`. A figure for each pair, with the key `A-B`.

use super::mapping::measures::{MappingMeasure, TIMES, UTILISATION};
use super::mapping::pair::PairView;
use super::mapping::plan::{MAPPINGS, ProgramNamePair};
use super::mapping::sweep::{self, PairRuns};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
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

const PAIRS: [ProgramNamePair; 4] = [
    ["facesim", "streamcluster"],
    ["canneal", "fluidanimate"],
    ["streamcluster", "bodytrack"],
    ["bodytrack", "vips"],
];

fn view(runs: &PairRuns, pair: ProgramNamePair) -> PairView<'_> {
    PairView {
        runs,
        pair,
        mappings: &MAPPINGS,
        measures: &TIMES,
    }
}

fn headline(runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
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

fn table(file: &StudyFile, runs: &PairRuns) -> Result<ReportTable, StudyError> {
    let shown: Vec<MappingMeasure> = TIMES.into_iter().chain([UTILISATION]).collect();
    let mut rows = Vec::new();
    for pair in PAIRS {
        for (place, program) in pair.iter().enumerate() {
            for mapping in MAPPINGS {
                let cell = |m: &MappingMeasure| runs.cell(pair, place, mapping, m.value);
                let cells: Vec<Cell> = shown.iter().map(cell).collect();
                rows.push((format!("{}/{program}/{mapping}", pair.join("+")), cells));
            }
        }
    }
    file.fill_table("times", rows)
}

fn sentence(runs: &PairRuns, pair: ProgramNamePair) -> String {
    format!("{}. {}", pair.join(" with "), view(runs, pair).sentence())
}
