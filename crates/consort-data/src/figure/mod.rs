//! Figures as data: what is drawn, not how.

use serde::{Deserialize, Serialize};
use thiserror::Error;

mod check;

/// Largest number of series, because the palette has as many distinguishable colours.
pub const MAX_SERIES: usize = 8;

/// A figure. Made by [`Figure::new`], which checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FigureFile")]
pub struct Figure {
    key: String,
    title: String,
    /// Text on what to see in it; may be empty.
    text: String,
    /// Runs behind each value; 0 for values that are computed without runs.
    runs: usize,
    plot: Plot,
}

/// A figure as it is written, before it is checked.
#[derive(Deserialize)]
struct FigureFile {
    key: String,
    title: String,
    text: String,
    runs: usize,
    plot: Plot,
}

impl TryFrom<FigureFile> for Figure {
    type Error = FigureError;

    fn try_from(file: FigureFile) -> Result<Self, FigureError> {
        Self::new(&file.key, &file.title, &file.text, file.runs, file.plot)
    }
}

impl Figure {
    /// Stable key of `a-z`, `0-9`, `-`, `_`; part of the file name.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Title for people.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Shape and values of the drawing.
    pub fn plot(&self) -> &Plot {
        &self.plot
    }
}

/// Shape and values of the drawing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plot {
    /// Groups of bars, one bar of each series in each group.
    Bars(BarChart),
    /// Points joined by lines.
    Lines(LineChart),
    /// Points.
    Scatter(ScatterChart),
    /// A matrix of coloured cells.
    HeatMap(HeatMap),
    /// Bars to both sides of a line, one per thing that is varied.
    Tornado(Tornado),
    /// Rows of spans over time.
    Spans(SpanChart),
}

/// A numeric axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Title for people.
    pub title: String,
    /// Unit; `None` for plain ratios.
    pub unit: Option<String>,
    /// True for a logarithmic axis, on which equal factors have equal lengths.
    pub log: bool,
}

/// A grouped bar chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarChart {
    /// Title of the axis of groups.
    pub category: String,
    /// The axis of values; linear.
    pub value: Axis,
    /// Value at which bars start: 0, or 1 for ratios whose gain or loss is the point.
    pub baseline: f64,
    /// Names of the groups.
    pub groups: Vec<String>,
    /// The series.
    pub series: Vec<BarSeries>,
}

/// One colour of a bar chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BarSeries {
    /// Name in the legend.
    pub name: String,
    /// A bar for each group; `None` if it has no value.
    pub bars: Vec<Option<Bar>>,
}

/// A bar with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// The value.
    pub value: f64,
    /// Half width of the 95 percent interval.
    pub ci95: Option<f64>,
}

/// A line chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LineChart {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<PointSeries>,
}

/// A scatter chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ScatterChart {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The points.
    pub series: Vec<PointSeries>,
    /// True if the line of y equal to x is drawn, as in predicted against measured.
    pub diagonal: bool,
}

/// One colour of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointSeries {
    /// Name in the legend.
    pub name: String,
    /// The points, in the order in which a line joins them.
    pub points: Vec<FigurePoint>,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FigurePoint {
    /// Horizontal position.
    pub x: f64,
    /// Vertical position.
    pub y: f64,
    /// Half width of the 95 percent interval of `y`.
    pub ci95: Option<f64>,
}

/// A matrix of coloured cells.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Title of the axis of columns.
    pub x: String,
    /// Title of the axis of rows.
    pub y: String,
    /// Meaning of the colours; linear.
    pub value: Axis,
    /// Names of the columns, left to right.
    pub columns: Vec<String>,
    /// Names of the rows, top to bottom.
    pub rows: Vec<String>,
    /// Values by row and column; `None` if there is no value.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// Reason why a figure cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("figure '{figure}': {problem}")]
pub struct FigureError {
    /// The figure.
    pub figure: String,
    /// The problem, and what would be right.
    pub problem: String,
}
impl Axis {
    /// A linear axis.
    pub fn linear(title: &str, unit: Option<&str>) -> Self {
        Self {
            title: title.to_owned(),
            unit: unit.map(str::to_owned),
            log: false,
        }
    }

    /// A logarithmic axis.
    pub fn log(title: &str, unit: Option<&str>) -> Self {
        Self {
            log: true,
            ..Self::linear(title, unit)
        }
    }

    /// Title and unit.
    pub fn heading(&self) -> String {
        match &self.unit {
            Some(unit) => format!("{} ({unit})", self.title),
            None => self.title.clone(),
        }
    }
}

impl Bar {
    /// A bar without an interval.
    pub fn exact(value: f64) -> Self {
        Self { value, ci95: None }
    }
}

impl FigurePoint {
    /// A point without an interval.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, y, ci95: None }
    }
}

impl Figure {
    /// The text beneath it: what to see, what it stands on, and what signs in
    /// the drawing mean that it does not say itself.
    pub fn caption(&self) -> String {
        let runs = match self.runs {
            _ if matches!(self.plot, Plot::Spans(_)) => String::new(),
            0 => "Computed without runs.".to_owned(),
            1 => "One run per value.".to_owned(),
            n => format!("Mean of {n} runs per value."),
        };
        let parts = [self.text.as_str(), &runs].into_iter();
        let parts = parts.chain(self.plot.sign_explanations());
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        parts.join(" ")
    }
}

