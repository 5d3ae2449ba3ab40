//! H4: speedup over the gang.
//!
//! Keys. Table `headline`: rows `POLICY over gang, co-scheduled programs` and `POLICY over gang, whole
//! suite`. AloneMeasures `speedup`: rows are schedulers with their options; columns `coscheduled` (geometric
//! mean over the programs that share their slot), `suite` (over all), `mean` (arithmetic mean over
//! all). Table `runs`: rows are schedulers; columns `stp`, `mean_time` (ANTT), `makespan`, each over
//! the gang's, of whole runs from the first sample on. Table `programs`: rows are
//! programs, columns `speedup_1` to `speedup_7` (the schedulers by name in the titles). Table
//! `readings`: rows `fair-mis/READING` and `fair-com/READING`; columns `suite`, `coscheduled`,
//! `overall`, `quanta`. Figures `speedup`, `programs`.

use super::coscheduling::entrants::{
    BOUND, ENTRANTS, FAIR, MAIN, ORACLE, READING_NAMES, READINGS, RoundScheduler, SOURCES,
};
use super::coscheduling::figures::GROUPS;
use super::coscheduling::grid::CoscheduleGrid;
use super::coscheduling::notes;
use super::coscheduling::views::{MeanScope, local_speedup, name};
use super::coscheduling::whole::CoschedulingRuns;
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput, TemplateWords};
use consort_data::{Cell, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;

/// Runs the study.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let grid = CoscheduleGrid::get_or_run(context)?;
    let whole = CoschedulingRuns::make(&grid, context)?;
    let speedup = |entrant, id| grid.ratio(entrant, id, local_speedup);
    let mut all = vec![summary(&grid), held_against_oracle(&grid)];
    all.extend([whole_note(&whole), readings_note(&grid)]);
    all.extend(notes::below_one(&grid));
    Ok(StudyOutput {
        tables: vec![
            headline(&grid)?,
            policies(file, &grid)?,
            whole_runs(file, &whole)?,
            file.fill_table("programs", grid.rows(&MAIN, speedup))?,
            readings(file, &grid)?,
        ],
        figures: vec![
            grid.by_group((file, "speedup"), |entrant, group| {
                over(&grid, entrant, group)
            })?,
            grid.by_program((file, "programs"), MAIN, speedup)?,
        ],
        notes: all,
        runs: grid.runs(),
    })
}

fn over(grid: &CoscheduleGrid, entrant: usize, over: MeanScope) -> Cell {
    grid.ratio_over(entrant, over, local_speedup)
}

fn headline(grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for (group, _, which) in GROUPS {
        for entrant in SOURCES.chain([BOUND]) {
            let row = format!("{} over gang, {group}", name(entrant));
            headline.add_gain(&row, over(grid, entrant, which))?;
        }
    }
    Ok(headline.into_table())
}

fn policies(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let row = |(entrant, who): (usize, &RoundScheduler)| {
        let cells = vec![
            over(grid, entrant, MeanScope::Sharing),
            over(grid, entrant, MeanScope::All),
            grid.mean_over(entrant, MeanScope::All, local_speedup),
        ];
        (who.name, cells)
    };
    file.fill_table("speedup", ENTRANTS.iter().enumerate().map(row))
}

fn whole_runs(file: &StudyFile, whole: &CoschedulingRuns) -> Result<ReportTable, StudyError> {
    let row = |(place, entrant): (usize, usize)| {
        let cells = vec![
            whole.over_gang(place + 1, |ended| ended.stp),
            whole.over_gang(place + 1, |ended| ended.antt),
            whole.over_gang(place + 1, |ended| ended.makespan_s),
        ];
        (name(entrant), cells)
    };
    let words = TemplateWords::from([("alone_s".to_owned(), whole.alone_s.to_string())]);
    file.fill_table_with_words("runs", &words, MAIN.enumerate().map(row))
}

fn readings(file: &StudyFile, grid: &CoscheduleGrid) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for readings in READINGS {
        for (reading, entrant) in READING_NAMES.into_iter().zip(readings) {
            let cells = vec![
                over(grid, entrant, MeanScope::All),
                over(grid, entrant, MeanScope::Sharing),
                grid.outcomes(entrant, |o| o.overall),
                grid.outcomes(entrant, |o| o.quanta as f64),
            ];
            rows.push((format!("{}/{reading}", name(readings[0])), cells));
        }
    }
    file.fill_table("readings", rows)
}

fn summary(grid: &CoscheduleGrid) -> String {
    let of = |entrant: usize| {
        let text = |which| over(grid, entrant, which).text();
        format!(
            "{} {} ({})",
            name(entrant),
            text(MeanScope::All),
            text(MeanScope::Sharing)
        )
    };
    let all: Vec<String> = MAIN.map(of).collect();
    format!(
        "Speedup of the whole suite over the gang, and of the programs that share: {}. Time that \
         finding a round takes is not in it: H2 says how many quanta that is.",
        all.join(", ")
    )
}

/// Sentence on the part of the oracle's gain that the fair schedulers reach.
fn held_against_oracle(grid: &CoscheduleGrid) -> String {
    let gain = |entrant| {
        over(grid, entrant, MeanScope::All)
            .value()
            .map(|ratio| ratio - 1.0)
    };
    let of = |entrant: usize| {
        let share = gain(entrant)
            .zip(gain(ORACLE))
            .map(|(own, oracle)| 100.0 * own / oracle);
        let share = share.map_or_else(
            || "nothing".to_owned(),
            |share| format!("{share:.0} percent"),
        );
        format!("{} {share}", name(entrant))
    };
    format!(
        "Of what oracle-coschedule gains for the whole suite the fair schedulers reach: {}. It shares \
         no slot with programs that scale nearly linearly and lets nobody be worse off in \
         energy-delay than in the gang, as they do; members=all is the best without either, a bound.",
        FAIR.map(of).join(", ")
    )
}

fn whole_note(whole: &CoschedulingRuns) -> String {
    let of = |(place, entrant): (usize, usize)| {
        let stp = whole.over_gang(place + 1, |ended| ended.stp).text();
        format!("{} {stp}", name(entrant))
    };
    let all: Vec<String> = MAIN.enumerate().map(of).collect();
    format!(
        "Throughput of whole runs over the gang's ({} runs of {} s of work per program): {}. Samples \
         and trials are in it, in which one program or one slot runs while all others wait, and the \
         policies decide by counters with read noise that take turns.",
        whole.runs,
        whole.alone_s,
        all.join(", ")
    )
}

/// Sentence on the differences of the readings.
fn readings_note(grid: &CoscheduleGrid) -> String {
    let group = |readings: [usize; 4]| {
        let of = |(reading, entrant): (&str, usize)| {
            format!("{reading} {}", grid.outcomes(entrant, |o| o.overall).text())
        };
        let texts: Vec<String> = READING_NAMES.into_iter().zip(readings).map(of).collect();
        format!("{}: {}", name(readings[0]), texts.join(", "))
    };
    format!(
        "Overall energy-delay over the gang's by reading: {}. As printed the secondary condition \
         refuses a core where the whole chip gains nearly as much as a linear taker alone would, and \
         lets gains near nothing pass, which the overall energy-delay then judges. Reversed it asks \
         that the chip's instructions rise by nearly 1/N, while the giver loses by the same move. Where \
         the first three give the same, the condition decided about no transfer. slot: a newcomer \
         stays where every member is better off than without it, not only than in the gang.",
        READINGS.map(group).join("; "),
    )
}
