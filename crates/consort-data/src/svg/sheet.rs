//! The sheet that a figure is on: title and legend above, caption below, and
//! between them the body.

use super::ink::{
    Area, DrawResult, FAINT_INK, INK, Pixel, TEXT_PX, colour, draw_line, draw_marker, fill_box,
    style, width_px,
};
use super::{Chart, LegendMark};
use crate::figure::Figure;
use plotters::style::text_anchor::HPos;

/// Width of every figure.
pub(super) const WIDTH_PX: i32 = 900;
/// Empty border left and right.
pub(super) const MARGIN_PX: i32 = 16;

const TITLE_PX: i32 = 17;
const TITLE_HEIGHT_PX: i32 = 36;
const LEGEND_ROW_PX: i32 = 22;
const CAPTION_PX: i32 = 12;
const CAPTION_ROW_PX: i32 = 17;
const ABOVE_CAPTION_PX: i32 = 10;
/// From an entry's left edge to its text.
const MARK_PX: i32 = 22;
/// Half the width of a mark.
const HALF_MARK_PX: i32 = 8;
/// Between entries of the legend.
const GAP_PX: i32 = 22;

/// Positions of everything on the sheet, known before drawing.
pub(super) struct SheetPlan {
    legend: Vec<LegendEntry>,
    mark: LegendMark,
    caption: Vec<String>,
    body: [i32; 2],
}

struct LegendEntry {
    name: String,
    at: Pixel,
}

impl SheetPlan {
    pub(super) fn for_figure(figure: &Figure, chart: &dyn Chart) -> Self {
        let (names, mark) = chart.legend();
        let legend = entries(&names);
        let last = legend.iter().map(|entry| entry.at.1).max();
        let top = last.map_or(TITLE_HEIGHT_PX, |y| y + LEGEND_ROW_PX);
        Self {
            legend,
            mark,
            caption: wrap(&figure.caption()),
            body: [top, top + chart.height_px()],
        }
    }

    pub(super) fn size(&self) -> (u32, u32) {
        let rows = self.caption.len() as i32;
        let height = self.body[1] + 2 * ABOVE_CAPTION_PX + rows * CAPTION_ROW_PX;
        (WIDTH_PX.unsigned_abs(), height.unsigned_abs())
    }
}

/// Legend entries in rows, broken where the sheet ends.
fn entries(names: &[&str]) -> Vec<LegendEntry> {
    let mut at = (MARGIN_PX, TITLE_HEIGHT_PX + LEGEND_ROW_PX / 2);
    let mut entries = Vec::new();
    for name in names {
        let width = MARK_PX + width_px(name, TEXT_PX);
        if at.0 > MARGIN_PX && at.0 + width > WIDTH_PX - MARGIN_PX {
            at = (MARGIN_PX, at.1 + LEGEND_ROW_PX);
        }
        let name = (*name).to_owned();
        entries.push(LegendEntry { name, at });
        at.0 += width + GAP_PX;
    }
    entries
}

/// Lines that fit the sheet, broken between words.
fn wrap(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = vec![];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if fits_line(line, word) => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn fits_line(line: &str, word: &str) -> bool {
    let joined = width_px(line, CAPTION_PX) + width_px(word, CAPTION_PX) + CAPTION_PX;
    joined <= WIDTH_PX - 2 * MARGIN_PX
}

/// The sheet while it is drawn on.
pub(super) struct Sheet<'a> {
    root: Area<'a>,
    body: [i32; 2],
}

impl<'a> Sheet<'a> {
    pub(super) fn from_plan(root: Area<'a>, plan: &SheetPlan) -> Self {
        let body = plan.body;
        Self { root, body }
    }

    /// The whole sheet, for drawing by pixels.
    pub(super) fn area(&self) -> &Area<'a> {
        &self.root
    }

    /// Top and bottom of the body.
    pub(super) fn body(&self) -> [i32; 2] {
        self.body
    }

    /// Title, legend and caption.
    pub(super) fn draw_frame(&self, figure: &Figure, plan: &SheetPlan) -> DrawResult<()> {
        let title = style(TITLE_PX, &INK, HPos::Left);
        let at = (MARGIN_PX, TITLE_HEIGHT_PX / 2 + 2);
        self.root.draw_text(figure.title(), &title, at)?;
        self.draw_legend(plan)?;
        let caption = style(CAPTION_PX, &FAINT_INK, HPos::Left);
        let mut y = self.body[1] + ABOVE_CAPTION_PX + CAPTION_ROW_PX / 2;
        for line in &plan.caption {
            self.root.draw_text(line, &caption, (MARGIN_PX, y))?;
            y += CAPTION_ROW_PX;
        }
        Ok(())
    }

    fn draw_legend(&self, plan: &SheetPlan) -> DrawResult<()> {
        let text = style(TEXT_PX, &INK, HPos::Left);
        for (series, LegendEntry { name, at }) in plan.legend.iter().enumerate() {
            draw_mark(&self.root, plan.mark, (at.0 + HALF_MARK_PX, at.1), series)?;
            self.root.draw_text(name, &text, (at.0 + MARK_PX, at.1))?;
        }
        Ok(())
    }

    pub(super) fn present(&self) -> DrawResult<()> {
        self.root.present()
    }
}

fn draw_mark(area: &Area<'_>, mark: LegendMark, (x, y): Pixel, series: usize) -> DrawResult<()> {
    match mark {
        LegendMark::Box => {
            let half = HALF_MARK_PX * 3 / 4;
            fill_box(
                area,
                [(x - half, y - half), (x + half, y + half)],
                colour(series),
            )
        }
        LegendMark::Point => draw_marker(area, (x, y), series),
        LegendMark::JoinedPoint => {
            let ends = [(x - HALF_MARK_PX, y), (x + HALF_MARK_PX, y)];
            draw_line(area, &ends, colour(series), 2)?;
            draw_marker(area, (x, y), series)
        }
    }
}