impl Plot {
    /// Explanations of signs that the drawing does not explain itself.
    fn sign_explanations(&self) -> Vec<&'static str> {
        let mut signs = vec![];
        if self.has_intervals() {
            signs.push("Whiskers are 95 percent intervals.");
        }
        match self {
            Self::Scatter(scatter) if scatter.diagonal => {
                signs.push("On the line both are equal.");
            }
            Self::HeatMap(map) if map.cells.iter().flatten().any(Option::is_none) => {
                signs.push("Grey cells have no value.");
            }
            Self::Tornado(tornado) => {
                signs.push("Bars begin at the value when nothing is varied.");
                if tornado.threshold.is_some() {
                    signs.push("At the other line the conclusion turns round.");
                }
            }
            _ => {}
        }
        signs
    }

    fn has_intervals(&self) -> bool {
        match self {
            Self::Bars(bars) => {
                let mut all = bars.series.iter().flat_map(|s| s.bars.iter().flatten());
                all.any(|bar| bar.ci95.is_some())
            }
            Self::Lines(LineChart { series, .. }) | Self::Scatter(ScatterChart { series, .. }) => {
                let mut all = series.iter().flat_map(|s| &s.points);
                all.any(|point| point.ci95.is_some())
            }
            Self::HeatMap(_) | Self::Tornado(_) | Self::Spans(_) => false,
        }
    }
}

/// Effects on a value of one parameter at a time: each bar reaches from the value at the low end of
/// the parameter to that at its high end, usually with the longest bar at the top.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tornado {
    /// The axis of values; linear.
    pub value: Axis,
    /// The value if no parameter is varied; bars begin here.
    pub baseline: f64,
    /// Value at which the conclusion reverses; drawn as a line.
    pub threshold: Option<f64>,
    /// Names of the two ends in the legend: low, high.
    pub ends: [String; 2],
    /// The bars, top to bottom.
    pub rows: Vec<TornadoRow>,
}

/// One parameter of a tornado chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TornadoRow {
    /// Name of the parameter.
    pub name: String,
    /// The value at its low and at its high end.
    pub values: [f64; 2],
}

/// Rows of spans over time, for example threads and the CPUs on which they ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpanChart {
    /// The axis of time; linear, from 0.
    pub time: Axis,
    /// End of the axis; above 0.
    pub end: f64,
    /// Names of the colours in the legend.
    pub series: Vec<String>,
    /// The rows, top to bottom.
    pub rows: Vec<SpanRow>,
    /// Begin and end of stretches that are shaded behind all rows.
    pub shaded: Vec<[f64; 2]>,
}

/// One row of a [`SpanChart`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SpanRow {
    /// Name of the row.
    pub name: String,
    /// Spans, which do not overlap.
    pub spans: Vec<RowSpan>,
    /// Instants that are marked by a stroke.
    pub marks: Vec<f64>,
}

/// One span of a row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowSpan {
    /// Begin.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Index of its colour; `None` for a thin grey line.
    pub series: Option<usize>,
    /// Height as a share of the row, 0 to 1.
    pub share: f64,
    /// Text inside, if there is room.
    pub label: String,
}

#[cfg(test)]
mod tests {
    use crate::figure::{
        Axis, Figure, FigurePoint, HeatMap, LineChart, Plot, PointSeries, ScatterChart,
    };

    fn axis(title: &str) -> Axis {
        Axis::linear(title, None)
    }

    fn series(point: FigurePoint) -> Vec<PointSeries> {
        let (name, points) = (String::new(), vec![point]);
        vec![PointSeries { name, points }]
    }

    fn check(text: &str, runs: usize, plot: Plot, expect: &str) {
        let figure = Figure::new("a", "", text, runs, plot).unwrap();
        assert_eq!(figure.caption(), expect);
    }

    #[test]
    fn captions_say_what_a_figure_stands_on() {
        let mut point = FigurePoint::exact(1.0, 2.0);
        let lines = |point| {
            let (x, y, series) = (axis("x"), axis("y"), series(point));
            Plot::Lines(LineChart { x, y, series })
        };
        check("It rises.", 1, lines(point), "It rises. One run per value.");
        check("", 0, lines(point), "Computed without runs.");
        point.ci95 = Some(0.1);
        let expect = "Mean of 10 runs per value. Whiskers are 95 percent intervals.";
        check("", 10, lines(point), expect);
    }

    #[test]
    fn captions_explain_signs() {
        let scatter = ScatterChart {
            x: axis("x"),
            y: axis("y"),
            series: series(FigurePoint::exact(1.0, 1.0)),
            diagonal: true,
        };
        let expect = "One run per value. On the line both are equal.";
        check("", 1, Plot::Scatter(scatter), expect);
        let map = HeatMap {
            x: String::new(),
            y: String::new(),
            value: axis("v"),
            columns: vec!["a".to_owned()],
            rows: vec!["a".to_owned()],
            cells: vec![vec![None]],
        };
        let expect = "One run per value. Grey cells have no value.";
        check("", 1, Plot::HeatMap(map), expect);
    }
}
