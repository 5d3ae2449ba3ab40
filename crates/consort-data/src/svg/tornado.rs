//! Tornado charts: horizontal bars to both sides of a line.

use super::axes::{LABEL_CHARACTERS, pixel_share, shorten_name};
use super::sheet::{
    Area, DrawResult, FAINT_INK, GRID, INK, MARGIN_PX, Sheet, TEXT_PX, WIDTH_PX, colour, draw_line,
    fill_box, style, width_px,
};
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::figure::Tornado;
use plotters::style::text_anchor::HPos;

const ROW_PX: i32 = 22;
/// Between the two bars of a row and its borders.
const BORDER_PX: i32 = 3;
/// Above the rows.
const EDGE_PX: i32 = 12;
/// Tick labels and the title of the axis.
const BELOW_PX: i32 = 48;
/// Between names and bars.
const GAP_PX: i32 = 8;
/// Colour of the threshold: it contrasts with those of the bars.
const THRESHOLD: usize = 3;

struct TornadoPlane {
    columns: [i32; 2],
    rows: [i32; 2],
    span: AxisSpan,
}

impl TornadoPlane {
    fn x(&self, value: f64) -> i32 {
        let length = f64::from(self.columns[1] - self.columns[0]);
        let reach = self.span.high - self.span.low;
        self.columns[0] + (length * (value - self.span.low) / reach).round() as i32
    }
}

impl Tornado {
    fn rows_px(&self) -> i32 {
        ROW_PX * self.rows.len() as i32
    }

    fn plane(&self, top: i32) -> TornadoPlane {
        let widths = self
            .rows
            .iter()
            .map(|row| width_px(&shorten_name(&row.name, LABEL_CHARACTERS), TEXT_PX - 1));
        let names = widths.max().unwrap_or(0);
        let values = self.rows.iter().flat_map(|row| row.values);
        TornadoPlane {
            columns: [MARGIN_PX + names + GAP_PX, WIDTH_PX - 2 * MARGIN_PX],
            rows: [top + EDGE_PX, top + EDGE_PX + self.rows_px()],
            span: AxisSpan::from_values(values.chain([self.baseline]).chain(self.threshold), false),
        }
    }

    fn draw_ticks(&self, sheet: &Sheet<'_>, plane: &TornadoPlane) -> DrawResult<()> {
        let text = style(TEXT_PX - 1, &INK, HPos::Center);
        let [top, bottom] = plane.rows;
        for tick in plane.span.ticks() {
            let x = plane.x(tick);
            draw_line(sheet.area(), &[(x, top), (x, bottom)], GRID, 1)?;
            let below = (x, bottom + BELOW_PX / 4);
            sheet
                .area()
                .draw_text(&plane.span.label(tick), &text, below)?;
        }
        let title = style(TEXT_PX, &INK, HPos::Center);
        let at = (pixel_share(plane.columns, 1, 2), bottom + 3 * BELOW_PX / 4);
        sheet.area().draw_text(&self.value.heading(), &title, at)
    }

    fn draw_rows(&self, area: &Area<'_>, plane: &TornadoPlane) -> DrawResult<()> {
        let text = style(TEXT_PX - 1, &INK, HPos::Right);
        let from = plane.x(self.baseline);
        for (index, row) in self.rows.iter().enumerate() {
            let y = [index, index + 1].map(|i| pixel_share(plane.rows, i, self.rows.len()));
            let name_at = (plane.columns[0] - GAP_PX, i32::midpoint(y[0], y[1]));
            area.draw_text(&shorten_name(&row.name, LABEL_CHARACTERS), &text, name_at)?;
            // Both ends may lie on one side: each has half of the height.
            let middle = i32::midpoint(y[0], y[1]);
            let halves = [[y[0] + BORDER_PX, middle], [middle, y[1] - BORDER_PX]];
            for (end, half) in halves.into_iter().enumerate() {
                let corners = [(from, half[0]), (plane.x(row.values[end]), half[1])];
                fill_box(area, corners, colour(end))?;
            }
        }
        Ok(())
    }

    fn draw_lines(&self, area: &Area<'_>, plane: &TornadoPlane) -> DrawResult<()> {
        let [top, bottom] = plane.rows;
        let left = plane.columns[0];
        draw_line(
            area,
            &[(left, bottom), (plane.columns[1], bottom)],
            FAINT_INK,
            1,
        )?;
        let base = plane.x(self.baseline);
        draw_line(area, &[(base, top), (base, bottom)], INK, 1)?;
        let Some(threshold) = self.threshold else {
            return Ok(());
        };
        let x = plane.x(threshold);
        draw_line(area, &[(x, top), (x, bottom)], colour(THRESHOLD), 2)
    }
}

impl Chart for Tornado {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        (
            self.ends.iter().map(String::as_str).collect(),
            LegendMark::Box,
        )
    }

    fn height_px(&self) -> i32 {
        EDGE_PX + self.rows_px() + BELOW_PX
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let plane = self.plane(sheet.body()[0]);
        self.draw_ticks(sheet, &plane)?;
        self.draw_rows(sheet.area(), &plane)?;
        self.draw_lines(sheet.area(), &plane)
    }
}
