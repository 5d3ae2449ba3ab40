//! Axes, grid and their texts.

use super::sheet::{
    Area, DrawResult, FAINT_INK, GRID, INK, MARGIN_PX, Pixel, Sheet, TEXT_PX, WIDTH_PX, draw_line,
    rotate_upwards, style, width_px,
};
use super::span::AxisSpan;
use plotters::style::text_anchor::HPos;

/// Height of tick labels under the horizontal axis.
const TICKS_PX: i32 = 24;
/// Room for an axis title.
const TITLE_PX: i32 = 24;
/// Between tick labels and the vertical axis.
const TICK_GAP_PX: i32 = 12;
/// Room above and to the right of the plane, where the last labels reach out.
const EDGE_PX: i32 = 12;
/// Labels of categories are cut to this many characters.
pub(super) const LABEL_CHARACTERS: usize = 48;

/// Both axes before they are drawn.
pub(super) struct Axes {
    pub(super) x: HorizontalAxis,
    pub(super) y: AxisSpan,
    pub(super) x_title: String,
    pub(super) y_title: String,
}

/// The horizontal axis.
pub(super) enum HorizontalAxis {
    /// Of numbers.
    Numbers(AxisSpan),
    /// Of names, each one wide, from 0.
    Names(Vec<String>),
}

/// The plane between the axes, in pixels.
pub(super) struct PlotPlane {
    columns: [i32; 2],
    /// Bottom and top.
    rows: [i32; 2],
    x: (f64, f64),
    y: (f64, f64),
}

impl PlotPlane {
    /// The pixel of a pair of positions.
    pub(super) fn pixel(&self, x: f64, y: f64) -> Pixel {
        (
            interpolate_pixel(self.columns, self.x, x),
            interpolate_pixel(self.rows, self.y, y),
        )
    }
}

fn interpolate_pixel(ends: [i32; 2], (low, high): (f64, f64), at: f64) -> i32 {
    let length = f64::from(ends[1] - ends[0]);
    ends[0] + (length * (at - low) / (high - low)).round() as i32
}

impl Axes {
    /// Draws the axes and gives the plane between them.
    pub(super) fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<PlotPlane> {
        let [top, bottom] = sheet.body();
        let plane = PlotPlane {
            columns: [
                WIDTH_PX - MARGIN_PX - EDGE_PX - self.plane_px(),
                WIDTH_PX - MARGIN_PX - EDGE_PX,
            ],
            rows: [bottom - self.bottom_px(), top + EDGE_PX],
            x: match &self.x {
                HorizontalAxis::Numbers(span) => (span.low, span.high),
                HorizontalAxis::Names(names) => (0.0, names.len() as f64),
            },
            y: (self.y.low, self.y.high),
        };
        self.draw_vertical(sheet.area(), &plane)?;
        self.draw_horizontal(sheet.area(), &plane)?;
        self.draw_titles(sheet, &plane)?;
        Ok(plane)
    }

    /// Height of everything under the plane.
    pub(super) fn bottom_px(&self) -> i32 {
        let labels = match &self.x {
            HorizontalAxis::Numbers(_) => TICKS_PX,
            HorizontalAxis::Names(names) => names_px(names, self.plane_px()),
        };
        labels + TITLE_PX
    }

    fn plane_px(&self) -> i32 {
        let labels = width_px(self.y.longest_label(), TEXT_PX - 1);
        WIDTH_PX - 2 * MARGIN_PX - EDGE_PX - labels - TICK_GAP_PX - TITLE_PX
    }

    fn draw_vertical(&self, area: &Area<'_>, plane: &PlotPlane) -> DrawResult<()> {
        let text = style(TEXT_PX - 1, &INK, HPos::Right);
        let [left, right] = plane.columns;
        for tick in self.y.ticks() {
            let y = interpolate_pixel(plane.rows, plane.y, tick);
            draw_line(area, &[(left, y), (right, y)], GRID, 1)?;
            area.draw_text(&self.y.label(tick), &text, (left - TICK_GAP_PX / 2, y))?;
        }
        draw_line(
            area,
            &[(left, plane.rows[0]), (left, plane.rows[1])],
            FAINT_INK,
            1,
        )
    }

