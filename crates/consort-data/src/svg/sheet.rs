//! The sheet that a figure is on, with title and legend above and caption below, and what is drawn on
//! it: colours, text, lines and marks.

use super::{Chart, LegendMark};
use crate::figure::Figure;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type DrawResult<T> = Result<T, DrawingAreaErrorKind<std::io::Error>>;
pub(super) type Pixel = (i32, i32);

/// Text, axes.
pub(super) const INK: RGBColor = RGBColor(34, 34, 34);
/// Captions.
pub(super) const FAINT_INK: RGBColor = RGBColor(85, 85, 85);
/// Grid lines.
pub(super) const GRID: RGBColor = RGBColor(221, 221, 221);
/// Cells without a value.
pub(super) const NOTHING: RGBColor = RGBColor(238, 238, 238);

/// Colours that are distinguishable with any colour vision: M. Okabe and K. Ito,
/// "Color Universal Design", 2008; the strongest contrasts first.
const PALETTE: [RGBColor; crate::figure::MAX_SERIES] = [
    RGBColor(0, 114, 178),
    RGBColor(230, 159, 0),
    RGBColor(0, 158, 115),
    RGBColor(213, 94, 0),
    RGBColor(86, 180, 233),
    RGBColor(204, 121, 167),
    RGBColor(240, 228, 66),
    RGBColor(0, 0, 0),
];

/// The colour of a series.
pub(super) fn colour(series: usize) -> RGBColor {
    PALETTE[series % PALETTE.len()]
}

/// Ink for text on the colour of a series; `None` for the one whose colour dark pages invert.
pub(super) fn contrast(series: usize) -> Option<RGBColor> {
    match series % PALETTE.len() {
        0 => Some(WHITE),
        7 => None,
        _ => Some(BLACK),
    }
}

/// The drawing library divides sizes of text by this before it writes them as SVG.
const LIBRARY_MEASURE: f64 = 1.24;

/// The ordinary size of text, in pixels.
pub(super) const TEXT_PX: i32 = 13;

/// Mean width of a character against the height of the text; wide fonts have about 0.6.
const CHARACTER_WIDTH: f64 = 0.6;

/// About how wide a text is, in pixels.
pub(super) fn width_px(text: &str, size_px: i32) -> i32 {
    let characters = text.chars().count() as f64;
    (characters * CHARACTER_WIDTH * f64::from(size_px)).ceil() as i32
}

/// Sans-serif text of a size and colour, held at its left, centre or right.
pub(super) fn style<'a>(size_px: i32, colour: &'a RGBColor, held: HPos) -> TextStyle<'a> {
    let size = f64::from(size_px) * LIBRARY_MEASURE;
    TextStyle::from(("sans-serif", size).into_font())
        .color(colour)
        .pos(Pos::new(held, VPos::Center))
}

/// The same style, read from the bottom upwards.
pub(super) fn rotate_upwards<'a>(style: &TextStyle<'a>) -> TextStyle<'a> {
    style.transform(FontTransform::Rotate270)
}

/// A straight line through pixels.
pub(super) fn draw_line(
    area: &Area<'_>,
    path: &[Pixel],
    colour: RGBColor,
    width: u32,
) -> DrawResult<()> {
    area.draw(&PathElement::new(path.to_vec(), colour.stroke_width(width)))
}

/// A filled box.
pub(super) fn fill_box(area: &Area<'_>, corners: [Pixel; 2], colour: RGBColor) -> DrawResult<()> {
    area.draw(&Rectangle::new(corners, colour.filled()))
}

/// Half the width of a whisker's ends.
const WHISKER_PX: i32 = 4;

/// A vertical interval with its two ends.
pub(super) fn draw_whisker(
    area: &Area<'_>,
    x: i32,
    ends: [i32; 2],
    ink: RGBColor,
) -> DrawResult<()> {
    draw_line(area, &[(x, ends[0]), (x, ends[1])], ink, 1)?;
    for y in ends {
        draw_line(area, &[(x - WHISKER_PX, y), (x + WHISKER_PX, y)], ink, 1)?;
    }
    Ok(())
}

/// Draws a point of a series, whose colour and shape both depend on the series.
pub(super) fn draw_marker(area: &Area<'_>, at: Pixel, series: usize) -> DrawResult<()> {
    let ink = colour(series).filled();
    match series % 3 {
        0 => area.draw(&Circle::new(at, 4, ink)),
        1 => area.draw(&TriangleMarker::new(at, 5, ink)),
        _ => area.draw(&Cross::new(at, 4, colour(series).stroke_width(2))),
    }
}

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
            Some(line)
                if width_px(line, CAPTION_PX) + width_px(word, CAPTION_PX) + CAPTION_PX
                    <= WIDTH_PX - 2 * MARGIN_PX =>
            {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
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
        let text = style(TEXT_PX, &INK, HPos::Left);
        for (series, LegendEntry { name, at }) in plan.legend.iter().enumerate() {
            draw_mark(&self.root, plan.mark, (at.0 + HALF_MARK_PX, at.1), series)?;
            self.root.draw_text(name, &text, (at.0 + MARK_PX, at.1))?;
        }
        let caption = style(CAPTION_PX, &FAINT_INK, HPos::Left);
        let mut y = self.body[1] + ABOVE_CAPTION_PX + CAPTION_ROW_PX / 2;
        for line in &plan.caption {
            self.root.draw_text(line, &caption, (MARGIN_PX, y))?;
            y += CAPTION_ROW_PX;
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
