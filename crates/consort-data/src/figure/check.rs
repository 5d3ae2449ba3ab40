//! Checks that the parts of a figure fit together.

use super::{
    Axis, BarChart, Figure, FigureError, HeatMap, MAX_SERIES, Plot, PointSeries, SpanChart, Tornado,
};
use crate::report_table::is_file_key;

/// Larger numbers would overflow in the arithmetic on axes.
const LARGEST: f64 = 1e100;

impl Figure {
    /// A figure whose parts fit together.
    ///
    /// # Errors
    /// If the key cannot be part of a file name, there is nothing or there
    /// are more than [`MAX_SERIES`] series to draw, lengths differ, or a number
    /// is not finite, beyond 1e100 or, on a logarithmic axis, not positive.
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
}

impl Plot {
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Bars(bars) => bars.check(),
            Self::Lines(lines) => check_points(&lines.x, &lines.y, &lines.series),
            Self::Scatter(scatter) => check_points(&scatter.x, &scatter.y, &scatter.series),
            Self::HeatMap(map) => map.check(),
            Self::Tornado(tornado) => tornado.check(),
            Self::Spans(spans) => spans.check(),
        }
    }
}

impl BarChart {
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

impl Tornado {
    fn check(&self) -> Result<(), String> {
        check_linear(&self.value)?;
        check_finite("baseline", [self.baseline])?;
        check_finite("threshold", self.threshold)?;
        for row in &self.rows {
            check_finite(&row.name, row.values)?;
        }
        check_any(self.rows.len())
    }
}

impl SpanChart {
    fn check(&self) -> Result<(), String> {
        check_linear(&self.time)?;
        check_series(self.series.len())?;
        check_finite("end", [self.end])?;
        if self.end <= 0.0 {
            return Err("its time ends at 0 or before; expected an end above 0".to_owned());
        }
        check_finite("the shade", self.shaded.iter().flatten().copied())?;
        for row in &self.rows {
            let spans = row.spans.iter().flat_map(|s| [s.from, s.to, s.share]);
            check_finite(&row.name, spans.chain(row.marks.iter().copied()))?;
            let mut series = row.spans.iter().filter_map(|span| span.series);
            if let Some(unknown) = series.find(|&series| series >= self.series.len()) {
                return Err(format!(
                    "{} has a span of series {unknown}, and there are {}",
                    row.name,
                    self.series.len()
                ));
            }
        }
        check_any(self.rows.len())
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
            "{count} series cannot be distinguished; split it into figures of at most {MAX_SERIES}"
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
    let fits = |v: f64| v.abs() <= LARGEST;
    if numbers.into_iter().all(fits) {
        return Ok(());
    }
    Err(format!(
        "{name} holds a number that is not finite or beyond {LARGEST:e}; leave it out"
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
    use crate::figure::{FigurePoint, LineChart};

    fn lines(x: Axis, points: Vec<FigurePoint>) -> Plot {
        let name = "s".to_owned();
        Plot::Lines(LineChart {
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
    fn impossible_figure_is_refused_with_reason() {
        let linear = || Axis::linear("x", None);
        check(
            "A b",
            lines(linear(), vec![FigurePoint::exact(1.0, 1.0)]),
            "for its key",
        );
        check("a", lines(linear(), vec![]), "nothing to draw");
        check(
            "a",
            lines(linear(), vec![FigurePoint::exact(f64::NAN, 1.0)]),
            "not finite",
        );
        let log = Axis::log("x", None);
        check(
            "a",
            lines(log, vec![FigurePoint::exact(0.0, 1.0)]),
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
    fn stored_figures_are_checked() {
        let plot = lines(Axis::linear("x", None), vec![FigurePoint::exact(0.1, 1e-7)]);
        let figure = Figure::new("a", "t", "", 1, plot).unwrap();
        let json = serde_json::to_string(&figure).unwrap();
        assert_eq!(serde_json::from_str::<Figure>(&json).unwrap(), figure);
        let broken = json.replace("\"key\":\"a\"", "\"key\":\"../a\"");
        let error = serde_json::from_str::<Figure>(&broken).unwrap_err();
        assert!(error.to_string().contains("for its key"), "{error}");
    }
}
