//! Grouped bars, and points with or without lines between them.

use super::axes::{Axes, HorizontalAxis};
use super::sheet::{
    DrawResult, FAINT_INK, INK, Pixel, Sheet, TEXT_PX, colour, draw_line, draw_marker,
    draw_whisker, fill_box, rotate_upwards, style, width_px,
};
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::cell::number_text;
use crate::figure::{Axis, Bar, BarChart, LineChart, PointSeries, ScatterChart};
use plotters::style::text_anchor::HPos;

const BARS_PX: i32 = 320;
const POINTS_PX: i32 = 360;
/// Decimals of a label.
const PLACES: usize = 3;
/// Share of a group's width that its bars take.
const FILLED: f64 = 0.8;
/// Share of the longest bar up to which bars below the baseline get no room of
/// their own on the axis: noise about 0 would else cost a tick.
const HARDLY: f64 = 0.03;

/// A lower bar is as good as not there.
const FLAT_PX: u32 = 2;
/// Between such a bar, or its whisker, and its label.
const ABOVE_PX: i32 = 4;

/// Writes the value of a bar without visible height above its place.
fn label_flat(sheet: &Sheet<'_>, corners: [Pixel; 2], room_px: i32, bar: Bar) -> DrawResult<()> {
    let text = if bar.value == 0.0 {
        "0".to_owned()
    } else {
        number_text(bar.value, PLACES)
    };
    let size_px = TEXT_PX - 2;
    let wide_px = width_px(&text, size_px);
    let ink = style(size_px, &FAINT_INK, HPos::Center);
    let middle = i32::midpoint(corners[0].0, corners[1].0);
    let base = corners[0].1.min(corners[1].1) - ABOVE_PX;
    if wide_px <= room_px {
        return sheet
            .area()
            .draw_text(&text, &ink, (middle, base - size_px / 2));
    }
    sheet
        .area()
        .draw_text(&text, &rotate_upwards(&ink), (middle, base - wide_px / 2))
}

impl BarChart {
    fn axes(&self) -> Axes {
        let bars = self.series.iter().flat_map(|s| s.bars.iter().flatten());
        let ends: Vec<f64> = bars
            .flat_map(|bar| interval_ends(bar.value, bar.ci95))
            .collect();
        let reach = ends.iter().map(|end| (end - self.baseline).abs());
        let hardly = HARDLY * reach.fold(0.0, f64::max);
        let beyond = |end: &f64| (self.baseline - end) > hardly || *end > self.baseline;
        let ends = ends.into_iter().filter(beyond);
        Axes {
            x: HorizontalAxis::Names(self.groups.clone()),
            y: AxisSpan::from_values(ends.chain([self.baseline]), false),
            x_title: self.category.clone(),
            y_title: self.value.heading(),
        }
    }
}

/// The ends of an interval about a value; the value itself if there is none.
fn interval_ends(value: f64, ci95: Option<f64>) -> [f64; 2] {
    let half = ci95.unwrap_or(0.0);
    [value - half, value + half]
}

/// Names for the legend; a single series needs none.
fn series_names<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> Vec<&'a str> {
    let is_named = names.len() > 1;
    let names = names.filter(|_| is_named);
    names.map(String::as_str).collect()
}

impl Chart for BarChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        let names = self.series.iter().map(|series| &series.name);
        (series_names(names), LegendMark::Box)
    }

    fn height_px(&self) -> i32 {
        BARS_PX + self.axes().bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let plane = self.axes().draw(sheet)?;
        let pixel = |x: f64, y: f64| plane.pixel(x, y);
        let width = FILLED / self.series.len() as f64;
        for (index, series) in self.series.iter().enumerate() {
            for (group, bar) in series.bars.iter().enumerate() {
                let Some(bar) = bar else { continue };
                let left = group as f64 + (1.0 - FILLED) / 2.0 + index as f64 * width;
                let corners = [pixel(left, bar.value), pixel(left + width, self.baseline)];
                fill_box(sheet.area(), corners, colour(index))?;
                if corners[0].1.abs_diff(corners[1].1) < FLAT_PX {
                    let room_px = corners[1].0 - corners[0].0;
                    label_flat(sheet, corners, room_px, *bar)?;
                }
                if bar.ci95.is_some() {
                    let ends =
                        interval_ends(bar.value, bar.ci95).map(|y| pixel(left + width / 2.0, y));
                    draw_whisker(sheet.area(), ends[0].0, [ends[0].1, ends[1].1], INK)?;
                }
            }
        }
        let base = [0.0, self.groups.len() as f64].map(|x| pixel(x, self.baseline));
        draw_line(sheet.area(), &base, INK, 1)
    }
}

fn point_axes(x: &Axis, y: &Axis, series: &[PointSeries], square: bool) -> Axes {
    let points = || series.iter().flat_map(|s| &s.points);
    let xs = || points().map(|p| p.x);
    let ys = || points().flat_map(|p| interval_ends(p.y, p.ci95));
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

/// Draws points, along a line if they are `joined`, and then one by one.
fn draw_points(
    sheet: &Sheet<'_>,
    axes: &Axes,
    all: &[PointSeries],
    joined: bool,
    diagonal: bool,
) -> DrawResult<()> {
    let HorizontalAxis::Numbers(across) = &axes.x else {
        return Ok(());
    };
    let (area, plane) = (sheet.area(), axes.draw(sheet)?);
    let place = |x: f64, y: f64| Some(plane.pixel(across.position(x)?, axes.y.position(y)?));
    if diagonal {
        let corners = [across.low, across.high].map(|v| plane.pixel(v, v));
        draw_line(area, &corners, FAINT_INK, 1)?;
    }
    let lowest = plane.pixel(across.low, axes.y.low).1;
    for (index, series) in all.iter().enumerate() {
        let pixels = series.points.iter().filter_map(|p| place(p.x, p.y));
        let pixels: Vec<Pixel> = pixels.collect();
        if joined {
            draw_line(area, &pixels, colour(index), 2)?;
        }
        for point in series.points.iter().filter(|p| p.ci95.is_some()) {
            let [low, high] = interval_ends(point.y, point.ci95).map(|y| place(point.x, y));
            if let Some((x, top)) = high {
                // On a logarithmic axis an interval may reach below every tick.
                let bottom = low.map_or(lowest, |(_, y)| y);
                draw_whisker(area, x, [bottom, top], colour(index))?;
            }
        }
        for at in pixels {
            draw_marker(area, at, index)?;
        }
    }
    Ok(())
}

impl Chart for LineChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (
            series_names(self.series.iter().map(|series| &series.name)),
            LegendMark::JoinedPoint,
        )
    }

    fn height_px(&self) -> i32 {
        POINTS_PX + point_axes(&self.x, &self.y, &self.series, false).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let axes = point_axes(&self.x, &self.y, &self.series, false);
        draw_points(sheet, &axes, &self.series, true, false)
    }
}

impl Chart for ScatterChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (
            series_names(self.series.iter().map(|series| &series.name)),
            LegendMark::Point,
        )
    }

    fn height_px(&self) -> i32 {
        POINTS_PX + point_axes(&self.x, &self.y, &self.series, self.diagonal).bottom_px()
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let axes = point_axes(&self.x, &self.y, &self.series, self.diagonal);
        draw_points(sheet, &axes, &self.series, false, self.diagonal)
    }
}
