//! Figures as SVG.
//!
//! The same figure gives the same bytes on any host: there is no clock, no font
//! lookup, and logarithms come from `libm`. Text is in the reader's sans-serif
//! font, so widths are estimates on the generous side.

mod axes;
mod charts;
mod heat;
mod sheet;
mod span;
mod spans;
mod tornado;

use crate::figure::{Figure, Plot};
use plotters::prelude::{IntoDrawingArea, SVGBackend, WHITE};
use sheet::{DrawResult, Sheet};
use thiserror::Error;

/// Colours for those who read in the dark; elsewhere the figure is as it was drawn.
const DARK: &str = include_str!("dark.css");

/// A figure could not be drawn.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("cannot draw figure '{figure}': {cause}")]
pub struct SvgError {
    /// The figure.
    pub figure: String,
    /// The cause.
    pub cause: String,
}

/// One kind of figure on a sheet.
trait Chart {
    /// Names of the series and their kind of mark; no names if there is one series.
    fn legend(&self) -> (Vec<&str>, LegendMark);
    /// Height with axes and labels, in pixels.
    fn height_px(&self) -> i32;
    fn draw(&self, sheet: &Sheet<'_>) -> DrawResult<()>;
}

/// Look of a series in the legend.
#[derive(Clone, Copy)]
enum LegendMark {
    Box,
    Point,
    JoinedPoint,
}

/// Draws a figure as an SVG document, 900 pixels wide, on a white background, or a dark one
/// if the reader prefers that.
///
/// # Errors
/// If the drawing library refuses, which does not happen for checked figures.
pub fn draw(figure: &Figure) -> Result<String, SvgError> {
    let mut text = String::new();
    let drawn = match figure.plot() {
        Plot::Bars(bars) => draw_chart(&mut text, figure, bars),
        Plot::Lines(lines) => draw_chart(&mut text, figure, lines),
        Plot::Scatter(scatter) => draw_chart(&mut text, figure, scatter),
        Plot::HeatMap(map) => draw_chart(&mut text, figure, map),
        Plot::Tornado(tornado) => draw_chart(&mut text, figure, tornado),
        Plot::Spans(spans) => draw_chart(&mut text, figure, spans),
    };
    drawn.map_err(|cause| SvgError {
        figure: figure.key().to_owned(),
        cause: cause.to_string(),
    })?;
    // A label for readers who do not see the figure, and a style for dark pages.
    let label = crate::escape::escape(figure.title());
    let opening = format!("<svg role=\"img\" aria-label=\"{label}\" ");
    let style = format!(">\n<style>\n{DARK}</style>\n");
    Ok(text
        .replacen("<svg ", &opening, 1)
        .replacen(">\n", &style, 1))
}

fn draw_chart(text: &mut String, figure: &Figure, chart: &dyn Chart) -> DrawResult<()> {
    let plan = sheet::SheetPlan::for_figure(figure, chart);
    let root = SVGBackend::with_string(text, plan.size()).into_drawing_area();
    root.fill(&WHITE)?;
    let sheet = Sheet::from_plan(root, &plan);
    sheet.draw_frame(figure, &plan)?;
    chart.draw(&sheet)?;
    sheet.present()
}

#[cfg(test)]
mod tests;
