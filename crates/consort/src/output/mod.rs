//! Printing rows as a table, CSV or JSON.
//!
//! Everything that is printed goes through here: what comes from outside is made visible in tables,
//! lines and CSV, and escaped in JSON.

mod grid;
pub(crate) mod page;
mod stream;
mod wrap;

use crate::cli::Format;
use anyhow::Result;
use consort_core::{is_visible, visible, visible_lines};
pub(crate) use grid::Head;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;
pub(crate) use stream::{Stdout, stdout};
pub(crate) use wrap::wrap;

/// One column of a printed table: header, alignment and text of a row.
pub(crate) struct Column<R> {
    pub(crate) header: &'static str,
    pub(crate) numeric: bool,
    /// True for a column that is left out where a table is too wide.
    pub(crate) extra: bool,
    pub(crate) text: fn(&R) -> String,
}

/// A column of text.
pub(crate) const fn text<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: false,
        extra: false,
        text,
    }
}

/// A column of numbers, aligned right.
pub(crate) const fn number<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: true,
        extra: false,
        text,
    }
}

/// A column of numbers that can be missed where a table is too wide.
pub(crate) const fn extra<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: true,
        extra: true,
        text,
    }
}

/// A column of text that can be missed where a table is too wide.
pub(crate) const fn extra_text<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: false,
        extra: true,
        text,
    }
}

/// Lays rows out for people on stdout.
pub(crate) fn table<R>(columns: &[Column<R>], rows: &[R]) -> String {
    table_within(page::width(), columns, rows)
}

/// Lays rows out for people in so many characters; in as many as they take where there is no limit.
pub(crate) fn table_within<R>(width: Option<usize>, columns: &[Column<R>], rows: &[R]) -> String {
    let head = |column: &Column<R>| Head {
        text: column.header.to_owned(),
        numeric: column.numeric,
        extra: column.extra,
    };
    let heads: Vec<Head> = columns.iter().map(head).collect();
    let texts = |row: &R| columns.iter().map(|c| (c.text)(row)).collect();
    let rows: Vec<Vec<String>> = rows.iter().map(texts).collect();
    grid::lay_out(&heads, &rows, width)
}

/// Lays texts out for people on stdout under their heads.
pub(crate) fn grid(heads: &[Head], rows: impl Iterator<Item = Vec<String>>) -> String {
    let rows: Vec<Vec<String>> = rows.collect();
    grid::lay_out(heads, &rows, page::width())
}

/// Prints finished lines for people, broken where the terminal ends.
pub(crate) fn people(out: &mut Stdout, text: &str) -> std::io::Result<()> {
    out.write_all(fitted(page::told_width(), text).as_bytes())
}

/// Prints finished lines for people on stderr, broken where the terminal ends.
pub(crate) fn people_on_stderr(text: &str) -> std::io::Result<()> {
    let text = fitted(page::told_width_of_stderr(), text);
    std::io::stderr().lock().write_all(text.as_bytes())
}

fn fitted(width: Option<usize>, text: &str) -> String {
    let safe = visible_lines(text);
    match width {
        Some(width) => wrap::wrap_lines(width, &safe),
        None => safe.into_owned(),
    }
}

/// Writes rows as CSV with the table's headers, made plain.
pub(crate) fn csv<R>(out: &mut dyn Write, columns: &[Column<R>], rows: &[R]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(header))?;
    for row in rows {
        writer.write_record(columns.iter().map(|c| inert((c.text)(row))))?;
    }
    writer.flush()?;
    Ok(())
}

/// A field that does nothing on a terminal, and is one line.
pub(crate) fn inert(field: String) -> String {
    match visible(&field) {
        std::borrow::Cow::Borrowed(_) => field,
        std::borrow::Cow::Owned(safe) => safe,
    }
}

/// A column's header as files have it.
pub(crate) fn header<R>(column: &Column<R>) -> String {
    plain(column.header)
}

/// A header without spaces and signs: `fp %` is `fp_percent`.
fn plain(header: &str) -> String {
    let letters = header.replace('%', "percent").replace(['(', ')'], "");
    letters.trim().replace(' ', "_")
}

/// Writes one JSON document and a newline.
pub(crate) fn json<T: Serialize + ?Sized>(out: &mut dyn Write, value: &T) -> Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    writeln!(out, "{}", escaped(&text))?;
    Ok(())
}

/// A JSON document with escapes for what serde leaves as it is and terminals act on. Outside of
/// strings, where escapes mean nothing, such characters do not occur.
fn escaped(document: &str) -> String {
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
    format: Format,
    columns: &[Column<R>],
    rows: &[R],
    document: &T,
) -> Result<()> {
    match format {
        Format::Table => people(out, &table(columns, rows))?,
        Format::Csv => csv(out, columns, rows)?,
        Format::Json => json(out, document)?,
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
