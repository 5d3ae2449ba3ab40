//! X5: gaps between policies and exact search.
//!
//! Five searches. [`pairing`]: the matching of `symbiotic` against all pairings, by its own model
//! and by the measured slowdowns; [`fours`]: its search for groups of four, where no exact method
//! is fast. [`searched`]: policies run on small machines ([`ground`]) against every placement
//! ([`placements`], up to symmetry), each run for itself ([`statics`]). [`share`]: for one large
//! core also the best schedule that shares it by time. [`mappings`]: pairs of multithreaded
//! programs under policies and under every static mapping. [`coschedules`]: rounds of co-schedulers
//! against the best of all rounds, every slot of which is simulated ([`slots`]).
//!
//! Keys. Tables `throughput` (rows `GROUND/POLICY`, for example `bulldozer/linux`; grounds are
//! `bulldozer`, `power8`, `core2`, `acmp`; beside the policies `any placement` and `worst
//! placement`), `pairing` (rows `THREADS/own model`, `THREADS/truth`, `THREADS/any pairing`),
//! `fours` (rows `THREADS in fours/search`, `THREADS in fours/any grouping`),
//! `speed` and `shared` (rows `acmp/POLICY`, in `shared` also `acmp/best placement`), `mappings`
//! (rows `core2-pairs/POLICY`, beside the policies `any mapping` and `worst mapping`),
//! `coschedules` (rows `energy-delay/SCHEDULER` and `throughput/SCHEDULER`). All have the
//! columns `gap_mean_percent`, `gap_worst_percent`, `gap_least_percent`, `near_percent`,
//! `workloads`. Figures `throughput-GROUND`, `pairing`, `shared`, `mappings`,
//! `coschedules-energy-delay`, `coschedules-throughput`.
//!
//! Usage: [`run`]; tables and figures are made in [`views`] from rows of [`gaps`]. Pitfall:
//! placements and mappings are static; a policy that moves threads may be better than all of them.

mod chosen;
mod coschedules;
mod fours;
mod gaps;
mod ground;
mod mappings;
mod notes;
mod pairing;
mod placements;
mod searched;
mod share;
mod slots;
mod statics;
mod views;

use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_experiment::ExperimentContext;
use ground::{GROUNDS, LARGE};
use searched::{PlacementSearches, search};

/// Runs of each placement and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [1, 3];

/// Runs all searches.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    _: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let mut output = StudyOutput {
        runs: context.by_scale(RUNS[0], RUNS[1]),
        ..StudyOutput::default()
    };
    placed(context, &mut output)?;
    grouped(context, &mut output)?;
    mapped(context, &mut output)?;
    coscheduled(context, &mut output)?;
    output.tables.insert(0, gaps::headline(&output.tables)?);
    Ok(output)
}

/// Policies against placements.
fn placed(context: &ExperimentContext<'_>, output: &mut StudyOutput) -> Result<(), StudyError> {
    let runs = output.runs;
    let all = GROUNDS.iter().map(|ground| search(ground, runs, context));
    let all: Vec<PlacementSearches<'_>> = all.collect::<Result<_, _>>()?;
    output.notes.extend(notes::of_runs(&all));
    output.tables.push(views::throughput_table(&all)?);
    for searches in &all {
        output
            .figures
            .push(views::throughput_figure(searches, runs)?);
    }
    for searches in all.iter().filter(|one| one.ground.key == LARGE) {
        views::large(searches, runs, output)?;
    }
    Ok(())
}

/// Searches for groups of threads, without runs.
fn grouped(context: &ExperimentContext<'_>, output: &mut StudyOutput) -> Result<(), StudyError> {
    let (pairing, fours) = (pairing::rows(context)?, fours::rows(context)?);
    output.notes.push(notes::of_pairing(&pairing));
    output.notes.push(notes::of_fours(&fours));
    output.tables.push(views::pairing_table(&pairing)?);
    output.tables.push(views::fours_table(&fours)?);
    output.figures.push(views::pairing_figure(&pairing)?);
    Ok(())
}

/// Policies against mappings.
fn mapped(context: &ExperimentContext<'_>, output: &mut StudyOutput) -> Result<(), StudyError> {
    let mapped = mappings::search(context)?;
    let rows = mapped.rows();
    output.notes.push(notes::of_mappings(&mapped, &rows));
    output.tables.push(views::mappings_table(&rows)?);
    output.figures.push(views::mappings_figure(&mapped, &rows)?);
    Ok(())
}

/// Co-schedulers against all rounds.
fn coscheduled(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let coschedules = coschedules::search(context)?;
    let rows = coschedules.rows();
    output
        .notes
        .push(notes::of_coschedules(&coschedules, &rows));
    output.tables.push(views::coschedules_table(&rows)?);
    output.figures.extend(views::coschedules_figures(&rows)?);
    Ok(())
}
