//! Colours, text and marks.

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
const PALETTE: [RGBColor; super::super::figure::MAX_SERIES] = [
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

/// A size in the drawing library's measure, of which SVG gets one 1.24th.
const LIBRARY_MEASURE: f64 = 1.24;

/// The ordinary size of text, in pixels.
pub(super) const TEXT_PX: i32 = 13;

/// Mean width of a character against the height of the text; wide fonts have
/// about 0.6.
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
