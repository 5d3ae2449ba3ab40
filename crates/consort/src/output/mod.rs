//! Printing rows as a table, CSV or JSON.
//!
//! Everything that is printed goes through here: what comes from outside is made visible in tables,
//! lines and CSV, and escaped in JSON.

mod grid;
pub(crate) mod page;
mod stream;
mod wrap;

use crate::cli::OutputFormat;
use anyhow::Result;
use consort_core::{escape_invisible, escape_invisible_lines, is_visible};
pub(crate) use grid::ColumnHead;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
pub(crate) use stream::{Stdout, stdout};
pub(crate) use wrap::wrap;

/// One column of a printed table: header, alignment and text of a row.
pub(crate) struct OutputColumn<R> {
    pub(crate) header: &'static str,
    pub(crate) numeric: bool,
    /// True for a column that is left out where a table is too wide.
    pub(crate) extra: bool,
    pub(crate) text: fn(&R) -> String,
}

/// A column of text.
pub(crate) const fn text<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: false,
        extra: false,
        text,
    }
}

/// A column of numbers, aligned right.
pub(crate) const fn number<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: true,
        extra: false,
        text,
    }
}

/// A column of numbers that can be missed where a table is too wide.
pub(crate) const fn extra_number<R>(
    header: &'static str,
    text: fn(&R) -> String,
) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: true,
        extra: true,
        text,
    }
}

/// A column of text that can be missed where a table is too wide.
pub(crate) const fn extra_text<R>(header: &'static str, text: fn(&R) -> String) -> OutputColumn<R> {
    OutputColumn {
        header,
        numeric: false,
        extra: true,
        text,
    }
}

/// Lays rows out for people on stdout.
pub(crate) fn table<R>(columns: &[OutputColumn<R>], rows: &[R]) -> String {
    table_within(page::width(), columns, rows)
}

/// Lays rows out for people in so many characters; in as many as they take where there is no limit.
pub(crate) fn table_within<R>(
    width: Option<usize>,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> String {
    let head = |column: &OutputColumn<R>| ColumnHead {
        text: column.header.to_owned(),
        numeric: column.numeric,
        extra: column.extra,
    };
    let heads: Vec<ColumnHead> = columns.iter().map(head).collect();
    let texts = |row: &R| columns.iter().map(|c| (c.text)(row)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(texts).collect();
    grid::lay_out(&heads, &rows, width)
}

/// Lays texts out for people on stdout under their heads.
pub(crate) fn grid(heads: &[ColumnHead], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    grid::lay_out(heads, &rows, page::width())
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

/// Writes rows as CSV with the table's headers, made plain.
pub(crate) fn write_csv<R>(
    out: &mut dyn Write,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(header))?;
    for row in rows {
        writer.write_record(columns.iter().map(|c| escape_field((c.text)(row))))?;
    }
    writer.flush()?;
    Ok(())
}

/// A field that does nothing on a terminal, and is one line.
pub(crate) fn escape_field(field: String) -> String {
    match escape_invisible(&field) {
        std::borrow::Cow::Borrowed(_) => field,
        std::borrow::Cow::Owned(safe) => safe,
    }
}

/// A column's header as files have it.
pub(crate) fn header<R>(column: &OutputColumn<R>) -> String {
    plain_header(column.header)
}

/// A header without spaces and signs: `fp %` is `fp_percent`.
fn plain_header(header: &str) -> String {
    let letters = header.replace('%', "percent").replace(['(', ')'], "");
    letters.trim().replace(' ', "_")
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
