//! Grouped bars.

use super::axes::{Axes, HorizontalAxis};
use super::ink::{
    DrawResult, FAINT_INK, INK, Pixel, TEXT_PX, colour, draw_line, draw_whisker, fill_box,
    rotate_upwards, style, width_px,
};
use super::sheet::Sheet;
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::cell::number_text;
use crate::figure::{Bar, BarChart};
use plotters::style::text_anchor::HPos;

/// Height of the plane.
const PLANE_PX: i32 = 320;
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
        let ends: Vec<f64> = bars.flat_map(|bar| ends(*bar)).collect();
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

fn ends(bar: Bar) -> [f64; 2] {
    let half = bar.ci95.unwrap_or(0.0);
    [bar.value - half, bar.value + half]
}

impl Chart for BarChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        let named = self.series.len() > 1;
        let names = self.series.iter().filter(|_| named);
        (
            names.map(|series| series.name.as_str()).collect(),
            LegendMark::Box,
        )
    }

    fn height_px(&self) -> i32 {
        PLANE_PX + self.axes().bottom_px()
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
                    let ends = ends(*bar).map(|y| pixel(left + width / 2.0, y));
                    draw_whisker(sheet.area(), ends[0].0, [ends[0].1, ends[1].1], INK)?;
                }
            }
        }
        let base = [0.0, self.groups.len() as f64].map(|x| pixel(x, self.baseline));
        draw_line(sheet.area(), &base, INK, 1)
    }
}
