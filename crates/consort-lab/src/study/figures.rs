//! The figures of a study, from its frames.

use super::StudyError;
use super::file::{CellSpec, FigureKind, FigureSpec};
use super::frames::{Frames, Turn};
use super::template::fill;
use crate::frame::Case;
use consort_report::{
    Axis, Bar, BarSeries, Bars, Cell, Figure, HeatMap, Lines, Plot, Point, PointSeries, Scatter,
};

/// A series: its name and a cell for each group.
type Series = (String, Vec<Cell>);

/// One figure.
pub(super) fn figure(frames: &Frames, spec: &FigureSpec) -> Result<Figure, StudyError> {
    let runs = frames.runs_of(spec.from.as_deref());
    let plot = match spec.kind {
        FigureKind::Bars => Plot::Bars(bars(frames, spec)),
        FigureKind::Sorted => Plot::Lines(lines(spec, sorted(frames, spec))),
        FigureKind::Lines => Plot::Lines(lines(spec, over_label(frames, spec))),
        FigureKind::Scatter => Plot::Scatter(scatter(frames, spec)),
        FigureKind::Heat => Plot::HeatMap(heat(frames, spec)),
        FigureKind::Runs => Plot::Scatter(run_by_run(frames, spec)),
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
fn series(frames: &Frames, spec: &FigureSpec) -> Vec<Series> {
    let turns = frames.turns(spec.looped());
    let words = frames.each(spec.looped()).len();
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

fn keys(frames: &Frames, spec: &FigureSpec) -> Vec<String> {
    let groups = frames.groups(spec.looped());
    groups.into_iter().map(|turn| turn.group.key).collect()
}

/// A bar, without its interval where the figure leaves them out.
fn shown(spec: &FigureSpec, cell: &Cell) -> Option<Bar> {
    let bar = bar(cell)?;
    let ci95 = bar.ci95.filter(|_| !spec.exact);
    Some(Bar { ci95, ..bar })
}

/// Every group as a series, with a bar for each of the words.
fn swapped(frames: &Frames, spec: &FigureSpec) -> (Vec<String>, Vec<Series>) {
    let words = series(frames, spec);
    let name = |n: usize, turn: &Turn| {
        let name = spec.series.first().and_then(|cell| cell.name.clone());
        let cells = words.iter().map(|(_, cells)| cells[n].clone());
        (
            name.unwrap_or_else(|| turn.group.key.clone()),
            cells.collect(),
        )
    };
    let groups = frames.groups(spec.looped());
    let all = groups.iter().enumerate().map(|(n, turn)| name(n, turn));
    let each = frames.each(spec.looped()).into_iter();
    let names = each.map(|words| words.get("name").cloned().unwrap_or_default());
    (names.collect(), all.collect())
}

/// A series without any value is left out.
fn bars(frames: &Frames, spec: &FigureSpec) -> Bars {
    let (groups, all) = match spec.swap {
        true => swapped(frames, spec),
        false => (keys(frames, spec), series(frames, spec)),
    };
    let all = all.into_iter();
    let some = all.filter(|(_, cells)| cells.iter().any(|cell| cell.value().is_some()));
    bars_of(spec, groups, some)
}

/// Bars with the texts of a figure.
pub(super) fn bars_of(
    spec: &FigureSpec,
    groups: Vec<String>,
    series: impl IntoIterator<Item = Series>,
) -> Bars {
    let one = |(name, cells): Series| BarSeries {
        name,
        bars: cells.iter().map(|cell| shown(spec, cell)).collect(),
    };
    Bars {
        category: spec.category.clone(),
        value: Axis::linear(&spec.value, spec.unit.as_deref()),
        baseline: spec.baseline,
        groups,
        series: series.into_iter().map(one).collect(),
    }
}

fn heat(frames: &Frames, spec: &FigureSpec) -> HeatMap {
    let all = series(frames, spec);
    let factor = spec.digits.map(|digits| 10f64.powi(digits as i32));
    let rounded = |value: f64| factor.map_or(value, |by| (by * value).round() / by);
    let row = |(n, key): (usize, String)| {
        let cells = all.iter().map(|(_, cells)| cells[n].value().map(rounded));
        (key, cells.collect())
    };
    let rows = keys(frames, spec).into_iter().enumerate().map(row);
    let columns = all.iter().map(|(name, _)| name.clone());
    heat_of(spec, columns.collect(), rows.collect())
}

/// A matrix with the texts of a figure.
pub(super) fn heat_of(
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

fn lines(spec: &FigureSpec, series: Vec<PointSeries>) -> Lines {
    Lines {
        x: axis(spec, &spec.category, spec.category_unit.as_deref()),
        y: axis(spec, &spec.value, spec.unit.as_deref()),
        series,
    }
}

/// The values of each series, the smallest first.
fn sorted(frames: &Frames, spec: &FigureSpec) -> Vec<PointSeries> {
    let points = |(name, cells): Series| {
        let mut values: Vec<f64> = cells.iter().filter_map(Cell::value).collect();
        values.sort_by(f64::total_cmp);
        let numbered = values.into_iter().enumerate();
        PointSeries {
            name,
            points: numbered
                .map(|(n, y)| Point::exact((n + 1) as f64, y))
                .collect(),
        }
    };
    series(frames, spec).into_iter().map(points).collect()
}

/// Points over the number that a label of each case is.
fn over_label(frames: &Frames, spec: &FigureSpec) -> Vec<PointSeries> {
    let label = spec.x.as_deref().unwrap_or("case");
    let turns = frames.turns(spec.looped());
    let words = frames.each(spec.looped());
    let mut all = Vec::new();
    for n in 0..words.len() {
        for cell in &spec.series {
            for value in values_of(frames, spec, &turns) {
                let here = turns.iter().map(|group| &group[n]);
                let here = here.filter(|turn| line_of(frames, spec, turn) == value);
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
fn values_of(frames: &Frames, spec: &FigureSpec, turns: &[Vec<Turn>]) -> Vec<String> {
    let mut values: Vec<String> = Vec::new();
    for turn in turns.iter().filter_map(|group| group.first()) {
        let value = line_of(frames, spec, turn);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}

/// The first case of a turn.
fn case<'a>(frames: &'a Frames, turn: &Turn) -> Option<&'a Case> {
    let frame = frames.get(&turn.from)?;
    frame.cases.get(*turn.group.cases.first()?)
}

fn line_of(frames: &Frames, spec: &FigureSpec, turn: &Turn) -> String {
    let label = spec.line_by.as_deref();
    let value = label.and_then(|label| Some(case(frames, turn)?.value(label).to_owned()));
    value.unwrap_or_default()
}

fn point(
    frames: &Frames,
    spec: &FigureSpec,
    cell: &CellSpec,
    (turn, label): (&Turn, &str),
) -> Option<Point> {
    let x = case(frames, turn)?.value(label).parse().ok()?;
    let cell = frames.cell(cell, turn);
    let y = cell.value()?;
    match spec.exact {
        true => (y > 0.0).then(|| Point::exact(x, y)),
        false => Some(Point {
            x,
            y,
            ci95: cell.ci95(),
        }),
    }
}

/// A point for each run of the first case, by the number of the run from 1.
fn run_by_run(frames: &Frames, spec: &FigureSpec) -> Scatter {
    let turns = frames.turns(spec.looped());
    let points = |turn: &Turn| {
        let values = spec.series.first().map(|cell| frames.runs_at(cell, turn));
        let numbered = values.unwrap_or_default().into_iter().enumerate();
        PointSeries {
            name: turn.words.get("name").cloned().unwrap_or_default(),
            points: numbered
                .map(|(n, y)| Point::exact((n + 1) as f64, y))
                .collect(),
        }
    };
    Scatter {
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

fn scatter(frames: &Frames, spec: &FigureSpec) -> Scatter {
    let across = spec.across.clone().unwrap_or_default();
    let turns = frames.turns(spec.looped());
    let point = |turn: &Turn, cell: &Cell| {
        let x = frames.cell(&across, turn).value()?;
        let (y, ci95) = (cell.value()?, cell.ci95());
        Some(Point { x, y, ci95 })
    };
    let points = |(name, cells): Series| {
        let both = turns.iter().filter_map(|group| group.first()).zip(&cells);
        PointSeries {
            name,
            points: both.filter_map(|(turn, cell)| point(turn, cell)).collect(),
        }
    };
    Scatter {
        x: axis(spec, &spec.category, spec.category_unit.as_deref()),
        y: axis(spec, &spec.value, spec.unit.as_deref()),
        series: series(frames, spec).into_iter().map(points).collect(),
        diagonal: true,
    }
}
