//! Messages of libbpf while it loads, kept for the error instead of written to stderr.

use libbpf_rs::{PrintLevel, set_print};
use std::sync::{Mutex, PoisonError};

/// Length of the kept end of the messages, characters: the verifier explains itself at length, and
/// its last words are the ones that matter.
const KEPT: usize = 400;

static SAID: Mutex<String> = Mutex::new(String::new());

/// Forgets earlier messages and listens.
pub(super) fn start_capture() {
    lock().clear();
    set_print(Some((PrintLevel::Warn, keep)));
}

/// The end of the messages since then, in one line.
pub(super) fn captured_text() -> String {
    let said = lock();
    let lines: Vec<&str> = said
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty())
        .collect();
    let line = lines.join("; ");
    let from = line.char_indices().rev().nth(KEPT).map_or(0, |(at, _)| at);
    line[from..].to_owned()
}

#[expect(clippy::needless_pass_by_value, reason = "libbpf-rs hands it over so")]
fn keep(_: PrintLevel, message: String) {
    lock().push_str(&message);
}

fn lock() -> std::sync::MutexGuard<'static, String> {
    SAID.lock().unwrap_or_else(PoisonError::into_inner)
}