    fn draw_horizontal(&self, area: &Area<'_>, plane: &PlotPlane) -> DrawResult<()> {
        let [bottom, top] = plane.rows;
        match &self.x {
            HorizontalAxis::Names(names) => draw_names_below(area, names, plane.columns, bottom)?,
            HorizontalAxis::Numbers(span) => {
                let text = style(TEXT_PX - 1, &INK, HPos::Center);
                for tick in span.ticks() {
                    let x = interpolate_pixel(plane.columns, plane.x, tick);
                    draw_line(area, &[(x, bottom), (x, top)], GRID, 1)?;
                    area.draw_text(&span.label(tick), &text, (x, bottom + TICKS_PX / 2))?;
                }
            }
        }
        let ends = plane.columns.map(|x| (x, bottom));
        draw_line(area, &ends, FAINT_INK, 1)
    }

    fn draw_titles(&self, sheet: &Sheet<'_>, plane: &PlotPlane) -> DrawResult<()> {
        let text = style(TEXT_PX, &INK, HPos::Center);
        let below = (
            pixel_share(plane.columns, 1, 2),
            sheet.body()[1] - TITLE_PX / 2,
        );
        sheet.area().draw_text(&self.x_title, &text, below)?;
        let beside = (MARGIN_PX + TEXT_PX / 2, pixel_share(plane.rows, 1, 2));
        sheet
            .area()
            .draw_text(&self.y_title, &rotate_upwards(&text), beside)
    }
}

/// Height of the names: one line, or the length of the longest if they are upright.
pub(super) fn names_px(names: &[String], width: i32) -> i32 {
    if fit_flat(names, width) {
        TICKS_PX
    } else {
        longest_px(names) + TICK_GAP_PX
    }
}

/// Width of the longest name.
pub(super) fn longest_px(names: &[String]) -> i32 {
    let widths = names
        .iter()
        .map(|name| width_px(&shorten_name(name, LABEL_CHARACTERS), TEXT_PX - 1));
    widths.max().unwrap_or(0)
}

fn fit_flat(names: &[String], width: i32) -> bool {
    let room = width / (names.len() as i32).max(1);
    longest_px(names) + TICK_GAP_PX / 2 <= room
}

/// A name of at most so many characters: without its middle if it is longer, because the names of a
/// figure often begin or end alike.
pub(super) fn shorten_name(name: &str, most: usize) -> String {
    let characters: Vec<char> = name.chars().collect();
    if characters.len() <= most {
        return name.to_owned();
    }
    let kept = most / 2;
    let end = &characters[characters.len() - (most - 1 - kept)..];
    let [begin, end] = [&characters[..kept], end].map(|part| part.iter().collect::<String>());
    format!("{begin}…{end}")
}

/// Writes names under equal shares of a line, upright if they do not fit.
pub(super) fn draw_names_below(
    area: &Area<'_>,
    names: &[String],
    ends: [i32; 2],
    y: i32,
) -> DrawResult<()> {
    let flat = fit_flat(names, ends[1] - ends[0]);
    let text = style(
        TEXT_PX - 1,
        &INK,
        if flat { HPos::Center } else { HPos::Right },
    );
    let text = if flat { text } else { rotate_upwards(&text) };
    let below = if flat { TICKS_PX / 2 } else { TICK_GAP_PX / 2 };
    for (index, name) in names.iter().enumerate() {
        let at = (pixel_share(ends, 2 * index + 1, 2 * names.len()), y + below);
        area.draw_text(&shorten_name(name, LABEL_CHARACTERS), &text, at)?;
    }
    Ok(())
}

/// The pixel after `part` of `parts` of a line.
pub(super) fn pixel_share(ends: [i32; 2], part: usize, parts: usize) -> i32 {
    let length = f64::from(ends[1] - ends[0]);
    ends[0] + (length * part as f64 / parts as f64).round() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_both_ends() {
        assert_eq!(shorten_name("llc.size_kib", 48), "llc.size_kib");
        for most in [24, 25, 48] {
            let long = format!("machine.{}.interval_cycles", "x".repeat(60));
            let short = shorten_name(&long, most);
            assert_eq!(short.chars().count(), most, "{short}");
            assert!(
                short.starts_with("machine.") && short.ends_with("_cycles"),
                "{short}"
            );
        }
    }
}
