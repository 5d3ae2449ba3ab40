//! Printing rows as a table, CSV or JSON.
//!
//! Everything that is printed goes through here: what comes from outside is made visible in tables,
//! lines and CSV, and escaped in JSON.

pub(crate) mod page;
mod stream;
mod wrap;

use crate::cli::OutputFormat;
use anyhow::Result;
use consort_core::{escape_invisible_lines, is_visible};
pub(crate) use consort_data::list::{OutputColumn, extra_number, extra_text, number, text};
use consort_data::{ColumnHead, List, lay_out};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
pub(crate) use stream::{Stdout, stdout};
pub(crate) use wrap::wrap;

/// Lays rows out as a table of the width of stdout.
pub(crate) fn table<R>(columns: &[OutputColumn<R>], rows: &[R]) -> String {
    List::new(columns, rows).to_text(page::width())
}

/// Lays texts out under their heads as a table of the width of stdout.
pub(crate) fn grid(heads: &[ColumnHead], rows: impl Iterator<Item = Vec<String>>) -> String {
    lay_out(heads, &rows.collect::<Vec<_>>(), page::width())
}

/// Prints finished lines for people, broken where the terminal ends.
pub(crate) fn print_text(out: &mut Stdout, text: &str) -> std::io::Result<()> {
    out.write_all(fit_text(page::line_width(), text).as_bytes())
}

/// Prints finished lines for people on stderr, broken where the terminal ends.
pub(crate) fn print_text_to_stderr(text: &str) -> std::io::Result<()> {
    let text = fit_text(page::stderr_line_width(), text);
    std::io::stderr().lock().write_all(text.as_bytes())
}

fn fit_text(width: Option<usize>, text: &str) -> String {
    let safe = escape_invisible_lines(text);
    match width {
        Some(width) => wrap::wrap_lines(width, &safe),
        None => safe.into_owned(),
    }
}

/// Writes rows as CSV with a header line.
pub(crate) fn write_csv<R>(
    out: &mut dyn Write,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    Ok(List::new(columns, rows).write_csv(out)?)
}

/// Writes one JSON document and a newline.
pub(crate) fn write_json<T: Serialize + ?Sized>(out: &mut dyn Write, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    writeln!(out, "{}", escape_json(&text))?;
    Ok(())
}

/// A JSON document with escapes for what serde leaves as it is and terminals act on. Outside of
/// strings, where escapes mean nothing, such characters do not occur.
fn escape_json(document: &str) -> String {
    let mut text = String::with_capacity(document.len());
    for character in document.chars() {
        if character == '\n' || is_visible(character) {
            text.push(character);
        } else {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            text.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text
}

/// Prints rows in the format asked for; JSON prints `document`.
pub(crate) fn print<R, T: Serialize + ?Sized>(
    out: &mut Stdout,
    format: OutputFormat,
    columns: &[OutputColumn<R>],
    rows: &[R],
    document: &T,
) -> Result<()> {
    match format {
        OutputFormat::Table => print_text(out, &table(columns, rows))?,
        OutputFormat::Csv => write_csv(out, columns, rows)?,
        OutputFormat::Json => write_json(out, document)?,
    }
    Ok(())
}

/// The sources of a description, as lines under a heading.
pub(crate) fn sources(sources: &BTreeMap<String, String>) -> String {
    let lines = sources
        .iter()
        .map(|(key, text)| format!("  {key}: {text}\n"));
    let heading = std::iter::once("sources:\n".to_owned());
    heading.chain(lines).collect()
}
