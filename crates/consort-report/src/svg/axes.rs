//! Axes, grid and their texts.

use super::ink::{
    Area, Drawn, FAINT_INK, GRID, INK, Pixel, TEXT_PX, line, style, upwards, width_px,
};
use super::sheet::{MARGIN_PX, Sheet, WIDTH_PX};
use super::span::Span;
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
const LABEL_CHARACTERS: usize = 30;

/// Both axes before they are drawn.
pub(super) struct Axes {
    pub(super) x: Horizontal,
    pub(super) y: Span,
    pub(super) x_title: String,
    pub(super) y_title: String,
}

/// The horizontal axis.
pub(super) enum Horizontal {
    /// Of numbers.
    Numbers(Span),
    /// Of names, each one wide, from 0.
    Names(Vec<String>),
}

impl Horizontal {
    fn range(&self) -> (f64, f64) {
        match self {
            Self::Numbers(span) => (span.low, span.high),
            Self::Names(names) => (0.0, names.len() as f64),
        }
    }
}

/// The plane between the axes, in pixels.
pub(super) struct Plane {
    columns: [i32; 2],
    /// Bottom and top.
    rows: [i32; 2],
    x: (f64, f64),
    y: (f64, f64),
}

impl Plane {
    /// The pixel of a pair of positions.
    pub(super) fn pixel(&self, x: f64, y: f64) -> Pixel {
        (
            between(self.columns, self.x, x),
            between(self.rows, self.y, y),
        )
    }
}

fn between(ends: [i32; 2], (low, high): (f64, f64), at: f64) -> i32 {
    let length = f64::from(ends[1] - ends[0]);
    ends[0] + (length * (at - low) / (high - low)).round() as i32
}

impl Axes {
    /// Draws the axes and gives the plane between them.
    pub(super) fn draw(&self, sheet: &Sheet<'_>) -> Drawn<Plane> {
        let [top, bottom] = sheet.body();
        let plane = Plane {
            columns: [
                WIDTH_PX - MARGIN_PX - EDGE_PX - self.plane_px(),
                WIDTH_PX - MARGIN_PX - EDGE_PX,
            ],
            rows: [bottom - self.bottom_px(), top + EDGE_PX],
            x: self.x.range(),
            y: (self.y.low, self.y.high),
        };
        self.draw_vertical(sheet.whole(), &plane)?;
        self.draw_horizontal(sheet.whole(), &plane)?;
        self.draw_titles(sheet, &plane)?;
        Ok(plane)
    }

    /// Height of everything under the plane.
    pub(super) fn bottom_px(&self) -> i32 {
        let labels = match &self.x {
            Horizontal::Numbers(_) => TICKS_PX,
            Horizontal::Names(names) => names_px(names, self.plane_px()),
        };
        labels + TITLE_PX
    }

    fn plane_px(&self) -> i32 {
        let labels = width_px(self.y.longest_label(), TEXT_PX - 1);
        WIDTH_PX - 2 * MARGIN_PX - EDGE_PX - labels - TICK_GAP_PX - TITLE_PX
    }

    fn draw_vertical(&self, area: &Area<'_>, plane: &Plane) -> Drawn<()> {
        let text = style(TEXT_PX - 1, &INK, HPos::Right);
        let [left, right] = plane.columns;
        for tick in self.y.ticks() {
            let y = between(plane.rows, plane.y, tick);
            line(area, &[(left, y), (right, y)], GRID, 1)?;
            area.draw_text(&self.y.label(tick), &text, (left - TICK_GAP_PX / 2, y))?;
        }
        line(
            area,
            &[(left, plane.rows[0]), (left, plane.rows[1])],
            FAINT_INK,
            1,
        )
    }

    fn draw_horizontal(&self, area: &Area<'_>, plane: &Plane) -> Drawn<()> {
        let [bottom, top] = plane.rows;
        match &self.x {
            Horizontal::Names(names) => names_below(area, names, plane.columns, bottom)?,
            Horizontal::Numbers(span) => {
                let text = style(TEXT_PX - 1, &INK, HPos::Center);
                for tick in span.ticks() {
                    let x = between(plane.columns, plane.x, tick);
                    line(area, &[(x, bottom), (x, top)], GRID, 1)?;
                    area.draw_text(&span.label(tick), &text, (x, bottom + TICKS_PX / 2))?;
                }
            }
        }
        let ends = plane.columns.map(|x| (x, bottom));
        line(area, &ends, FAINT_INK, 1)
    }

    fn draw_titles(&self, sheet: &Sheet<'_>, plane: &Plane) -> Drawn<()> {
        let text = style(TEXT_PX, &INK, HPos::Center);
        let below = (share(plane.columns, 1, 2), sheet.body()[1] - TITLE_PX / 2);
        sheet.whole().draw_text(&self.x_title, &text, below)?;
        let beside = (MARGIN_PX + TEXT_PX / 2, share(plane.rows, 1, 2));
        sheet
            .whole()
            .draw_text(&self.y_title, &upwards(&text), beside)
    }
}

/// Height that the names need: a line, or the longest where they stand upright.
pub(super) fn names_px(names: &[String], width: i32) -> i32 {
    if lie_flat(names, width) {
        TICKS_PX
    } else {
        longest_px(names) + TICK_GAP_PX
    }
}

/// Width of the longest name.
pub(super) fn longest_px(names: &[String]) -> i32 {
    let widths = names.iter().map(|name| width_px(&cut(name), TEXT_PX - 1));
    widths.max().unwrap_or(0)
}

fn lie_flat(names: &[String], width: i32) -> bool {
    let room = width / (names.len() as i32).max(1);
    longest_px(names) + TICK_GAP_PX / 2 <= room
}

/// A name that fits beside an axis.
pub(super) fn cut(name: &str) -> String {
    if name.chars().count() <= LABEL_CHARACTERS {
        return name.to_owned();
    }
    let kept: String = name.chars().take(LABEL_CHARACTERS - 1).collect();
    format!("{kept}…")
}

/// Writes names under equal shares of a line, upright where they do not fit.
pub(super) fn names_below(area: &Area<'_>, names: &[String], ends: [i32; 2], y: i32) -> Drawn<()> {
    let flat = lie_flat(names, ends[1] - ends[0]);
    let text = style(
        TEXT_PX - 1,
        &INK,
        if flat { HPos::Center } else { HPos::Right },
    );
    let text = if flat { text } else { upwards(&text) };
    let below = if flat { TICKS_PX / 2 } else { TICK_GAP_PX / 2 };
    for (index, name) in names.iter().enumerate() {
        let at = (share(ends, 2 * index + 1, 2 * names.len()), y + below);
        area.draw_text(&cut(name), &text, at)?;
    }
    Ok(())
}

/// The pixel after `part` of `parts` of a line.
pub(super) fn share(ends: [i32; 2], part: usize, parts: usize) -> i32 {
    let length = f64::from(ends[1] - ends[0]);
    ends[0] + (length * part as f64 / parts as f64).round() as i32
}
