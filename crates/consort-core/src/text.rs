//! Texts from and for users: numbers with units, quotes, suggestions and escapes.

use std::borrow::Cow;
use std::fmt::Write;

/// Reads a whole number: `20000`, `20_000`, `20k`, `1.5M`, `2G` or `2e6`.
///
/// `None` if the text is no such number, if its value is not whole (`1.5`, `0.5e0`), or if it does
/// not fit. No step uses floating point, so the value is exact.
///
/// ```
/// assert_eq!(consort_core::parse_count("1.5M"), Some(1_500_000));
/// assert_eq!(consort_core::parse_count("1.5"), None);
/// ```
pub fn parse_count(text: &str) -> Option<u64> {
    let (number, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 3),
        b'M' => (&text[..text.len() - 1], 6),
        b'G' => (&text[..text.len() - 1], 9),
        _ => (text, 0),
    };
    let (mantissa, exponent) = match number.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => {
            let exponent = exponent.strip_prefix('+').unwrap_or(exponent);
            (mantissa, digits(exponent)?.parse::<u32>().ok()?)
        }
        None => (number, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, "0"));
    let whole = digits(whole)?;
    let fraction = digits(fraction)?;
    let fraction = fraction.trim_end_matches('0');
    let shift = exponent
        .checked_add(unit)?
        .checked_sub(u32::try_from(fraction.len()).ok()?)?;
    let value: u64 = format!("{whole}{fraction}").parse().ok()?;
    if value == 0 {
        return Some(0);
    }
    value.checked_mul(10_u64.checked_pow(shift)?)
}

/// Digits of a text without the `_` between them; `None` if it contains anything else.
fn digits(text: &str) -> Option<String> {
    let groups = text.split('_');
    let is_number = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    groups.clone().all(is_number).then(|| groups.collect())
}

/// Quotes a text, so that a name or path can contain separators.
///
/// A quoted text begins and ends with `"`. Inside, `\"` stands for a quote and `\\` for a backslash.
pub fn quote(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(c);
    }
    quoted.push('"');
    quoted
}

/// Reads the quoted text at the beginning and returns it without quotes, with the number of bytes
/// that it took. `None` if the text does not begin with a quote, or the quote is not closed.
pub fn unquote(text: &str) -> Option<(String, usize)> {
    let inside = text.strip_prefix('"')?;
    let mut plain = String::new();
    let mut chars = inside.char_indices();
    while let Some((byte, c)) = chars.next() {
        match c {
            '"' => return Some((plain, byte + 2)),
            '\\' => plain.push(chars.next()?.1),
            _ => plain.push(c),
        }
    }
    None
}

/// Splits a text at separators outside quotes.
///
/// A quote opens a quoted text at the beginning of a part and after one of `openers`. Anywhere else
/// it is an ordinary character, so that `a"b` needs no quotes.
pub fn split_unquoted<'a>(text: &'a str, separator: char, openers: &[char]) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let (mut start, mut at, mut may_open) = (0, 0, true);
    while let Some(c) = text[at..].chars().next() {
        if may_open && let Some((_, length)) = unquote(&text[at..]) {
            at += length;
            may_open = false;
            continue;
        }
        if c == separator {
            parts.push(&text[start..at]);
            start = at + c.len_utf8();
        }
        may_open = c == separator || openers.contains(&c) || (may_open && c == ' ');
        at += c.len_utf8();
    }
    parts.push(&text[start..]);
    parts
}

/// Largest number of edits (one letter more, less, other, or two swapped) of a suggestion; one for
/// names of up to three letters, which two edits turn into almost any other.
const NEAR: usize = 2;

/// Suggests the known name nearest to `name`, else the shortest that begins with it (two letters or
/// more), else lists all.
pub fn hint<'a>(name: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    let distance = |candidate| (strsim::damerau_levenshtein(name, candidate), candidate);
    let near = if name.chars().count() > 3 { NEAR } else { 1 };
    let nearest = known.clone().map(distance).min();
    let nearest = nearest.filter(|(edits, _)| *edits <= near);
    let begun = known
        .clone()
        .filter(|known| name.len() > 1 && known.starts_with(name));
    let begun = begun.min_by_key(|known| known.len());
    match nearest.map(|(_, known)| known).or(begun) {
        Some(meant) => format!("did you mean '{meant}'?"),
        None => format!("known: {}", known.collect::<Vec<_>>().join(", ")),
    }
}

/// The known names with the fewest edits from `name`, nearest first, at most `count`.
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>, count: usize) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.collect();
    known.sort_by_key(|candidate| strsim::damerau_levenshtein(name, candidate));
    known.truncate(count);
    known
}

