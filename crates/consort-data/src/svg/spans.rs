//! Rows of spans over time: which thread ran where, when.

use super::axes::shorten_name;
use super::sheet::{
    Area, DrawResult, FAINT_INK, GRID, INK, MARGIN_PX, NOTHING, Sheet, TEXT_PX, WIDTH_PX, colour,
    contrast, draw_line, fill_box, style, width_px,
};
use super::span::AxisSpan;
use super::{Chart, LegendMark};
use crate::figure::{RowSpan, SpanChart};
use plotters::style::text_anchor::HPos;

const ROW_PX: i32 = 26;
/// Within a row, above and below its spans.
const BORDER_PX: i32 = 3;
/// Above the rows.
const EDGE_PX: i32 = 8;
/// Tick labels and the title of the axis.
const BELOW_PX: i32 = 48;
/// Between names and spans.
const GAP_PX: i32 = 8;
/// Names are cut to this many characters.
const NAME_CHARACTERS: usize = 24;
/// Height of a span whose share is hardly above 0.
const LEAST_PX: i32 = 2;

struct SpanPlane {
    columns: [i32; 2],
    rows: [i32; 2],
    time: AxisSpan,
    end: f64,
}

impl SpanPlane {
    /// Only up to the end of the run, which is seldom at a tick.
    fn x(&self, time: f64) -> i32 {
        let length = f64::from(self.columns[1] - self.columns[0]);
        self.columns[0] + (length * time.clamp(0.0, self.end) / self.end).round() as i32
    }

    /// Top and bottom of the spans of a row.
    fn row(&self, index: usize) -> [i32; 2] {
        let top = self.rows[0] + ROW_PX * index as i32;
        [top + BORDER_PX, top + ROW_PX - BORDER_PX]
    }
}

impl SpanChart {
    fn plane(&self, top: i32) -> SpanPlane {
        let names = self.rows.iter();
        let names =
            names.map(|row| width_px(&shorten_name(&row.name, NAME_CHARACTERS), TEXT_PX - 1));
        let rows_px = ROW_PX * self.rows.len() as i32;
        SpanPlane {
            columns: [
                MARGIN_PX + names.max().unwrap_or(0) + GAP_PX,
                WIDTH_PX - 2 * MARGIN_PX,
            ],
            rows: [top + EDGE_PX, top + EDGE_PX + rows_px],
            time: AxisSpan::from_values([0.0, self.end].into_iter(), false),
            end: self.end,
        }
    }

    fn draw_background(&self, sheet: &Sheet<'_>, plane: &SpanPlane) -> DrawResult<()> {
        let (area, [top, bottom]) = (sheet.area(), plane.rows);
        for &[from, to] in &self.shaded {
            let corners = [(plane.x(from), top), (plane.x(to), bottom)];
            fill_box(area, corners, NOTHING)?;
        }
        let text = style(TEXT_PX - 1, &INK, HPos::Center);
        let inside = plane.time.ticks().into_iter();
        for tick in inside.filter(|tick| (0.0..=self.end).contains(tick)) {
            let x = plane.x(tick);
            draw_line(area, &[(x, top), (x, bottom)], GRID, 1)?;
            let below = (x, bottom + BELOW_PX / 4);
            area.draw_text(&plane.time.label(tick), &text, below)?;
        }
        draw_line(area, &plane.columns.map(|x| (x, bottom)), FAINT_INK, 1)?;
        let title = style(TEXT_PX, &INK, HPos::Center);
        let middle = i32::midpoint(plane.columns[0], plane.columns[1]);
        let at = (middle, bottom + 3 * BELOW_PX / 4);
        area.draw_text(&self.time.heading(), &title, at)
    }

    fn draw_span(
        &self,
        area: &Area<'_>,
        plane: &SpanPlane,
        [top, bottom]: [i32; 2],
        span: &RowSpan,
    ) -> DrawResult<()> {
        let (left, right) = (plane.x(span.from), plane.x(span.to));
        let Some(series) = span.series else {
            let middle = i32::midpoint(top, bottom);
            return draw_line(area, &[(left, middle), (right, middle)], FAINT_INK, 1);
        };
        let full = f64::from(bottom - top);
        let height = (full * span.share.clamp(0.0, 1.0)).round() as i32;
        let corners = [
            (left, bottom - height.max(LEAST_PX)),
            (right.max(left + 1), bottom),
        ];
        fill_box(area, corners, colour(series))?;
        let room_px = right - left - 2 * GAP_PX;
        let size_px = TEXT_PX - 2;
        if let Some(ink) = contrast(series)
            && height > size_px
            && width_px(&span.label, size_px) < room_px
        {
            let text = style(size_px, &ink, HPos::Center);
            let at = (i32::midpoint(left, right), bottom - height / 2);
            area.draw_text(&span.label, &text, at)?;
        }
        Ok(())
    }
}

impl Chart for SpanChart {
    fn legend(&self) -> (Vec<&str>, LegendMark) {
        let names = self.series.iter().map(String::as_str);
        (names.collect(), LegendMark::Box)
    }

    fn height_px(&self) -> i32 {
        EDGE_PX + ROW_PX * self.rows.len() as i32 + BELOW_PX
    }

    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()> {
        let plane = self.plane(sheet.body()[0]);
        self.draw_background(sheet, &plane)?;
        let (area, text) = (sheet.area(), style(TEXT_PX - 1, &INK, HPos::Right));
        for (index, row) in self.rows.iter().enumerate() {
            let [top, bottom] = plane.row(index);
            let name_at = (plane.columns[0] - GAP_PX, i32::midpoint(top, bottom));
            area.draw_text(&shorten_name(&row.name, NAME_CHARACTERS), &text, name_at)?;
            for span in &row.spans {
                self.draw_span(area, &plane, [top, bottom], span)?;
            }
            for &at in &row.marks {
                let ends = [(plane.x(at), top - BORDER_PX), (plane.x(at), bottom)];
                draw_line(area, &ends, INK, 1)?;
            }
        }
        Ok(())
    }
}
