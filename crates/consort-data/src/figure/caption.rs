//! The text beneath a figure.

use super::{Figure, LineChart, Plot, ScatterChart};

impl Figure {
    /// The text beneath it: what to see, what it stands on, and what signs in
    /// the drawing mean that it does not say itself.
    pub fn caption(&self) -> String {
        let runs = match self.runs {
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
            Self::HeatMap(_) | Self::Tornado(_) => false,
        }
    }
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
