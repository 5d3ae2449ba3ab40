//! Results on stdout as tables, CSV or JSON.
//!
//! Everything that is printed passes through here: texts from outside are made visible in tables, lines
//! and CSV, and escaped in JSON.

pub(crate) mod args;
pub(crate) mod file;
pub(crate) mod page;

use anyhow::Result;
use clap::ValueEnum;
use consort_core::{escape_invisible_lines, is_visible};
pub(crate) use consort_data::list::{OutputColumn, extra_number, extra_text, number, text};
use consort_data::{ColumnHead, List, lay_out};
pub(crate) use page::wrap;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{self, ErrorKind, StdoutLock, Write};
use std::path::Path;

/// Output format of a result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// For people.
    #[default]
    Table,
    /// One JSON document.
    Json,
    /// Comma-separated, with a header line.
    Csv,
}

/// stdout for results. A write after its reader has closed it, as with `consort policies | head -1`,
/// is dropped: a verb still ends with the status that its work deserves.
pub(crate) struct Stdout {
    stream: StdoutLock<'static>,
    is_closed: bool,
}

pub(crate) fn stdout() -> Stdout {
    Stdout {
        stream: io::stdout().lock(),
        is_closed: false,
    }
}

impl Stdout {
    fn write_unless_closed<T>(
        &mut self,
        otherwise: T,
        act: impl FnOnce(&mut StdoutLock<'static>) -> io::Result<T>,
    ) -> io::Result<T> {
        if self.is_closed {
            return Ok(otherwise);
        }
        // Rust ignores SIGPIPE, so that a closed reader is an error of the write.
        let result = act(&mut self.stream);
        self.is_closed = matches!(&result, Err(error) if error.kind() == ErrorKind::BrokenPipe);
        if self.is_closed {
            Ok(otherwise)
        } else {
            result
        }
    }
}

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_unless_closed(bytes.len(), |stream| stream.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.write_unless_closed((), Write::flush)
    }
}

/// Prints a result: `text` for people, rows as CSV, or the JSON document.
pub(crate) fn print<R, T: Serialize + ?Sized>(
    format: OutputFormat,
    columns: &[OutputColumn<R>],
    rows: &[R],
    document: &T,
    text: impl FnOnce() -> String,
) -> Result<()> {
    match format {
        OutputFormat::Table => print_text(&text()),
        OutputFormat::Csv => Ok(List::new(columns, rows).write_csv(&mut stdout())?),
        OutputFormat::Json => print_json(document),
    }
}

/// Prints a list whose rows are its JSON document too, and writes it to a file if one was requested.
pub(crate) fn print_list<R: Serialize>(
    out: Option<&Path>,
    format: OutputFormat,
    columns: &[OutputColumn<R>],
    rows: &[R],
) -> Result<()> {
    file::write_list(out, columns, rows)?;
    print(format, columns, rows, rows, || table(columns, rows))
}

/// Prints finished lines for people, broken at the width of the terminal.
pub(crate) fn print_text(text: &str) -> Result<()> {
    Ok(stdout().write_all(fit_text(page::line_width(), text).as_bytes())?)
}

/// Prints finished lines for people on stderr, broken at the width of the terminal.
pub(crate) fn print_text_to_stderr(text: &str) -> Result<()> {
    let text = fit_text(page::stderr_line_width(), text);
    Ok(io::stderr().lock().write_all(text.as_bytes())?)
}

fn fit_text(width: Option<usize>, text: &str) -> String {
    let safe = escape_invisible_lines(text);
    match width {
        Some(width) => page::wrap_lines(width, &safe),
        None => safe.into_owned(),
    }
}

/// Prints one JSON document and a newline.
pub(crate) fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<()> {
    Ok(stdout().write_all(json_text(value)?.as_bytes())?)
}

/// One JSON document and a newline, with escapes for characters that serde leaves as they are and
/// terminals act on. Such characters do not occur outside of strings, where escapes mean nothing.
pub(crate) fn json_text<T: Serialize + ?Sized>(value: &T) -> Result<String> {
    let document = serde_json::to_string_pretty(value)?;
    let mut text = String::with_capacity(document.len() + 1);
    for character in document.chars() {
        if character == '\n' || is_visible(character) {
            text.push(character);
        } else {
            let mut units = [0; 2];
            let units = character.encode_utf16(&mut units).iter();
            text.extend(units.map(|unit| format!("\\u{unit:04x}")));
        }
    }
    text.push('\n');
    Ok(text)
}

/// Lays rows out as a table of the width of stdout.
pub(crate) fn table<R>(columns: &[OutputColumn<R>], rows: &[R]) -> String {
    List::new(columns, rows).to_text(page::width())
}

/// Lays texts out under their heads as a table of the width of stdout.
pub(crate) fn grid(heads: &[ColumnHead], rows: impl Iterator<Item = Vec<String>>) -> String {
    lay_out(heads, &rows.collect::<Vec<_>>(), page::width())
}

/// A share in percent with so many digits behind the point, without the sign.
pub(crate) fn percent(share: f64, digits: usize) -> String {
    decimals(100.0 * share, digits)
}

/// A number with so many decimals, and without a sign if it rounds to zero.
pub(crate) fn decimals(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$}");
    match text.parse() {
        Ok(0.0) => text.trim_start_matches('-').to_owned(),
        _ => text,
    }
}

/// A value as `show` writes it; `-` if there is none.
pub(crate) fn or_dash<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(|| "-".to_owned(), show)
}

/// A count with its noun, in the plural except for one.
pub(crate) fn count(n: usize, noun: &str) -> String {
    format!("{n} {noun}{}", if n == 1 { "" } else { "s" })
}

/// The sources of a description, as lines under a heading.
pub(crate) fn sources(sources: &BTreeMap<String, String>) -> String {
    let lines = sources
        .iter()
        .map(|(key, text)| format!("  {key}: {text}\n"));
    let heading = std::iter::once("sources:\n".to_owned());
    heading.chain(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_is_singular_and_none_is_plural() {
        let counts = [0, 1, 2].map(|n| count(n, "plan"));
        assert_eq!(counts, ["0 plans", "1 plan", "2 plans"]);
    }

    #[test]
    fn zero_percent_has_no_sign() {
        let texts = [-1e-9, -0.004, 0.25].map(|share| percent(share, 1));
        assert_eq!(texts, ["0.0", "-0.4", "25.0"]);
    }

    #[test]
    fn number_that_rounds_to_zero_has_no_sign() {
        assert_eq!(decimals(-1e-9, 4), "0.0000");
        assert_eq!(decimals(-0.04, 1), "0.0");
        assert_eq!(decimals(-0.05001, 1), "-0.1");
        assert_eq!(decimals(f64::NEG_INFINITY, 1), "-inf");
    }
}
