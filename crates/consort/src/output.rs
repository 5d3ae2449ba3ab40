//! Printing rows as a table, CSV or JSON.

use crate::cli::Format;
use anyhow::Result;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Write;

/// One column of a printed table: header, alignment and text of a row.
pub(crate) struct Column<R> {
    pub(crate) header: &'static str,
    pub(crate) numeric: bool,
    pub(crate) text: fn(&R) -> String,
}

/// A column of text.
pub(crate) const fn text<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: false,
        text,
    }
}

/// A column of numbers, aligned right.
pub(crate) const fn number<R>(header: &'static str, text: fn(&R) -> String) -> Column<R> {
    Column {
        header,
        numeric: true,
        text,
    }
}

/// Lays rows out for people.
pub(crate) fn table<R>(columns: &[Column<R>], rows: &[R]) -> String {
    let headings: Vec<String> = columns.iter().map(|c| c.header.to_owned()).collect();
    let numeric: Vec<bool> = columns.iter().map(|c| c.numeric).collect();
    let texts = |row: &R| columns.iter().map(|c| (c.text)(row)).collect();
    grid(&headings, &numeric, rows.iter().map(texts))
}

/// Lays texts out for people under their headings; numeric columns are aligned right.
pub(crate) fn grid(
    headings: &[String],
    numeric: &[bool],
    rows: impl Iterator<Item = Vec<String>>,
) -> String {
    let mut table = Table::new();
    table
        .load_style(presets::NOTHING)
        .set_content_arrangement(ContentArrangement::Disabled)
        .set_header(headings)
        .add_rows(rows);
    for (numeric, cells) in numeric.iter().zip(table.column_iter_mut()) {
        cells.set_padding((0, 2));
        if *numeric {
            cells.set_cell_alignment(CellAlignment::Right);
        }
    }
    trim_lines(&table.to_string())
}

fn trim_lines(text: &str) -> String {
    let lines = text.lines().map(str::trim_end);
    lines.map(|line| format!("{line}\n")).collect()
}

/// Writes rows as CSV with the table's headers, made plain.
pub(crate) fn csv<R>(out: &mut dyn Write, columns: &[Column<R>], rows: &[R]) -> Result<()> {
    let mut writer = csv::Writer::from_writer(out);
    writer.write_record(columns.iter().map(|c| plain(c.header)))?;
    for row in rows {
        writer.write_record(columns.iter().map(|c| (c.text)(row)))?;
    }
    writer.flush()?;
    Ok(())
}

/// A header without spaces and signs: `fp %` is `fp_percent`.
fn plain(header: &str) -> String {
    let letters = header.replace('%', "percent").replace(['(', ')'], "");
    letters.trim().replace(' ', "_")
}

/// Writes one JSON document and a newline.
pub(crate) fn json<T: Serialize + ?Sized>(out: &mut dyn Write, value: &T) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)?;
    Ok(())
}

/// Prints rows in the format asked for; JSON prints `document`.
pub(crate) fn print<R, T: Serialize + ?Sized>(
    out: &mut dyn Write,
    format: Format,
    columns: &[Column<R>],
    rows: &[R],
    document: &T,
) -> Result<()> {
    match format {
        Format::Table => out.write_all(table(columns, rows).as_bytes())?,
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
