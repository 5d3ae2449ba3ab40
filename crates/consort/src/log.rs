//! The log on stderr, one line per event.
//!
//! Events name threads and control groups, whose names any user chooses. With a line end in a name, a
//! user could forge events of the daemon, so everything that is not visible is escaped.

use consort_core::escape_invisible;
use std::io::{self, Stderr, Write};

/// A writer of one event, which is written whole.
pub(crate) struct LineWriter<W = Stderr>(W);

impl LineWriter {
    /// A writer to stderr.
    pub(crate) fn new() -> Self {
        Self(io::stderr())
    }
}

impl<W: Write> Write for LineWriter<W> {
    fn write(&mut self, event: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(event);
        let line = text.strip_suffix('\n').unwrap_or(&text);
        let mut line = escape_invisible(line).into_owned();
        line.push('\n');
        self.0.write_all(line.as_bytes())?;
        Ok(event.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_with_a_line_end_in_a_name_stays_one_line() {
        let mut out = LineWriter(Vec::new());
        out.write_all(b"INFO moved a\nWARN fake\x1b[2J\n").unwrap();
        let text = String::from_utf8(out.0).unwrap();
        assert_eq!(text, "INFO moved a\\nWARN fake\\x1b[2J\n");
    }
}