/// Replaces every character that does not show as itself by an escape: `\n`, `\x1b`, `\u{202e}`.
/// Other text stays as it is, backslashes included.
///
/// Names of threads, programs and files may contain any bytes: sequences that control a terminal,
/// line breaks that forge a line, marks that change the direction of text. All output for people
/// passes through here. JSON has its own escapes and stays faithful.
pub fn escape_invisible(text: &str) -> Cow<'_, str> {
    escape_except(text, is_visible)
}

/// Escapes as [`escape_invisible`] does, but keeps line ends, for texts that Consort composes line
/// by line.
pub fn escape_invisible_lines(text: &str) -> Cow<'_, str> {
    escape_except(text, |character| character == '\n' || is_visible(character))
}

/// Returns true if a character shows as itself: it is no control, not invisible and not unassigned.
pub fn is_visible(character: char) -> bool {
    // The standard library knows which characters are printable; combining marks need a letter in
    // front. It also escapes quotes and backslashes, which are ordinary here.
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

fn escape(safe: &mut String, character: char) {
    // Writing to a String cannot fail, so the result is dropped.
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
    fn units_scale_and_fractions_must_be_whole() {
        for (text, value) in [
            ("0", 0),
            ("20000", 20_000),
            ("20_000", 20_000),
            ("20k", 20_000),
            ("100K", 100_000),
            ("1.5M", 1_500_000),
            ("2G", 2_000_000_000),
            ("2e6", 2_000_000),
            ("2E+6", 2_000_000),
            ("1.25e2", 125),
            ("0e99999", 0),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(parse_count(text), Some(value), "{text}");
        }
    }

    #[test]
    fn texts_that_are_no_whole_number_are_refused() {
        for text in [
            "",
            "k",
            "-1",
            "+1",
            "1.5",
            "1.",
            ".5M",
            "1__0",
            "_1",
            "1_",
            "3T",
            "\u{e9}",
            "2e",
            "e6",
            "1.5e0",
            "2e-6",
            "0x10",
            " 1",
            "1 k",
            "1e20",
            "18446744073709551616",
            "1kk",
            "1e99999",
        ] {
            assert_eq!(parse_count(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn every_whole_number_is_read_back(value in any::<u64>()) {
            prop_assert_eq!(parse_count(&value.to_string()), Some(value));
        }

        #[test]
        fn any_text_is_read_without_a_panic(text in "[0-9_.eEkMG+\u{e9}-]{0,12}") {
            let _ = parse_count(&text);
        }
    }

    #[test]
    fn separators_in_quotes_do_not_split() {
        let split = |text| split_unquoted(text, ',', &['=']);
        assert_eq!(split(r#"a,model="x,y",b"#), ["a", r#"model="x,y""#, "b"]);
        assert_eq!(split(r#"a"b,c"d"#), [r#"a"b"#, r#"c"d"#]);
        assert_eq!(split(r#""open,b"#), [r#""open"#, "b"]);
        assert_eq!(split(""), [""]);
    }

    proptest! {
        #[test]
        fn every_text_is_read_back_from_its_quotes(text in any::<String>(), rest in any::<String>()) {
            let quoted = quote(&text);
            let whole = format!("{quoted}{rest}");
            prop_assert_eq!(unquote(&whole), Some((text, quoted.len())));
        }

        #[test]
        fn parts_joined_again_are_the_text(text in "[a\",=\\\\ \u{e9}]{0,12}") {
            prop_assert_eq!(split_unquoted(&text, ',', &['=']).join(","), text);
        }
    }

    fn check(name: &str, expect: &str) {
        assert_eq!(hint(name, ["run", "machine"].into_iter()), expect);
    }

    #[test]
    fn near_names_are_suggested() {
        check("rnu", "did you mean 'run'?");
        check("machin", "did you mean 'machine'?");
        check("mac", "did you mean 'machine'?");
        check("elephant", "known: run, machine");
    }

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
    fn control_characters_are_escaped() {
        assert_eq!(escape_invisible("\u{1b}[2J\n\r\t\0"), r"\x1b[2J\n\r\t\x00");
        assert_eq!(escape_invisible("\u{7f}\u{9b}1m"), r"\x7f\x9b1m");
        let turns = "\u{200e}\u{200f}\u{61c}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{feff}";
        let shown = r"\u{200e}\u{200f}\u{61c}\u{202a}\u{202e}\u{2066}\u{2069}\u{2028}\u{feff}";
        assert_eq!(escape_invisible(turns), shown);
        assert_eq!(escape_invisible_lines("a\nb\r\n"), "a\nb\\r\n");
    }

    proptest! {
        #[test]
        fn escaping_is_complete_and_idempotent(text in any::<String>()) {
            let once = escape_invisible(&text);
            prop_assert!(once.chars().all(is_visible));
            prop_assert!(!once.chars().any(char::is_control));
            prop_assert_eq!(escape_invisible(&once), once.clone());
        }
    }
}
