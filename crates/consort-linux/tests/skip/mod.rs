//! A notice of tests that cannot run here.

use std::io::Write;

/// Writes the reason past the test harness's capture of what tests print.
pub(crate) fn skipped(reason: impl std::fmt::Display) {
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
