//! The figures of a study, from its frames.

use super::StudyError;
use super::file::{CellSpec, FigureKind, FigureSpec};
use super::frames::{Frames, LoopTurn};
use super::template::fill;
use crate::frame::Case;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Cell, Figure, FigurePoint, HeatMap, LineChart, Plot,
    PointSeries, ScatterChart,
};

/// A series: its name and a cell for each group.
type CellSeries = (String, Vec<Cell>);

/// One figure.
pub(super) fn figure(frames: &Frames, spec: &FigureSpec) -> Result<Figure, StudyError> {
    let runs = frames.experiment_runs(spec.from.as_deref());
    let plot = match spec.kind {
        FigureKind::Bars => Plot::Bars(bars(frames, spec)),
        FigureKind::Sorted => Plot::Lines(line_chart(spec, sorted_series(frames, spec))),
        FigureKind::Lines => Plot::Lines(line_chart(spec, series_over_label(frames, spec))),
        FigureKind::Scatter => Plot::Scatter(scatter(frames, spec)),
        FigureKind::Heat => Plot::HeatMap(heat_map(frames, spec)),
        FigureKind::Runs => Plot::Scatter(run_scatter(frames, spec)),
    };
    // Where every run is a point, none is a mean.
    let runs = if spec.kind == FigureKind::Runs {
        1
    } else {
        runs
    };
    Ok(Figure::new(&spec.key, &spec.title, &spec.text, runs, plot)?)
}

/// A bar as high as a cell's value.
fn bar(cell: &Cell) -> Option<Bar> {
    Some(Bar {
        value: cell.value()?,
        ci95: cell.ci95(),
    })
}

/// Every series of the figure, for each of its words.
fn series(frames: &Frames, spec: &FigureSpec) -> Vec<CellSeries> {
    let turns = frames.turns(spec.looped());
    let words = frames.loop_words(spec.looped()).len();
    let one = |(n, cell): (usize, &CellSpec)| {
        let cells = turns.iter().map(|group| frames.cell(cell, &group[n]));
        let name = cell.name.as_deref().unwrap_or("{name}");
        let words = turns.first().map(|group| &group[n].words);
        let name = words.map_or_else(String::new, |words| fill(name, words));
        (name, cells.collect())
    };
    let each = (0..words).flat_map(|n| spec.series.iter().map(move |cell| (n, cell)));
    each.map(one).collect()
}

fn group_keys(frames: &Frames, spec: &FigureSpec) -> Vec<String> {
    let groups = frames.groups(spec.looped());
    groups.into_iter().map(|turn| turn.group.key).collect()
}

/// A bar, without its interval where the figure leaves them out.
fn shown_bar(spec: &FigureSpec, cell: &Cell) -> Option<Bar> {
    let bar = bar(cell)?;
    let ci95 = bar.ci95.filter(|_| !spec.exact);
    Some(Bar { ci95, ..bar })
}

/// Every group as a series, with a bar for each of the words.
fn swapped_series(frames: &Frames, spec: &FigureSpec) -> (Vec<String>, Vec<CellSeries>) {
    let words = series(frames, spec);
    let name = |n: usize, turn: &LoopTurn| {
        let name = spec.series.first().and_then(|cell| cell.name.clone());
        let cells = words.iter().map(|(_, cells)| cells[n].clone());
        (
            name.unwrap_or_else(|| turn.group.key.clone()),
            cells.collect(),
        )
    };
    let groups = frames.groups(spec.looped());
    let all = groups.iter().enumerate().map(|(n, turn)| name(n, turn));
    let each = frames.loop_words(spec.looped()).into_iter();
    let names = each.map(|words| words.get("name").cloned().unwrap_or_default());
    (names.collect(), all.collect())
}

/// A series without any value is left out.
fn bars(frames: &Frames, spec: &FigureSpec) -> BarChart {
    let (groups, all) = match spec.swap {
        true => swapped_series(frames, spec),
        false => (group_keys(frames, spec), series(frames, spec)),
    };
    let all = all.into_iter();
    let some = all.filter(|(_, cells)| cells.iter().any(|cell| cell.value().is_some()));
    bars_from_series(spec, groups, some)
}

/// Bars with the texts of a figure.
pub(super) fn bars_from_series(
    spec: &FigureSpec,
    groups: Vec<String>,
    series: impl IntoIterator<Item = CellSeries>,
) -> BarChart {
    let one = |(name, cells): CellSeries| BarSeries {
        name,
        bars: cells.iter().map(|cell| shown_bar(spec, cell)).collect(),
    };
    BarChart {
        category: spec.category.clone(),
        value: Axis::linear(&spec.value, spec.unit.as_deref()),
        baseline: spec.baseline,
        groups,
        series: series.into_iter().map(one).collect(),
    }
}

fn heat_map(frames: &Frames, spec: &FigureSpec) -> HeatMap {
    let all = series(frames, spec);
    let factor = spec.digits.map(|digits| 10f64.powi(digits as i32));
    let rounded = |value: f64| factor.map_or(value, |by| (by * value).round() / by);
    let row = |(n, key): (usize, String)| {
        let cells = all.iter().map(|(_, cells)| cells[n].value().map(rounded));
        (key, cells.collect())
    };
    let rows = group_keys(frames, spec).into_iter().enumerate().map(row);
    let columns = all.iter().map(|(name, _)| name.clone());
    heat_map_from_rows(spec, columns.collect(), rows.collect())
}

/// A matrix with the texts of a figure.
pub(super) fn heat_map_from_rows(
    spec: &FigureSpec,
    columns: Vec<String>,
    rows: Vec<(String, Vec<Option<f64>>)>,
) -> HeatMap {
    let (rows, cells) = rows.into_iter().unzip();
    HeatMap {
        x: spec.category.clone(),
        y: spec.groups_title.clone(),
        value: Axis::linear(&spec.value, spec.unit.as_deref()),
        columns,
        rows,
        cells,
    }
}

