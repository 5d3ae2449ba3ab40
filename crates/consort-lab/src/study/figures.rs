//! The figures of a study, from its frames.

use super::StudyError;
use super::file::{FigureKind, FigureSpec};
use super::frames::{Frames, LoopTurn, TemplateWords};
use super::template::fill;
use consort_data::{
    Axis, Bar, BarChart, BarSeries, Cell, Figure, FigurePoint, HeatMap, LineChart, Plot,
    PointSeries, ScatterChart,
};

/// A series: its name and a cell for each group.
type CellSeries = (String, Vec<Cell>);

/// A figure's loop, run once.
struct FigureView<'a> {
    frames: &'a Frames,
    spec: &'a FigureSpec,
    words: Vec<TemplateWords>,
    /// Turns by group, then word; every group has at least one.
    turns: Vec<Vec<LoopTurn>>,
}

/// One figure; `None` if it has no groups, or may be left out and has no value.
pub(super) fn figure(frames: &Frames, spec: &FigureSpec) -> Result<Option<Figure>, StudyError> {
    let view = FigureView {
        frames,
        spec,
        words: frames.loop_words(spec.looped()),
        turns: frames.turns(spec.looped()),
    };
    let has_values = || view.series().iter().any(has_value);
    // At the quick scale there may be none of the cases that a figure shows.
    if view.turns.is_empty() || (spec.optional && !has_values()) {
        return Ok(None);
    }
    let plot = match spec.kind {
        FigureKind::Bars => Plot::Bars(view.bars()),
        FigureKind::Sorted => Plot::Lines(view.line_chart(view.sorted_series())),
        FigureKind::Lines => Plot::Lines(view.line_chart(view.series_over_label())),
        FigureKind::Scatter => Plot::Scatter(view.scatter_chart(view.case_points(), true)),
        FigureKind::Heat => Plot::HeatMap(view.heat_map()),
        FigureKind::Runs => Plot::Scatter(view.scatter_chart(view.run_points(), false)),
    };
    // Where every run is a point, none is a mean.
    let runs = match spec.kind {
        FigureKind::Runs => 1,
        _ => frames.experiment_runs(spec.from.as_deref()),
    };
    let figure = Figure::new(&spec.key, &spec.title, &spec.text, runs, plot)?;
    Ok(Some(figure))
}

fn has_value((_, cells): &CellSeries) -> bool {
    cells.iter().any(|cell| cell.value().is_some())
}

/// Points over 1, 2, 3 and so on.
fn numbered_points(values: impl IntoIterator<Item = f64>) -> Vec<FigurePoint> {
    let numbered = values.into_iter().enumerate();
    numbered
        .map(|(n, y)| FigurePoint::exact((n + 1) as f64, y))
        .collect()
}

