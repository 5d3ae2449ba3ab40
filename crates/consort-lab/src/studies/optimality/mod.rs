//! How far policies are from what exact search finds.
//!
//! Three ways to look. [`pairing`]: the matching of `symbiotic` against all pairings, by its own
//! model and by the measured slowdowns; [`fours`]: its search for groups of four, where no exact
//! method is fast. [`searched`]: policies run on small machines ([`ground`])
//! against every placement ([`placements`], up to symmetry), each run for itself ([`statics`]).
//! [`share`]: for one large core also the best schedule that shares it by time.
//!
//! Pitfall: placements are static; a policy that moves threads may be better than all of them.

mod fours;
mod gaps;
mod ground;
mod notes;
mod pairing;
mod placements;
mod searched;
mod share;
mod statics;

use crate::context::Context;
use crate::report::{Figure, Table};
use crate::study::{StudyError, StudyOutput};
use gaps::{Row, figure, table};
use ground::{GROUNDS, LARGE};
use searched::{Searches, search};

/// Runs of each placement and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [1, 3];
/// Series that a figure of distributions leaves out: extremes that flatten the others.
const LEFT_OUT: &str = "worst placement";

/// All three.
pub(super) fn run(context: &Context<'_>) -> Result<StudyOutput, StudyError> {
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    let all = GROUNDS.iter().map(|ground| search(ground, runs, context));
    let all: Vec<Searches<'_>> = all.collect::<Result<_, _>>()?;
    let (pairing, fours) = (pairing::rows(context)?, fours::rows(context)?);
    let mut output = StudyOutput {
        notes: notes::of_runs(&all),
        runs,
        ..StudyOutput::default()
    };
    output.notes.insert(0, notes::of_pairing(&pairing));
    output.notes.insert(1, notes::of_fours(&fours));
    let tables = [
        throughput_table(&all),
        pairing_table(&pairing),
        fours_table(&fours),
    ];
    output.tables = tables.into_iter().collect::<Result<_, _>>()?;
    for searches in &all {
        output.figures.push(throughput_figure(searches, runs)?);
    }
    output.figures.push(pairing_figure(&pairing)?);
    for searches in all.iter().filter(|one| one.ground.key == LARGE) {
        large(searches, runs, &mut output)?;
    }
    Ok(output)
}

fn throughput_table(all: &[Searches<'_>]) -> Result<Table, StudyError> {
    let rows: Vec<Row> = all.iter().flat_map(Searches::throughput).collect();
    let title = "Throughput missing to the best placement, over workloads";
    table("throughput", title, &rows)
}

fn throughput_figure(searches: &Searches<'_>, runs: usize) -> Result<Figure, StudyError> {
    let key = format!("throughput-{}", searches.ground.key);
    let title = format!(
        "{}: throughput missing to the best placement",
        searches.ground.title
    );
    let rows = searches.throughput();
    let shown: Vec<&Row> = rows.iter().filter(|row| row.policy != LEFT_OUT).collect();
    figure(
        &key,
        &title,
        "Below 0 a policy is better than every placement.",
        runs,
        &shown,
    )
}

fn pairing_table(rows: &[Row]) -> Result<Table, StudyError> {
    let title = "Sum of slowdowns over that of the best pairing, by number of threads";
    table("pairing", title, rows)
}

fn fours_table(rows: &[Row]) -> Result<Table, StudyError> {
    let title = "Sum of slowdowns in groups of four over that of the best grouping";
    table("fours", title, rows)
}

fn pairing_figure(rows: &[Row]) -> Result<Figure, StudyError> {
    let largest = rows.last().map(|row| row.group.clone()).unwrap_or_default();
    let shown: Vec<&Row> = rows.iter().filter(|row| row.group == largest).collect();
    let title = format!("{largest} threads in pairs: sum of slowdowns over the least");
    figure(
        "pairing",
        &title,
        "Pairs of the matching, and all pairings on average.",
        0,
        &shown,
    )
}

/// What more there is to say where one core is larger than the others.
fn large(searches: &Searches<'_>, runs: usize, output: &mut StudyOutput) -> Result<(), StudyError> {
    let (speed, shared) = (searches.speed(), searches.shared());
    let title = "Speed until all are done missing to the best placement, over workloads";
    output.tables.push(table("speed", title, &speed)?);
    let title = "Speed until all are done missing to the best sharing by time, over workloads";
    output.tables.push(table("shared", title, &shared)?);
    let shown: Vec<&Row> = shared.iter().collect();
    let title = "Speed until all are done missing to the best sharing of the large core by time";
    let text = "The best sharing has no costs of moves.";
    output
        .figures
        .push(figure("shared", title, text, runs, &shown)?);
    output.notes.push(notes::of_sharing(&speed, &shared));
    Ok(())
}
