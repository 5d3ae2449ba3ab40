//! Text from outside, made safe to show.
//!
//! Names of threads, programs and files may hold whatever bytes their makers like: sequences that
//! drive a terminal, line breaks that forge a line, marks that turn the direction of text. Whatever
//! shows such text calls [`escape_invisible`]; JSON has escapes of its own and stays faithful.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with an escape in place of every character that does not show as itself: `\n`, `\x1b`,
/// `\u{202e}`. Other text stays as it is, backslashes included.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    escape_except(text, is_visible)
}

/// Escapes as [`escape_invisible`] does, but lets line ends stay, for text in lines of our own.
pub fn escape_invisible_lines(text: &str) -> Cow<'_, str> {
    escape_except(text, |character| character == '\n' || is_visible(character))
}

/// Says whether a character shows as itself: neither a control, nor invisible, nor unassigned.
pub fn is_visible(character: char) -> bool {
    // The standard library knows which can be printed, combining marks among them where a letter
    // precedes; it escapes quotes and backslashes as well, which are ordinary here.
    let after_letter: String = ['a', character].into_iter().collect();
    character.is_ascii_graphic() || after_letter.escape_debug().count() == 2
}

fn escape_except(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if text.chars().all(&stays) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(2 * text.len());
    for character in text.chars() {
        if stays(character) {
            safe.push(character);
        } else {
            escape(&mut safe, character);
        }
    }
    Cow::Owned(safe)
}

// Writing to a String cannot fail, so its results are dropped.

fn escape(safe: &mut String, character: char) {
    let _ = match (character, u32::from(character)) {
        ('\n' | '\t' | '\r', _) => write!(safe, "{}", character.escape_default()),
        (_, code @ ..=0xff) => write!(safe, "\\x{code:02x}"),
        (_, code) => write!(safe, "\\u{{{code:x}}}"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_left_alone() {
        for text in [
            "",
            "a b",
            r#"C:\n "x" 'y'"#,
            "Größe ±0.1 µs",
            "e\u{301}",
            "किताब",
            "日本語",
            "🙂",
        ] {
            assert!(
                matches!(escape_invisible(text), Cow::Borrowed(same) if same == text),
                "{text}"
            );
        }
    }

    #[test]
    fn what_acts_is_escaped() {
        assert_eq!(escape_invisible("\u{1b}[2J\n\r\t\0"), r"\x1b[2J\n\r\t\x00");
        assert_eq!(escape_invisible("\u{7f}\u{9b}1m"), r"\x7f\x9b1m");
        let turns = "\u{200e}\u{200f}\u{61c}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{feff}";
        let shown = r"\u{200e}\u{200f}\u{61c}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{feff}";
        assert_eq!(escape_invisible(turns), shown);
        assert_eq!(escape_invisible_lines("a\nb\r\n"), "a\nb\\r\n");
    }

    proptest! {
        #[test]
        fn nothing_that_acts_remains_and_twice_is_once(text in any::<String>()) {
            let once = escape_invisible(&text);
            prop_assert!(once.chars().all(is_visible));
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert_eq!(escape_invisible(&once), once.clone());
        }
    }
}
