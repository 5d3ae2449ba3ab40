//! The results of `consort what-if`, as a page for a browser.

use super::{COLUMNS, WhatIf, sentences};
use anyhow::Result;
use consort_core::stats::ConfidenceInterval;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Cell, Figure, List, Plot, ReportColumn, ReportTable,
    figures_page,
};
use consort_experiment::{ContenderRow, MeanEstimate};

/// A measure of a policy: its key, its heading, its unit and where it is.
type PolicyMeasureColumn = (
    &'static str,
    &'static str,
    Option<&'static str>,
    fn(&ContenderRow) -> MeanEstimate,
);

const MEASURES: [PolicyMeasureColumn; 6] = [
    ("stp", "STP", None, |r| r.stp),
    ("speedup", "Speedup", None, |r| r.speedup),
    ("antt", "ANTT", None, |r| r.antt),
    ("unfairness", "Unfairness", None, |r| r.unfairness),
    ("makespan", "Makespan", Some("s"), |r| r.makespan_s),
    ("energy", "Energy", Some("J"), |r| r.energy_j),
];

pub(super) fn html(what_if: &WhatIf) -> Result<String> {
    let title = format!("{} on {}", what_if.command, what_if.comparison.machine);
    let stands = List::new(COLUMNS, &what_if.stands);
    let stands = stands.to_report_table("stands", "What stands for the recorded threads")?;
    let tables = [results(what_if)?, stands];
    let figures = [throughput(what_if)?];
    Ok(figures_page(
        &title,
        &sentences(what_if),
        &tables,
        &figures,
    )?)
}

fn results(what_if: &WhatIf) -> Result<ReportTable> {
    let columns = MEASURES.map(|(key, title, unit, _)| match unit {
        Some(unit) => ReportColumn::with_unit(key, title, unit),
        None => ReportColumn::plain(key, title),
    });
    let mut table = ReportTable::new("policies", "Policies", columns.into())?;
    let n = what_if.comparison.runs;
    for row in &what_if.comparison.results {
        let cells = MEASURES.map(|(_, _, _, of)| interval(of(row), n));
        table.push(&row.policy, cells.into())?;
    }
    Ok(table)
}

fn interval(measure: MeanEstimate, n: usize) -> Cell {
    let MeanEstimate { mean, ci95 } = measure;
    ConfidenceInterval { mean, ci95, n }.into()
}

fn throughput(what_if: &WhatIf) -> Result<Figure> {
    let rows = &what_if.comparison.results;
    let bar = |row: &ContenderRow| {
        Some(Bar {
            value: row.stp.mean,
            ci95: row.stp.ci95,
        })
    };
    let plot = Plot::Bars(BarChart {
        category: "policy".to_owned(),
        value: Axis::linear("STP", None),
        baseline: 0.0,
        groups: rows.iter().map(|row| row.policy.clone()).collect(),
        series: vec![BarSeries {
            name: "STP".to_owned(),
            bars: rows.iter().map(bar).collect(),
        }],
    });
    let runs = what_if.comparison.runs;
    Ok(Figure::new(
        "stp",
        "System throughput by policy",
        "",
        runs,
        plot,
    )?)
}
