//! Figures as data: what is drawn, not how.

use super::table::is_file_key;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Series that colours can tell apart.
pub const MAX_SERIES: usize = 8;

/// A figure. Made by [`Figure::new`], which checks it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// Stable key of `a-z`, `0-9`, `-`, `_`; part of the file name.
    pub key: String,
    /// Title for people.
    pub title: String,
    /// What to see in it; may be empty.
    pub text: String,
    /// Runs that each value stands on.
    pub runs: usize,
    /// What is drawn.
    pub plot: Plot,
}

/// What is drawn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Plot {
    /// Groups of bars, one bar of each series in each group.
    Bars(Bars),
    /// Points joined by lines.
    Lines(Lines),
    /// Points.
    Scatter(Scatter),
    /// A matrix of coloured cells.
    HeatMap(HeatMap),
}

/// A numeric axis.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Title for people.
    pub title: String,
    /// Unit; none for plain ratios.
    pub unit: Option<String>,
    /// Whether equal factors, not equal differences, have equal lengths.
    pub log: bool,
}

/// A grouped bar chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    /// Title of the axis of groups.
    pub category: String,
    /// The axis of values; linear.
    pub value: Axis,
    /// Where bars start: 0, or 1 for ratios whose gain or loss is the point.
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
    /// A bar for each group; none where there is no value.
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
pub struct Lines {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The lines.
    pub series: Vec<PointSeries>,
}

/// A scatter chart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// Horizontal axis.
    pub x: Axis,
    /// Vertical axis.
    pub y: Axis,
    /// The points.
    pub series: Vec<PointSeries>,
    /// Whether the line where y equals x is drawn, as in predicted against
    /// measured.
    pub diagonal: bool,
}

/// One colour of points.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PointSeries {
    /// Name in the legend.
    pub name: String,
    /// The points, in the order in which a line joins them.
    pub points: Vec<Point>,
}

/// A point with its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
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
    /// What the colours mean; linear.
    pub value: Axis,
    /// Names of the columns, left to right.
    pub columns: Vec<String>,
    /// Names of the rows, top to bottom.
    pub rows: Vec<String>,
    /// Values by row and column; none where there is no value.
    pub cells: Vec<Vec<Option<f64>>>,
}

/// Why a figure cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("figure '{figure}': {problem}")]
pub struct FigureError {
    /// The figure.
    pub figure: String,
    /// What is wrong, and what would be right.
    pub problem: String,
}

impl Figure {
    /// A figure whose parts fit together.
    ///
    /// # Errors
    /// When the key cannot be part of a file name, there is nothing or there
    /// are more than [`MAX_SERIES`] series to draw, lengths differ, or a number
    /// is not finite or, on a logarithmic axis, not positive.
    pub fn new(
        key: &str,
        title: &str,
        text: &str,
        runs: usize,
        plot: Plot,
    ) -> Result<Self, FigureError> {
        let in_context = |problem| FigureError {
            figure: key.to_owned(),
            problem,
        };
        if !is_file_key(key) {
            return Err(in_context(
                "use a-z, 0-9, '-' and '_' for its key".to_owned(),
            ));
        }
        plot.check().map_err(in_context)?;
        Ok(Self {
            key: key.to_owned(),
            title: title.to_owned(),
            text: text.to_owned(),
            runs,
            plot,
        })
    }

    /// The text beneath it: what to see, and what it stands on.
    pub fn caption(&self) -> String {
        let runs = match self.runs {
            1 => "One run per value.".to_owned(),
            n => format!("Mean of {n} runs per value."),
        };
        let whiskers = if self.plot.has_intervals() {
            " Whiskers are 95 percent intervals."
        } else {
            ""
        };
        format!("{} {runs}{whiskers}", self.text)
            .trim_start()
            .to_owned()
    }
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

impl Point {
    /// A point without an interval.
    pub fn exact(x: f64, y: f64) -> Self {
        Self { x, y, ci95: None }
    }
}

impl Plot {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Bars(bars) => bars.check(),
            Self::Lines(lines) => check_points(&lines.x, &lines.y, &lines.series),
            Self::Scatter(scatter) => check_points(&scatter.x, &scatter.y, &scatter.series),
            Self::HeatMap(map) => map.check(),
        }
    }

    fn has_intervals(&self) -> bool {
        match self {
            Self::Bars(bars) => {
                let mut all = bars.series.iter().flat_map(|s| s.bars.iter().flatten());
                all.any(|bar| bar.ci95.is_some())
            }
            Self::Lines(Lines { series, .. }) | Self::Scatter(Scatter { series, .. }) => {
                let mut all = series.iter().flat_map(|s| &s.points);
                all.any(|point| point.ci95.is_some())
            }
            Self::HeatMap(_) => false,
        }
    }
}

