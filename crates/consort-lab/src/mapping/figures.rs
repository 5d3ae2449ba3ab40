//! The answers as figures.

use super::analysis::Analysis;
use super::tables::{attributed_resources, gains};
use consort_core::mapping::analysis::SharedResource;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Figure, FigureError, FigurePoint, HeatMap, MAX_SERIES, Plot,
    PointSeries, ScatterChart,
};
use std::collections::BTreeSet;

/// Figures for which there are numbers.
pub(super) fn all_figures(analysis: &Analysis, runs: usize) -> Result<Vec<Figure>, FigureError> {
    let figures = [
        gain_figure(analysis, runs),
        attribution_figure(analysis, runs),
        l2mp_figure(analysis, runs),
    ];
    figures.into_iter().flatten().collect()
}

/// Speed of each workload under each mapping over that under the first.
fn gain_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let (first, others) = analysis.mappings.split_first()?;
    let gains = gains(analysis);
    let workloads: Vec<String> = gains.keys().cloned().collect();
    let value = |workload: &String, mapping: &String| gains[workload].get(mapping).copied();
    if others.is_empty() || workloads.is_empty() {
        return None;
    }
    let axis = Axis::linear(&format!("speed relative to {first}"), None);
    let plot = if others.len() <= MAX_SERIES {
        let series = |mapping: &String| BarSeries {
            name: mapping.clone(),
            bars: workloads
                .iter()
                .map(|w| value(w, mapping).map(Bar::exact))
                .collect(),
        };
        Plot::Bars(BarChart {
            category: "workload".to_owned(),
            value: axis,
            baseline: 1.0,
            groups: workloads.clone(),
            series: others.iter().map(series).collect(),
        })
    } else {
        let row = |m: &String| workloads.iter().map(|w| value(w, m)).collect();
        Plot::HeatMap(HeatMap {
            x: "workload".to_owned(),
            y: "mapping".to_owned(),
            value: axis,
            columns: workloads.clone(),
            rows: others.to_vec(),
            cells: others.iter().map(row).collect(),
        })
    };
    let title = "Mean speed of the programs under each mapping";
    let text = "Geometric mean over the programs of a workload; above 1 is faster.";
    Some(Figure::new("gain", title, text, runs, plot))
}

/// Parts by which the first mapping is slower than the fastest.
fn attribution_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let resources = attributed_resources(analysis);
    if resources.is_empty() || resources.len() >= MAX_SERIES {
        return None;
    }
    let found: Vec<_> = analysis.importance.values().collect();
    let group = |(program, co_runner): &(String, String)| match co_runner.as_str() {
        "" => program.clone(),
        co_runner => format!("{program} / {co_runner}"),
    };
    let of = |resource: &SharedResource| BarSeries {
        name: resource.name().to_owned(),
        bars: found
            .iter()
            .map(|i| i.parts.get(resource).map(|part| Bar::exact(100.0 * part)))
            .collect(),
    };
    let other = BarSeries {
        name: "other cycles".to_owned(),
        bars: found
            .iter()
            .map(|i| Some(Bar::exact(100.0 * i.unexplained_part())))
            .collect(),
    };
    let plot = Plot::Bars(BarChart {
        category: "program / co-runner".to_owned(),
        value: Axis::linear("part of the log ratio of times", Some("%")),
        baseline: 0.0,
        groups: analysis.importance.keys().map(group).collect(),
        series: resources.iter().map(of).chain([other]).collect(),
    });
    let base = analysis.mappings.first()?;
    let title = &format!("From each program's fastest mapping to {base}, by resource");
    let text = "Parts sum to the logarithm of the ratio of times; cores is utilisation. Below 0 \
                are parts that make the slower mapping less slow.";
    Some(Figure::new("attribution", title, text, runs, plot))
}

/// L2MP against executed cycles.
fn l2mp_figure(analysis: &Analysis, runs: usize) -> Option<Result<Figure, FigureError>> {
    let rows = &analysis.table.rows;
    let programs: BTreeSet<&str> = rows.iter().map(|row| row.program.as_str()).collect();
    let series = |program: &&str| {
        let mine = rows.iter().filter(|row| row.program == **program);
        let points = mine.filter_map(|row| {
            let l2mp = row.usage.memory?.l2mp_cycles()?;
            Some(FigurePoint::exact(l2mp / 1e9, row.usage.cycles? / 1e9))
        });
        PointSeries {
            name: (*program).to_owned(),
            points: points.collect(),
        }
    };
    let all = programs.iter().map(series);
    let series: Vec<PointSeries> = all.filter(|s| !s.points.is_empty()).collect();
    if series.is_empty() || series.len() > MAX_SERIES {
        return None;
    }
    let plot = Plot::Scatter(ScatterChart {
        x: Axis::linear("L2MP", Some("1e9 cycles")),
        y: Axis::linear("executed cycles", Some("1e9")),
        series,
        diagonal: false,
    });
    let title = "Executed cycles by L2MP";
    let text = "One point per mapping and co-runner; L2MP is L2 misses times memory latency.";
    Some(Figure::new("l2mp", title, text, runs, plot))
}
