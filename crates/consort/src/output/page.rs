//! Width of a page for people.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use terminal_size::{Width, terminal_size_of};

/// Characters in a line where no width is known, as for a file or a pipe.
const USUAL: usize = 100;

/// Set once, before any verb begins.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Lets tables be as wide as what is in them, as `--wide` asks for.
pub(crate) fn set_wide() {
    WIDE.store(true, Ordering::Relaxed);
}

/// Characters in a line of a table on stdout; none where lines may have any length.
pub(crate) fn width() -> Option<usize> {
    table_width(line_width())
}

/// The same on stderr.
pub(crate) fn stderr_width() -> Option<usize> {
    table_width(stderr_line_width())
}

fn table_width(reported: Option<usize>) -> Option<usize> {
    (!is_wide()).then(|| reported.unwrap_or(USUAL))
}

/// Characters in a line of stdout; none where nothing tells, or lines may have any length.
pub(super) fn line_width() -> Option<usize> {
    stream_width(io::stdout())
}

/// The same for stderr.
pub(super) fn stderr_line_width() -> Option<usize> {
    stream_width(io::stderr())
}

fn is_wide() -> bool {
    WIDE.load(Ordering::Relaxed)
}

/// COLUMNS wins, as in other tools, then the terminal.
fn stream_width(stream: impl AsFd) -> Option<usize> {
    let requested = std::env::var("COLUMNS").ok();
    let requested = requested.and_then(|columns| columns.parse().ok());
    let of_terminal = || terminal_size_of(stream).map(|(Width(columns), _)| usize::from(columns));
    let reported = requested
        .filter(|&columns| columns > 0)
        .or_else(of_terminal);
    reported.filter(|_| !is_wide())
}
