//! Points, with or without lines between them.

use super::axes::{Axes, HorizontalAxis};
use super::ink::{DrawResult, FAINT_INK, Pixel, colour, draw_line, draw_marker, draw_whisker};
use super::sheet::Sheet;
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::figure::{Axis, FigurePoint, LineChart, PointSeries, ScatterChart};

/// Height of the plane.
const PLANE_PX: i32 = 360;

fn axes(x: &Axis, y: &Axis, series: &[PointSeries], square: bool) -> Axes {
    let points = || series.iter().flat_map(|s| &s.points);
    let xs = || points().map(|p| p.x);
    let ys = || points().flat_map(ends);
    let both = || xs().chain(ys()).collect::<Vec<_>>();
    let (across, up) = if square {
        (both(), both())
    } else {
        (xs().collect(), ys().collect())
    };
    Axes {
        x: HorizontalAxis::Numbers(AxisSpan::from_values(across.into_iter(), x.log)),
        y: AxisSpan::from_values(up.into_iter(), y.log),
        x_title: x.heading(),
        y_title: y.heading(),
    }
}

/// The ends of a point's interval.
fn ends(point: &FigurePoint) -> [f64; 2] {
    let half = point.ci95.unwrap_or(0.0);
    [point.y - half, point.y + half]
}

fn names(series: &[PointSeries]) -> Vec<&str> {
    let named = series.len() > 1;
    let names = series.iter().filter(|_| named);
    names.map(|series| series.name.as_str()).collect()
}

/// Conversion of points to pixels: along a line, and then one by one.
struct PointPen<'s, 'a> {
    sheet: &'s Sheet<'a>,
    joined: bool,
}

impl PointPen<'_, '_> {
    fn draw(&self, axes: &Axes, series: &[PointSeries], diagonal: bool) -> DrawResult<()> {
        let HorizontalAxis::Numbers(across) = &axes.x else {
            return Ok(());
        };
        let plane = axes.draw(self.sheet)?;
        let place = |x: f64, y: f64| Some(plane.pixel(across.position(x)?, axes.y.position(y)?));
        if diagonal {
            let corners = [across.low, across.high].map(|v| plane.pixel(v, v));
            draw_line(self.sheet.area(), &corners, FAINT_INK, 1)?;
        }
        let lowest = plane.pixel(across.low, axes.y.low).1;
        for (index, one) in series.iter().enumerate() {
            self.draw_series(index, one, &place, lowest)?;
        }
        Ok(())
    }

    fn draw_series(
        &self,
        index: usize,
        series: &PointSeries,
        place: &dyn Fn(f64, f64) -> Option<Pixel>,
        lowest: i32,
    ) -> DrawResult<()> {
        let area = self.sheet.area();
        let pixels: Vec<Pixel> = series
            .points
            .iter()
            .filter_map(|p| place(p.x, p.y))
            .collect();
        if self.joined {
            draw_line(area, &pixels, colour(index), 2)?;
        }
        for point in series.points.iter().filter(|p| p.ci95.is_some()) {
            let [low, high] = ends(point).map(|y| place(point.x, y));
            if let Some((x, top)) = high {
                // On a logarithmic axis an interval may reach below every tick.
                let bottom = low.map_or(lowest, |(_, y)| y);
                draw_whisker(area, x, [bottom, top], colour(index))?;
            }
        }
        pixels
            .into_iter()
            .try_for_each(|at| draw_marker(area, at, index))
    }
}

impl Chart for LineChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (names(&self.series), LegendMark::JoinedPoint)
    }

    fn height_px(&self) -> i32 {
        PLANE_PX + axes(&self.x, &self.y, &self.series, false).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let axes = axes(&self.x, &self.y, &self.series, false);
        let joined = true;
        PointPen { sheet, joined }.draw(&axes, &self.series, false)
    }
}

impl Chart for ScatterChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (names(&self.series), LegendMark::Point)
    }

    fn height_px(&self) -> i32 {
        PLANE_PX + axes(&self.x, &self.y, &self.series, self.diagonal).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let axes = axes(&self.x, &self.y, &self.series, self.diagonal);
        let joined = false;
        PointPen { sheet, joined }.draw(&axes, &self.series, self.diagonal)
    }
}
