//! Heat maps.

use super::axes::{
    LABEL_CHARACTERS, draw_names_below, longest_px, names_px, pixel_share, shorten_name,
};
use super::sheet::{
    Area, DrawResult, INK, MARGIN_PX, NOTHING, Sheet, TEXT_PX, WIDTH_PX, draw_line, fill_box,
    rotate_upwards, style, width_px,
};
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::cell::number_text;
use crate::figure::HeatMap;
use plotters::prelude::{BLACK, RGBColor, ViridisRGB, WHITE};
use plotters::style::text_anchor::HPos;

const ROW_PX: i32 = 28;
/// Room for an axis title.
const TITLE_PX: i32 = 24;
/// Above the cells.
const EDGE_PX: i32 = 12;
/// Around row names.
const GAP_PX: i32 = 8;
const SCALE_PX: i32 = 16;
/// Room for the scale, its ticks and its title.
const BESIDE_PX: i32 = 110;
const STEPS: usize = 64;
/// A row of few cells is not drawn lower than this, so that the scale has room.
const LEAST_PX: i32 = 140;

/// The cells' corner pixels and the scale of their colours.
struct HeatField {
    columns: [i32; 2],
    rows: [i32; 2],
    span: AxisSpan,
}

impl HeatMap {
    fn columns_px(&self) -> [i32; 2] {
        let left = MARGIN_PX + TITLE_PX + longest_px(&self.rows) + GAP_PX;
        [left, WIDTH_PX - MARGIN_PX - BESIDE_PX]
    }

    fn rows_px(&self) -> i32 {
        (ROW_PX * self.rows.len() as i32).max(LEAST_PX)
    }

    fn field(&self, top: i32) -> HeatField {
        let values = self.cells.iter().flatten().flatten().copied();
        HeatField {
            columns: self.columns_px(),
            rows: [top + EDGE_PX, top + EDGE_PX + self.rows_px()],
            span: AxisSpan::from_values(values, false),
        }
    }

    fn draw_cells(&self, area: &Area<'_>, field: &HeatField) -> DrawResult<()> {
        let (across, down) = (self.columns.len(), self.rows.len());
        for (row, cells) in self.cells.iter().enumerate() {
            let y = [row, row + 1].map(|r| pixel_share(field.rows, r, down));
            for (column, value) in cells.iter().enumerate() {
                let x = [column, column + 1].map(|c| pixel_share(field.columns, c, across));
                draw_cell(area, [(x[0], y[0]), (x[1], y[1])], *value, &field.span)?;
            }
        }
        Ok(())
    }

    fn draw_names(&self, area: &Area<'_>, field: &HeatField) -> DrawResult<()> {
        draw_names_below(area, &self.columns, field.columns, field.rows[1])?;
        let text = style(TEXT_PX - 1, &INK, HPos::Right);
        for (row, name) in self.rows.iter().enumerate() {
            let y = pixel_share(field.rows, 2 * row + 1, 2 * self.rows.len());
            area.draw_text(
                &shorten_name(name, LABEL_CHARACTERS),
                &text,
                (field.columns[0] - GAP_PX, y),
            )?;
        }
        Ok(())
    }

    fn draw_titles(&self, sheet: &Sheet<'_>, field: &HeatField) -> DrawResult<()> {
        let text = style(TEXT_PX, &INK, HPos::Center);
        let below = (
            pixel_share(field.columns, 1, 2),
            sheet.body()[1] - TITLE_PX / 2,
        );
        sheet.area().draw_text(&self.x, &text, below)?;
        let middle = pixel_share(field.rows, 1, 2);
        let upright = rotate_upwards(&text);
        let beside = (MARGIN_PX + TEXT_PX / 2, middle);
        sheet.area().draw_text(&self.y, &upright, beside)?;
        let right = (WIDTH_PX - MARGIN_PX - TEXT_PX / 2, middle);
        sheet
            .area()
            .draw_text(&self.value.heading(), &upright, right)
    }
}

/// The colour of a value, and one for text on it.
fn colours(value: f64, span: &AxisSpan) -> (RGBColor, RGBColor) {
    let ground = ViridisRGB::get_color_normalized(value, span.low, span.high);
    let RGBColor(red, green, blue) = ground;
    // Relative luminance, ITU-R BT.709.
    let light = 0.2126 * f64::from(red) + 0.7152 * f64::from(green) + 0.0722 * f64::from(blue);
    (ground, if light > 120.0 { BLACK } else { WHITE })
}

fn draw_cell(
    area: &Area<'_>,
    corners: [(i32, i32); 2],
    value: Option<f64>,
    span: &AxisSpan,
) -> DrawResult<()> {
    let Some(value) = value else {
        return fill_box(area, corners, NOTHING);
    };
    let (ground, ink) = colours(value, span);
    fill_box(area, corners, ground)?;
    let text = number_text(value, 2);
    let [from, to] = corners;
    let fits = width_px(&text, TEXT_PX - 1) < to.0 - from.0 && to.1 - from.1 >= TEXT_PX;
    if fits {
        let middle = (i32::midpoint(from.0, to.0), i32::midpoint(from.1, to.1));
        area.draw_text(&text, &style(TEXT_PX - 1, &ink, HPos::Center), middle)?;
    }
    Ok(())
}

/// The scale of colours next to the cells.
fn draw_scale(area: &Area<'_>, field: &HeatField) -> DrawResult<()> {
    let left = field.columns[1] + 2 * GAP_PX;
    let upwards = [field.rows[1], field.rows[0]];
    let reach = field.span.high - field.span.low;
    for step in 0..STEPS {
        let value = field.span.low + reach * (step as f64 + 0.5) / STEPS as f64;
        let y = [step, step + 1].map(|s| pixel_share(upwards, s, STEPS));
        let corners = [(left, y[1]), (left + SCALE_PX, y[0])];
        fill_box(area, corners, colours(value, &field.span).0)?;
    }
    let text = style(TEXT_PX - 1, &INK, HPos::Left);
    for tick in field.span.ticks() {
        let height = f64::from(upwards[1] - upwards[0]);
        let y = upwards[0] + ((tick - field.span.low) / reach * height).round() as i32;
        let right = left + SCALE_PX;
        draw_line(area, &[(right, y), (right + GAP_PX / 2, y)], INK, 1)?;
        area.draw_text(&field.span.label(tick), &text, (right + GAP_PX, y))?;
    }
    Ok(())
}

impl Chart for HeatMap {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (vec![], LegendMark::Box)
    }

    fn height_px(&self) -> i32 {
        let [left, right] = self.columns_px();
        let names = names_px(&self.columns, right - left);
        EDGE_PX + self.rows_px() + names + TITLE_PX
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let field = self.field(sheet.body()[0]);
        self.draw_cells(sheet.area(), &field)?;
        self.draw_names(sheet.area(), &field)?;
        self.draw_titles(sheet, &field)?;
        draw_scale(sheet.area(), &field)
    }
}
