//! Width of a page for people, and paragraphs within it.

use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use terminal_size::{Width, terminal_size_of};

/// Characters in a line if no width is known, as for a file or a pipe.
const USUAL: usize = 100;

/// Set once, before any verb begins.
static WIDE: AtomicBool = AtomicBool::new(false);

/// Lets tables be as wide as their content, for `--wide`.
pub(crate) fn set_wide() {
    WIDE.store(true, Ordering::Relaxed);
}

/// Characters in a line of a table on stdout; `None` if lines may have any length.
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

/// Characters in a line of stdout; `None` if the width is unknown, or lines may have any length.
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

/// Longest line of a paragraph, in characters, however wide the page is.
const WIDTH: usize = 96;

/// Breaks a text between words; lines after the first begin with as many blanks as `lead` has
/// characters.
pub(crate) fn wrap(lead: &str, text: &str) -> String {
    let width = width().unwrap_or(WIDTH).min(WIDTH);
    wrap_within(width, lead, text)
}

/// Breaks lines that are longer than `width` between words; what is broken off is indented as the
/// line is, and a little more.
pub(super) fn wrap_lines(width: usize, text: &str) -> String {
    let mut wrapped = String::new();
    for line in text.split_inclusive('\n') {
        let indent = line.chars().take_while(|c| *c == ' ').count();
        // A line that is mostly indent would leave no room for words.
        if line.trim_end().chars().count() <= width || 2 * indent > width {
            wrapped += line;
            continue;
        }
        let lead = " ".repeat(indent);
        let (first, rest) = first_line(width - indent, line.trim());
        let rest = wrap_within(width, &format!("{lead}  "), rest);
        wrapped += &format!("{lead}{first}\n{rest}");
    }
    wrapped
}

/// Splits a line at a blank into the part that fits, or else its first word, and the rest.
fn first_line(width: usize, line: &str) -> (&str, &str) {
    let end = line
        .char_indices()
        .nth(width)
        .map_or(line.len(), |(at, _)| at);
    let fits_whole = line[end..].starts_with(' ');
    let before = if fits_whole {
        Some(end)
    } else {
        line[..end].rfind(' ')
    };
    match before.or_else(|| line.find(' ')) {
        Some(at) => (line[..at].trim_end(), line[at..].trim_start()),
        None => (line, ""),
    }
}

fn wrap_within(width: usize, lead: &str, text: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let indent = " ".repeat(lead.chars().count());
    let mut lines = vec![lead.to_owned()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if !empty && used + 1 + word.chars().count() > width {
            lines.push(indent.clone());
            empty = true;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if empty { "" } else { " " });
            line.push_str(word);
        }
        empty = false;
    }
    lines
        .iter()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn lines_after_the_first_are_indented() {
        let text = wrap("- ", &"word ".repeat(25));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("- word") && lines[1].starts_with("  word"));
    }

    #[test]
    fn only_long_lines_are_broken() {
        assert_eq!(wrap_lines(12, "short\n\n  a b\n"), "short\n\n  a b\n");
        assert_eq!(
            wrap_lines(12, "  one two three four\n"),
            "  one two\n    three\n    four\n"
        );
        assert_eq!(wrap_lines(5, "indivisible\n"), "indivisible\n");
    }

    proptest! {
        #[test]
        fn broken_lines_fit_and_keep_their_words(
            words in prop::collection::vec("[a-z±]{1,12}", 1..40),
            indent in 0usize..8,
            width in 30usize..90,
        ) {
            let line = format!("{}{}\n", " ".repeat(indent), words.join(" "));
            let text = wrap_lines(width, &line);
            prop_assert!(text.lines().all(|line| line.chars().count() <= width));
            let kept: Vec<&str> = text.split_whitespace().collect();
            prop_assert_eq!(kept, words);
        }

        #[test]
        fn words_are_kept_and_lines_fit(words in prop::collection::vec("[a-z]{1,20}", 0..60)) {
            let text = wrap_within(WIDTH, "Note: ", &format!("{} ", words.join(" ")));
            let kept: Vec<&str> = text.split_whitespace().skip(1).collect();
            prop_assert_eq!(kept, words);
            prop_assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        }
    }
}
