//! Tables of runs in which each program runs once, whose keys the parent module documents.

use super::classes::Class;
use super::runs::Outcome;
use super::tables::{by_policy, cell, extent, interval, ratio};
use super::{AGGREGATE, LENGTHS, LINUX, Measured};
use crate::context::Context;
use crate::report::{Column, Table};
use crate::study::StudyError;
use std::ops::Range;

const MAKESPAN: fn(&Outcome) -> f64 = |outcome| outcome.result.makespan_s;

pub(super) fn table(once: &[Measured<'_>]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("makespan_s", "Time until all have finished", "s"),
        Column::plain("speedup_over_linux", "Speedup over linux"),
        Column::plain("speedup_over_aggregate", "Speedup over aggregate"),
        Column::with_unit("makespan_min_s", "Shortest", "s"),
        Column::with_unit("makespan_max_s", "Longest", "s"),
        Column::with_unit("makespan_sd_s", "Standard deviation", "s"),
        Column::with_unit("l2_misses", "L2 misses", "10⁹"),
        Column::with_unit("l2_change_percent", "L2 misses over linux", "%"),
        Column::plain("migrations", "Migrations"),
    ];
    let title = "Each program once, all started together: time until all have finished";
    by_policy("once", title, columns, once, |m, policy| {
        let times = m.over(policy, MAKESPAN);
        let speedup = |over| ratio(m, over, policy, MAKESPAN);
        let all = Class::all(m, policy);
        let mut cells = vec![interval(&times), speedup(LINUX), speedup(AGGREGATE)];
        cells.extend(extent(&times));
        cells.push(cell(all.mean(|c| c.l2_misses / 1e9)));
        cells.push(all.l2_change_percent());
        cells.push(interval(&m.over(policy, |o| o.result.migrations as f64)));
        cells
    })
}

pub(super) fn ends(once: &[Measured<'_>]) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("end_s", "End of the last", "s"),
        Column::with_unit("l2_change_percent", "L2 misses over linux", "%"),
    ];
    let title = "Each program once: when the last of each class ends";
    let mut table = Table::new("ends", title, columns)?;
    for m in once {
        for policy in m.policies() {
            for (name, programs) in m.case.classes() {
                let end = interval(&m.over(policy, |o| end_s(o, &programs)));
                let class = Class {
                    measured: m,
                    policy,
                    programs,
                };
                let cells = vec![end, class.l2_change_percent()];
                table.push(&format!("{}/{name}", m.row(policy)), cells)?;
            }
        }
    }
    Ok(table)
}

/// When the last of these programs ends, s; all begin at 0.
pub(super) fn end_s(outcome: &Outcome, programs: &Range<usize>) -> f64 {
    let programs = outcome.result.programs[programs.clone()].iter();
    programs.map(|p| p.together_s).fold(0.0, f64::max)
}

pub(super) fn lengths(
    once: &[Measured<'_>],
    stretched: &[Vec<Measured<'_>>],
    context: &Context<'_>,
) -> Result<Table, StudyError> {
    let columns = vec![
        Column::with_unit("length_percent", "Length of programs", "% of theirs"),
        Column::with_unit("makespan_s", "Time until all have finished", "s"),
        Column::plain("speedup_over_linux", "Speedup over linux"),
    ];
    let title = "Each program once, at other lengths, and with other lengths of one class";
    let mut table = Table::new("lengths", title, columns)?;
    let all = std::iter::once(once).chain(stretched.iter().map(Vec::as_slice));
    for (length, measured) in LENGTHS.iter().zip(all) {
        let percent = 100.0 * length.share(context);
        for m in measured {
            for policy in m.policies() {
                let time = interval(&m.over(policy, MAKESPAN));
                let speedup = ratio(m, LINUX, policy, MAKESPAN);
                let row = format!("{}/{}", m.row(policy), length.name);
                table.push(&row, vec![percent.into(), time, speedup])?;
            }
        }
    }
    Ok(table)
}
