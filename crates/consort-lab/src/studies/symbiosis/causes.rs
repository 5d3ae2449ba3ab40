//! What cycles go to under each policy, over all programs of a run.

use super::cells::known;
use super::grid::{Grid, Outcome, POLICIES};
use crate::report::{Cell, Column, Table};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_sim::contention::Stack;

/// Causes that are named for a change.
const NAMED: usize = 3;
/// The cause of cycles in which a thread was on a PU without progress.
const MOVES: &str = "moves";

/// Table `causes`: rows `CORES/POLICY`; columns `cpi`, `cpi_CAUSE` for each cause of cycles,
/// `cpi_moves` (switches and moves), `migrations_hz` (per thread),
/// `away_percent` (of its time that a thread is not on the node of its memory).
pub(in crate::studies) fn table(grid: &Grid) -> Result<Table, StudyError> {
    let title = "Where the cycles of all programs go: cycles per instruction by cause";
    let mut table = Table::new("causes", title, columns())?;
    for (key, group) in grid.groups() {
        for (policy, name) in POLICIES.iter().enumerate() {
            table.push(&format!("{key}/{name}"), cells(grid, &group, policy))?;
        }
    }
    Ok(table)
}

/// How cycles per instruction change from one policy to another, over all workloads.
pub(in crate::studies) fn change(grid: &Grid, from: usize, to: usize) -> Option<String> {
    let all: Vec<usize> = (0..grid.mixes.len()).collect();
    let of = |value: &dyn Fn(&Outcome) -> f64| {
        let both = (over(grid, &all, from, value)?, over(grid, &all, to, value)?);
        Some(both)
    };
    let ((before, after), moved) = (of(&cpi)?, of(&|o| o.migration_hz)?);
    let away = of(&|o| 100.0 * o.away)?;
    let named: Vec<String> = changes(grid, &all, from, to)?
        .iter()
        .take(NAMED)
        .map(|(cause, change)| format!("{cause} {change:+.3}"))
        .collect();
    Some(format!(
        "From {} to {} the cycles per instruction of all programs together go from {before:.3} to \
         {after:.3}, by cause mostly {}; a thread comes onto another PU {:.2} and {:.2} times a second and \
         is away from the node of its memory for {:.0} and {:.0} % of its time.",
        POLICIES[from],
        POLICIES[to],
        named.join(", "),
        moved.0,
        moved.1,
        away.0,
        away.1,
    ))
}

fn columns() -> Vec<Column> {
    let mut columns = vec![Column::plain("cpi", "Cycles per instruction")];
    let causes = Stack::NAMES.iter().chain([&MOVES]);
    columns.extend(causes.map(|cause| Column::plain(&format!("cpi_{cause}"), cause)));
    let migrations = Column::with_unit("migrations_hz", "Migrations of a thread", "1/s");
    columns.push(migrations);
    columns.push(Column::with_unit(
        "away_percent",
        "Away from its memory",
        "% of time",
    ));
    columns
}

fn cells(grid: &Grid, group: &[usize], policy: usize) -> Vec<Cell> {
    let mean = |value: &dyn Fn(&Outcome) -> f64| known(over(grid, group, policy, value), "no runs");
    let mut cells = vec![mean(&cpi)];
    let causes = 0..Stack::NAMES.len();
    cells.extend(causes.map(|cause| mean(&|o| o.counters.stack()[cause])));
    cells.push(mean(&moves));
    cells.push(mean(&|o| o.migration_hz));
    cells.push(mean(&|o| 100.0 * o.away));
    cells
}

pub(in crate::studies) fn cpi(outcome: &Outcome) -> f64 {
    outcome.counters.cycles / outcome.counters.instructions
}

/// Cycles on a PU that no cause of the stack explains are those of switches and moves.
fn moves(outcome: &Outcome) -> f64 {
    cpi(outcome) - outcome.counters.stack().iter().sum::<f64>()
}

fn over(
    grid: &Grid,
    group: &[usize],
    policy: usize,
    value: impl Fn(&Outcome) -> f64,
) -> Option<f64> {
    let outcomes = group.iter().flat_map(|&mix| grid.outcomes(mix, policy));
    mean(&outcomes.map(value).collect::<Vec<_>>())
}

/// Changes by cause, the largest first.
fn changes(
    grid: &Grid,
    group: &[usize],
    from: usize,
    to: usize,
) -> Option<Vec<(&'static str, f64)>> {
    let change = |value: &dyn Fn(&Outcome) -> f64| {
        Some(over(grid, group, to, value)? - over(grid, group, from, value)?)
    };
    let causes = Stack::NAMES.into_iter().enumerate();
    let causes = causes.map(|(i, name)| Some((name, change(&|o| o.counters.stack()[i])?)));
    let mut changes: Vec<(&str, f64)> = causes.collect::<Option<_>>()?;
    changes.push((MOVES, change(&moves)?));
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    Some(changes)
}