fn axis(spec: &FigureSpec, title: &str, unit: Option<&str>) -> Axis {
    match spec.log {
        true => Axis::log(title, unit),
        false => Axis::linear(title, unit),
    }
}

fn line_chart(spec: &FigureSpec, series: Vec<PointSeries>) -> LineChart {
    LineChart {
        x: axis(spec, &spec.category, spec.category_unit.as_deref()),
        y: axis(spec, &spec.value, spec.unit.as_deref()),
        series,
    }
}

/// The values of each series, the smallest first.
fn sorted_series(frames: &Frames, spec: &FigureSpec) -> Vec<PointSeries> {
    let points = |(name, cells): CellSeries| {
        let mut values: Vec<f64> = cells.iter().filter_map(Cell::value).collect();
        values.sort_by(f64::total_cmp);
        let numbered = values.into_iter().enumerate();
        PointSeries {
            name,
            points: numbered
                .map(|(n, y)| FigurePoint::exact((n + 1) as f64, y))
                .collect(),
        }
    };
    series(frames, spec).into_iter().map(points).collect()
}

/// Points over the number that a label of each case is.
fn series_over_label(frames: &Frames, spec: &FigureSpec) -> Vec<PointSeries> {
    let label = spec.x.as_deref().unwrap_or("case");
    let turns = frames.turns(spec.looped());
    let words = frames.loop_words(spec.looped());
    let mut all = Vec::new();
    for n in 0..words.len() {
        for cell in &spec.series {
            for value in line_values(frames, spec, &turns) {
                let here = turns.iter().map(|group| &group[n]);
                let here = here.filter(|turn| line_value(frames, spec, turn) == value);
                let points = here.filter_map(|turn| point(frames, spec, cell, (turn, label)));
                let name = cell.name.clone().unwrap_or_else(|| match value.is_empty() {
                    true => words[n].get("name").cloned().unwrap_or_default(),
                    false => value.clone(),
                });
                all.push(PointSeries {
                    name,
                    points: points.collect(),
                });
            }
        }
    }
    all
}

/// The values of the label that makes lines, in their order; nothing where none does.
fn line_values(frames: &Frames, spec: &FigureSpec, turns: &[Vec<LoopTurn>]) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for turn in turns.iter().filter_map(|group| group.first()) {
        let value = line_value(frames, spec, turn);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The first case of a turn.
fn first_case<'a>(frames: &'a Frames, turn: &LoopTurn) -> Option<&'a Case> {
    let frame = frames.get(&turn.from)?;
    frame.cases.get(*turn.group.cases.first()?)
}

fn line_value(frames: &Frames, spec: &FigureSpec, turn: &LoopTurn) -> String {
    let label = spec.line_by.as_deref();
    let value = label.and_then(|label| Some(first_case(frames, turn)?.value(label).to_owned()));
    value.unwrap_or_default()
}

fn point(
    frames: &Frames,
    spec: &FigureSpec,
    cell: &CellSpec,
    (turn, label): (&LoopTurn, &str),
) -> Option<FigurePoint> {
    let x = first_case(frames, turn)?.value(label).parse().ok()?;
    let cell = frames.cell(cell, turn);
    let y = cell.value()?;
    match spec.exact {
        true => (y > 0.0).then(|| FigurePoint::exact(x, y)),
        false => Some(FigurePoint {
            x,
            y,
            ci95: cell.ci95(),
        }),
    }
}

/// A point for each run of the first case, by the number of the run from 1.
fn run_scatter(frames: &Frames, spec: &FigureSpec) -> ScatterChart {
    let turns = frames.turns(spec.looped());
    let points = |turn: &LoopTurn| {
        let values = spec
            .series
            .first()
            .map(|cell| frames.first_case_runs(cell, turn));
        let numbered = values.unwrap_or_default().into_iter().enumerate();
        PointSeries {
            name: turn.words.get("name").cloned().unwrap_or_default(),
            points: numbered
                .map(|(n, y)| FigurePoint::exact((n + 1) as f64, y))
                .collect(),
        }
    };
    ScatterChart {
        x: axis(spec, &spec.category, spec.category_unit.as_deref()),
        y: axis(spec, &spec.value, spec.unit.as_deref()),
        series: turns.iter().flatten().map(points).collect(),
        diagonal: false,
    }
}

/// True if a figure that may be left out has a value.
pub(super) fn has_values(frames: &Frames, spec: &FigureSpec) -> bool {
    let all = series(frames, spec);
    all.iter()
        .any(|(_, cells)| cells.iter().any(|cell| cell.value().is_some()))
}

fn scatter(frames: &Frames, spec: &FigureSpec) -> ScatterChart {
    let across = spec.across.clone().unwrap_or_default();
    let turns = frames.turns(spec.looped());
    let point = |turn: &LoopTurn, cell: &Cell| {
        let x = frames.cell(&across, turn).value()?;
        let (y, ci95) = (cell.value()?, cell.ci95());
        Some(FigurePoint { x, y, ci95 })
    };
    let points = |(name, cells): CellSeries| {
        let both = turns.iter().filter_map(|group| group.first()).zip(&cells);
        PointSeries {
            name,
            points: both.filter_map(|(turn, cell)| point(turn, cell)).collect(),
        }
    };
    ScatterChart {
        x: axis(spec, &spec.category, spec.category_unit.as_deref()),
        y: axis(spec, &spec.value, spec.unit.as_deref()),
        series: series(frames, spec).into_iter().map(points).collect(),
        diagonal: true,
    }
}
