//! Tables and figures of the gaps.

use super::coschedules::OBJECTIVES;
use super::gaps::{PolicyGaps, figure, table};
use super::mappings::MappingGrid;
use super::notes;
use super::searched::PlacementSearches;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Figure, ReportTable};

/// Series that a figure of distributions leaves out: extremes that flatten the others.
const LEFT_OUT: [&str; 2] = ["worst placement", "worst mapping"];

fn shown(rows: &[PolicyGaps]) -> Vec<&PolicyGaps> {
    let is_shown = |row: &&PolicyGaps| !LEFT_OUT.contains(&row.policy.as_str());
    rows.iter().filter(is_shown).collect()
}

pub(super) fn throughput_table(all: &[PlacementSearches<'_>]) -> Result<ReportTable, StudyError> {
    let rows: Vec<PolicyGaps> = all.iter().flat_map(PlacementSearches::throughput).collect();
    let title = "Throughput missing to the best placement, over workloads";
    table("throughput", title, &rows)
}

pub(super) fn throughput_figure(
    searches: &PlacementSearches<'_>,
    runs: usize,
) -> Result<Figure, StudyError> {
    let key = format!("throughput-{}", searches.ground.key);
    let title = format!(
        "{}: throughput missing to the best placement",
        searches.ground.title
    );
    let rows = searches.throughput();
    figure(
        &key,
        &title,
        "Below 0 a policy is better than every placement.",
        runs,
        &shown(&rows),
    )
}

pub(super) fn pairing_table(rows: &[PolicyGaps]) -> Result<ReportTable, StudyError> {
    let title = "Sum of slowdowns over that of the best pairing, by number of threads";
    table("pairing", title, rows)
}

pub(super) fn fours_table(rows: &[PolicyGaps]) -> Result<ReportTable, StudyError> {
    let title = "Sum of slowdowns in groups of four over that of the best grouping";
    table("fours", title, rows)
}

pub(super) fn pairing_figure(rows: &[PolicyGaps]) -> Result<Figure, StudyError> {
    let largest = rows.last().map(|row| row.group.clone()).unwrap_or_default();
    let shown: Vec<&PolicyGaps> = rows.iter().filter(|row| row.group == largest).collect();
    let title = format!("{largest} threads in pairs: sum of slowdowns over the least");
    figure(
        "pairing",
        &title,
        "Pairs of the matching, and all pairings on average.",
        0,
        &shown,
    )
}

/// Adds the tables and the figure for a ground where one core is larger than the others.
pub(super) fn large(
    searches: &PlacementSearches<'_>,
    runs: usize,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let (speed, shared) = (searches.speed(), searches.shared());
    let title = "Speed until all are done missing to the best placement, over workloads";
    output.tables.push(table("speed", title, &speed)?);
    let title = "Speed until all are done missing to the best sharing by time, over workloads";
    output.tables.push(table("shared", title, &shared)?);
    let shown: Vec<&PolicyGaps> = shared.iter().collect();
    let title = "Speed until all are done missing to the best sharing of the large core by time";
    let text = "The best sharing has no costs of moves.";
    output
        .figures
        .push(figure("shared", title, text, runs, &shown)?);
    output.notes.push(notes::of_sharing(&speed, &shared));
    Ok(())
}

pub(super) fn mappings_table(rows: &[PolicyGaps]) -> Result<ReportTable, StudyError> {
    let title = "Throughput of pairs of programs missing to the best static mapping, over pairs";
    table("mappings", title, rows)
}

pub(super) fn mappings_figure(
    mapped: &MappingGrid,
    rows: &[PolicyGaps],
) -> Result<Figure, StudyError> {
    let title = "Core 2 Quad, pairs of programs: throughput missing to the best mapping";
    let text = "Below 0 a policy is better than every static mapping. Workloads are pairs.";
    figure("mappings", title, text, mapped.runs, &shown(rows))
}

pub(super) fn coschedules_table(rows: &[PolicyGaps]) -> Result<ReportTable, StudyError> {
    let title = "Rounds of co-schedulers against the best of all: energy-delay above the least, \
                 throughput missing to the most, over suites";
    table("coschedules", title, rows)
}

/// One figure per objective.
pub(super) fn coschedules_figures(rows: &[PolicyGaps]) -> Result<Vec<Figure>, StudyError> {
    let of = |(objective, _): &(&str, _)| {
        let shown: Vec<&PolicyGaps> = rows.iter().filter(|row| row.group == *objective).collect();
        let key = format!("coschedules-{objective}");
        let title = format!("Xeon E5320, small suites: {objective} against the best round");
        let text = "Every slot is simulated. Workloads are suites.";
        figure(&key, &title, text, 1, &shown)
    };
    OBJECTIVES.iter().map(of).collect()
}
