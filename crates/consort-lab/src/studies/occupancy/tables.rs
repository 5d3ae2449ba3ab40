//! The tables, whose keys the parent module documents.

use super::classes::Class;
use super::runs::Outcome;
use super::{AGGREGATE, LINUX, Measured};
use crate::experiment::Counters;
use crate::report::{Cell, Column, Table};
use crate::study::StudyError;
use consort_core::stats::{Interval, RatioInterval, quantile, sample_standard_deviation};
use consort_sim::contention::Stack;

pub(super) fn tables(measured: &[Measured<'_>]) -> Result<Vec<Table>, StudyError> {
    let tables = [policies, spread, classes, units];
    tables.iter().map(|table| table(measured)).collect()
}

fn policies(measured: &[Measured<'_>]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::plain("speedup_over_linux", "Speedup over linux"),
        Column::plain("speedup_over_aggregate", "Speedup over aggregate"),
        Column::plain("makespan_speedup_over_linux", "Makespan speedup over linux"),
        Column::plain("stp", "STP"),
        Column::plain("antt", "ANTT"),
        Column::plain("unfairness", "Unfairness"),
        Column::with_unit("makespan_s", "Makespan", "s"),
        Column::plain("migrations", "Migrations"),
    ];
    let title = "Equal work, again and again: throughput and time under each policy";
    by_policy("policies", title, columns, measured, |m, policy| {
        let speedup = |over| ratio(m, policy, over, |o| o.result.stp);
        let mean = |value: fn(&Outcome) -> f64| interval(&m.over(policy, value));
        vec![
            speedup(LINUX),
            speedup(AGGREGATE),
            ratio(m, LINUX, policy, |o| o.result.makespan_s),
            mean(|o| o.result.stp),
            mean(|o| o.result.antt),
            mean(|o| o.result.unfairness),
            mean(|o| o.result.makespan_s),
            mean(|o| o.result.migrations as f64),
        ]
    })
}

fn spread(measured: &[Measured<'_>]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("makespan_min_s", "Shortest makespan", "s"),
        Column::with_unit("makespan_max_s", "Longest makespan", "s"),
        Column::with_unit("makespan_sd_s", "Makespan's standard deviation", "s"),
        Column::plain("stp_min", "Lowest STP"),
        Column::plain("stp_max", "Highest STP"),
        Column::plain("stp_sd", "STP's standard deviation"),
    ];
    let title = "Equal work: spread over the runs";
    by_policy("spread", title, columns, measured, |m, policy| {
        let makespans = m.over(policy, |o| o.result.makespan_s);
        let stps = m.over(policy, |o| o.result.stp);
        [makespans, stps].iter().flat_map(|v| extent(v)).collect()
    })
}

fn units(measured: &[Measured<'_>]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("fpu_mean_percent", "FPU pipes in use, all cores", "%"),
        Column::with_unit("fpu_busiest_percent", "On the busiest core", "%"),
        Column::with_unit("fpu_idlest_percent", "On the idlest core", "%"),
    ];
    let title = "Equal work: use of the floating-point units";
    by_policy("units", title, columns, measured, |m, policy| {
        let mean = |value: fn(&Outcome) -> f64| interval(&m.over(policy, value));
        vec![
            mean(|o| 100.0 * o.fpu.mean),
            mean(|o| 100.0 * o.fpu.busiest),
            mean(|o| 100.0 * o.fpu.idlest),
        ]
    })
}

pub(super) fn by_policy(
    key: &str,
    title: &str,
    columns: Vec<Column>,
    measured: &[Measured<'_>],
    cells: impl Fn(&Measured<'_>, usize) -> Vec<Cell>,
) -> Result<Table, StudyError> {
    let mut table = Table::new(key, title, columns)?;
    for m in measured {
        for policy in m.policies() {
            table.push(&m.row(policy), cells(m, policy))?;
        }
    }
    Ok(table)
}

fn classes(measured: &[Measured<'_>]) -> Result<Table, StudyError> {
    let title = "Equal work: what each class misses and where its cycles go";
    let mut table = Table::new("classes", title, class_columns())?;
    for m in measured {
        for policy in m.policies() {
            for (name, programs) in m.case.classes() {
                let class = Class {
                    measured: m,
                    policy,
                    programs,
                };
                table.push(&format!("{}/{name}", m.row(policy)), class_cells(&class))?;
            }
        }
    }
    Ok(table)
}

fn class_columns() -> Vec<Column> {
    let mut columns = vec![
        Column::plain("slowdown", "Slowdown"),
        Column::plain("l2_mpki", "L2 misses per 1000 instructions"),
        Column::with_unit("l2_change_percent", "L2 misses over linux", "%"),
        Column::with_unit("fpu_busy_percent", "Own operations in the FPU", "%"),
        Column::plain("cpi", "Cycles per instruction"),
    ];
    let causes = Stack::NAMES.iter();
    columns.extend(causes.map(|cause| Column::plain(&format!("cpi_{cause}"), cause)));
    columns
}

fn class_cells(class: &Class<'_>) -> Vec<Cell> {
    let mean = |value: fn(&Counters) -> f64| cell(class.mean(value));
    let mut cells = vec![
        cell(class.slowdown()),
        mean(Counters::l2_mpki),
        class.l2_change_percent(),
        mean(|c| 100.0 * c.fpu_busy()),
        mean(|c| c.cycles / c.instructions),
    ];
    let causes = 0..Stack::NAMES.len();
    cells.extend(causes.map(|cause| cell(class.mean(|c| c.stack()[cause]))));
    cells
}

/// One policy's values over another's, run by run.
pub(super) fn ratio(
    m: &Measured<'_>,
    policy: usize,
    over: usize,
    value: fn(&Outcome) -> f64,
) -> Cell {
    let pair = RatioInterval::paired(&m.over(policy, value), &m.over(over, value));
    pair.map_or_else(|| Cell::missing("not run here"), Cell::from)
}

pub(super) fn interval(values: &[f64]) -> Cell {
    cell(Interval::of(values))
}

pub(super) fn cell(interval: Option<Interval>) -> Cell {
    interval.map_or_else(|| Cell::missing("no runs"), Cell::from)
}

/// Smallest, largest, standard deviation.
pub(super) fn extent(values: &[f64]) -> [Cell; 3] {
    let ends = [0.0, 1.0].map(|q| quantile(values, q));
    let all = [ends[0], ends[1], sample_standard_deviation(values)];
    all.map(|value| value.map_or_else(|| Cell::missing("too few runs"), Cell::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_extent_is_ends_and_deviation() {
        let cells = extent(&[3.0, 1.0, 2.0]).map(|c| c.value());
        assert_eq!(cells, [Some(1.0), Some(3.0), Some(1.0)]);
        assert_eq!(extent(&[1.0])[2].value(), None);
    }
}