impl FigureView<'_> {
    /// Every series of the figure, for each of its words.
    fn series(&self) -> Vec<CellSeries> {
        let mut all = Vec::new();
        for n in 0..self.words.len() {
            for spec in &self.spec.series {
                let name = self.turns.first().map_or_else(String::new, |group| {
                    fill(spec.name.as_deref().unwrap_or("{name}"), &group[n].words)
                });
                let cells = self.turns.iter();
                let cells = cells.map(|group| self.frames.cell(spec, &group[n]));
                all.push((name, cells.collect()));
            }
        }
        all
    }

    fn group_keys(&self) -> Vec<String> {
        let groups = self.turns.iter().filter_map(|group| group.first());
        groups.map(|turn| turn.group.key.clone()).collect()
    }

    fn bars(&self) -> BarChart {
        let (mut groups, mut all) = (self.group_keys(), self.series());
        if self.spec.swap {
            // Every group becomes a series, with a bar for each of the words.
            let name = self.spec.series.first().and_then(|cell| cell.name.clone());
            let swapped = groups.into_iter().enumerate().map(|(n, key)| {
                let cells = all.iter().map(|(_, cells)| cells[n].clone());
                (name.clone().unwrap_or(key), cells.collect())
            });
            all = swapped.collect();
            let names = self.words.iter();
            groups = names
                .map(|words| words.get("name").cloned().unwrap_or_default())
                .collect();
        }
        // A legend entry without any bar would only confuse.
        all.retain(has_value);
        bars_from_series(self.spec, groups, all)
    }

    fn heat_map(&self) -> HeatMap {
        let all = self.series();
        let factor = self.spec.digits.map(|digits| 10f64.powi(digits as i32));
        let rounded = |value: f64| factor.map_or(value, |by| (by * value).round() / by);
        let rows = self.group_keys().into_iter().enumerate().map(|(n, key)| {
            let cells = all.iter().map(|(_, cells)| cells[n].value().map(rounded));
            (key, cells.collect())
        });
        let rows = rows.collect();
        let columns = all.iter().map(|(name, _)| name.clone()).collect();
        heat_map_from_rows(self.spec, columns, rows)
    }

    /// The horizontal and the vertical axis of points and lines.
    fn axes(&self) -> (Axis, Axis) {
        let spec = self.spec;
        let axis = if spec.log { Axis::log } else { Axis::linear };
        (
            axis(&spec.category, spec.category_unit.as_deref()),
            axis(&spec.value, spec.unit.as_deref()),
        )
    }

    fn line_chart(&self, series: Vec<PointSeries>) -> LineChart {
        let (x, y) = self.axes();
        LineChart { x, y, series }
    }

    fn scatter_chart(&self, series: Vec<PointSeries>, diagonal: bool) -> ScatterChart {
        let (x, y) = self.axes();
        ScatterChart {
            x,
            y,
            series,
            diagonal,
        }
    }

    /// The values of each series, the smallest first.
    fn sorted_series(&self) -> Vec<PointSeries> {
        let sorted = self.series().into_iter().map(|(name, cells)| {
            let mut values: Vec<f64> = cells.iter().filter_map(Cell::value).collect();
            values.sort_by(f64::total_cmp);
            PointSeries {
                name,
                points: numbered_points(values),
            }
        });
        sorted.collect()
    }

    /// The value of a label of a turn's first case.
    fn label(&self, turn: &LoopTurn, label: &str) -> Option<&str> {
        let frame = self.frames.get(&turn.from)?;
        let first = frame.cases.get(*turn.group.cases.first()?)?;
        Some(first.value(label))
    }

    /// Points over the number that a label of each case is; a line for each value of another label,
    /// if there is one.
    fn series_over_label(&self) -> Vec<PointSeries> {
        let label = self.spec.x.as_deref().unwrap_or("case");
        let line = |turn: &LoopTurn| {
            let by = self.spec.line_by.as_deref();
            by.and_then(|by| self.label(turn, by)).unwrap_or_default()
        };
        let mut lines: Vec<&str> = Vec::new();
        for turn in self.turns.iter().filter_map(|group| group.first()) {
            let value = line(turn);
            if !lines.contains(&value) {
                lines.push(value);
            }
        }
        let mut all = Vec::new();
        for (n, words) in self.words.iter().enumerate() {
            for cell in &self.spec.series {
                for &value in &lines {
                    let here = self.turns.iter().map(|group| &group[n]);
                    let here = here.filter(|turn| line(turn) == value);
                    let points = here.filter_map(|turn| {
                        let x = self.label(turn, label)?.parse().ok()?;
                        let cell = self.frames.cell(cell, turn);
                        let y = cell.value()?;
                        let ci95 = cell.ci95().filter(|_| !self.spec.exact);
                        (!self.spec.exact || y > 0.0).then_some(FigurePoint { x, y, ci95 })
                    });
                    let points = points.collect();
                    let name = cell.name.clone().unwrap_or_else(|| match value {
                        "" => words.get("name").cloned().unwrap_or_default(),
                        value => value.to_owned(),
                    });
                    all.push(PointSeries { name, points });
                }
            }
        }
        all
    }

    /// A point for each case, a measure over another.
    fn case_points(&self) -> Vec<PointSeries> {
        let across = self.spec.across.clone().unwrap_or_default();
        let series = self.series().into_iter().map(|(name, cells)| {
            let turns = self.turns.iter().filter_map(|group| group.first());
            let points = turns.zip(&cells).filter_map(|(turn, cell)| {
                Some(FigurePoint {
                    x: self.frames.cell(&across, turn).value()?,
                    y: cell.value()?,
                    ci95: cell.ci95(),
                })
            });
            let points = points.collect();
            PointSeries { name, points }
        });
        series.collect()
    }

    /// A point for each run of the first case, by the number of the run from 1.
    fn run_points(&self) -> Vec<PointSeries> {
        let series = self.turns.iter().flatten().map(|turn| {
            let cell = self.spec.series.first();
            let values = cell.map(|cell| self.frames.first_case_runs(cell, turn));
            PointSeries {
                name: turn.words.get("name").cloned().unwrap_or_default(),
                points: numbered_points(values.unwrap_or_default()),
            }
        });
        series.collect()
    }
}

/// Bars with the texts of a figure.
pub(super) fn bars_from_series(
    spec: &FigureSpec,
    groups: Vec<String>,
    series: impl IntoIterator<Item = CellSeries>,
) -> BarChart {
    let bar = |cell: &Cell| {
        Some(Bar {
            value: cell.value()?,
            ci95: cell.ci95().filter(|_| !spec.exact),
        })
    };
    let series = series.into_iter().map(|(name, cells)| BarSeries {
        name,
        bars: cells.iter().map(bar).collect(),
    });
    BarChart {
        category: spec.category.clone(),
        value: Axis::linear(&spec.value, spec.unit.as_deref()),
        baseline: spec.baseline,
        groups,
        series: series.collect(),
    }
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