impl Bars {
    fn check(&self) -> Result<(), String> {
        check_series(self.series.len())?;
        check_finite("baseline", [self.baseline])?;
        check_linear(&self.value)?;
        for series in &self.series {
            check_length(&series.name, series.bars.len(), self.groups.len())?;
            let values = series.bars.iter().flatten();
            let numbers = values.flat_map(|b| [b.value, b.ci95.unwrap_or(0.0)]);
            check_finite(&series.name, numbers)?;
        }
        check_any(self.groups.len())
    }
}

impl HeatMap {
    fn check(&self) -> Result<(), String> {
        check_linear(&self.value)?;
        check_length("the matrix", self.cells.len(), self.rows.len())?;
        for (name, cells) in self.rows.iter().zip(&self.cells) {
            check_length(name, cells.len(), self.columns.len())?;
            check_finite(name, cells.iter().flatten().copied())?;
        }
        check_any(self.rows.len() * self.columns.len())
    }
}

fn check_points(x: &Axis, y: &Axis, series: &[PointSeries]) -> Result<(), String> {
    check_series(series.len())?;
    for one in series {
        let numbers = one.points.iter();
        let numbers = numbers.flat_map(|p| [p.x, p.y, p.ci95.unwrap_or(0.0)]);
        check_finite(&one.name, numbers)?;
        check_log(x, one.points.iter().map(|p| p.x))?;
        check_log(y, one.points.iter().map(|p| p.y))?;
    }
    check_any(series.iter().map(|s| s.points.len()).sum())
}

fn check_series(count: usize) -> Result<(), String> {
    if count > MAX_SERIES {
        return Err(format!(
            "{count} series cannot be told apart; split it into figures of at most {MAX_SERIES}"
        ));
    }
    check_any(count)
}

fn check_any(count: usize) -> Result<(), String> {
    if count == 0 {
        return Err("there is nothing to draw".to_owned());
    }
    Ok(())
}

fn check_length(name: &str, is: usize, should_be: usize) -> Result<(), String> {
    if is != should_be {
        return Err(format!(
            "{name} has {is} entries where {should_be} are named"
        ));
    }
    Ok(())
}

fn check_finite(name: &str, numbers: impl IntoIterator<Item = f64>) -> Result<(), String> {
    if numbers.into_iter().all(f64::is_finite) {
        return Ok(());
    }
    Err(format!(
        "{name} holds a number that is not finite; leave it out"
    ))
}

fn check_linear(axis: &Axis) -> Result<(), String> {
    if axis.log {
        return Err(format!("the axis '{}' has to be linear", axis.title));
    }
    Ok(())
}

fn check_log(axis: &Axis, mut numbers: impl Iterator<Item = f64>) -> Result<(), String> {
    if axis.log && numbers.any(|v| v <= 0.0) {
        return Err(format!(
            "the axis '{}' is logarithmic and holds positive numbers only",
            axis.title
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(x: Axis, points: Vec<Point>) -> Plot {
        let name = "s".to_owned();
        Plot::Lines(Lines {
            x,
            y: Axis::linear("y", None),
            series: vec![PointSeries { name, points }],
        })
    }

    fn check(key: &str, plot: Plot, expect: &str) {
        let error = Figure::new(key, "", "", 1, plot).unwrap_err().to_string();
        assert!(error.contains(expect), "{error}");
    }

    #[test]
    fn what_cannot_be_drawn_is_refused_with_its_reason() {
        let linear = || Axis::linear("x", None);
        check(
            "A b",
            lines(linear(), vec![Point::exact(1.0, 1.0)]),
            "for its key",
        );
        check("a", lines(linear(), vec![]), "nothing to draw");
        check(
            "a",
            lines(linear(), vec![Point::exact(f64::NAN, 1.0)]),
            "not finite",
        );
        let log = Axis::log("x", None);
        check(
            "a",
            lines(log, vec![Point::exact(0.0, 1.0)]),
            "positive numbers only",
        );
        let ragged = HeatMap {
            x: String::new(),
            y: String::new(),
            value: linear(),
            columns: vec!["a".to_owned()],
            rows: vec!["a".to_owned()],
            cells: vec![vec![]],
        };
        check(
            "a",
            Plot::HeatMap(ragged),
            "a has 0 entries where 1 are named",
        );
    }

    #[test]
    fn captions_say_what_a_figure_stands_on() {
        let mut point = Point::exact(1.0, 2.0);
        let bare = lines(Axis::linear("x", None), vec![point]);
        let bare = Figure::new("a", "", "It rises.", 1, bare).unwrap();
        assert_eq!(bare.caption(), "It rises. One run per value.");
        point.ci95 = Some(0.1);
        let plot = lines(Axis::linear("x", Some("ms")), vec![point]);
        let figure = Figure::new("a", "", "", 10, plot).unwrap();
        let expected = "Mean of 10 runs per value. Whiskers are 95 percent intervals.";
        assert_eq!(figure.caption(), expected);
    }
}
