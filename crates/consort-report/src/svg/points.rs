//! Points, with or without lines between them.

use super::axes::{Axes, Horizontal};
use super::ink::{Drawn, FAINT_INK, Pixel, colour, line, marker, whisker};
use super::sheet::Sheet;
use super::span::Span;
use super::{Chart, Mark};
use crate::figure::{Axis, Lines, Point, PointSeries, Scatter};

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
        x: Horizontal::Numbers(Span::of(across.into_iter(), x.log)),
        y: Span::of(up.into_iter(), y.log),
        x_title: x.heading(),
        y_title: y.heading(),
    }
}

/// The ends of a point's interval.
fn ends(point: &Point) -> [f64; 2] {
    let half = point.ci95.unwrap_or(0.0);
    [point.y - half, point.y + half]
}

fn names(series: &[PointSeries]) -> Vec<&str> {
    let named = series.len() > 1;
    let names = series.iter().filter(|_| named);
    names.map(|series| series.name.as_str()).collect()
}

/// Conversion of points to pixels: along a line, and then one by one.
struct Pen<'s, 'a> {
    sheet: &'s Sheet<'a>,
    joined: bool,
}

impl Pen<'_, '_> {
    fn draw(&self, axes: &Axes, series: &[PointSeries], diagonal: bool) -> Drawn<()> {
        let Horizontal::Numbers(across) = &axes.x else {
            return Ok(());
        };
        let plane = axes.draw(self.sheet)?;
        let place = |x: f64, y: f64| Some(plane.pixel(across.place(x)?, axes.y.place(y)?));
        if diagonal {
            let corners = [across.low, across.high].map(|v| plane.pixel(v, v));
            line(self.sheet.whole(), &corners, FAINT_INK, 1)?;
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
    ) -> Drawn<()> {
        let area = self.sheet.whole();
        let pixels: Vec<Pixel> = series
            .points
            .iter()
            .filter_map(|p| place(p.x, p.y))
            .collect();
        if self.joined {
            line(area, &pixels, colour(index), 2)?;
        }
        for point in series.points.iter().filter(|p| p.ci95.is_some()) {
            let [low, high] = ends(point).map(|y| place(point.x, y));
            if let Some((x, top)) = high {
                // On a logarithmic axis an interval may reach below every tick.
                let bottom = low.map_or(lowest, |(_, y)| y);
                whisker(area, x, [bottom, top], colour(index))?;
            }
        }
        pixels
            .into_iter()
            .try_for_each(|at| marker(area, at, index))
    }
}

impl Chart for Lines {
    fn legend(&self) -> (Vec<&str>, Mark) {
        (names(&self.series), Mark::JoinedPoint)
    }

    fn height_px(&self) -> i32 {
        PLANE_PX + axes(&self.x, &self.y, &self.series, false).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> Drawn<()> {
        let axes = axes(&self.x, &self.y, &self.series, false);
        let joined = true;
        Pen { sheet, joined }.draw(&axes, &self.series, false)
    }
}

impl Chart for Scatter {
    fn legend(&self) -> (Vec<&str>, Mark) {
        (names(&self.series), Mark::Point)
    }

    fn height_px(&self) -> i32 {
        PLANE_PX + axes(&self.x, &self.y, &self.series, self.diagonal).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> Drawn<()> {
        let axes = axes(&self.x, &self.y, &self.series, self.diagonal);
        let joined = false;
        Pen { sheet, joined }.draw(&axes, &self.series, self.diagonal)
    }
}
