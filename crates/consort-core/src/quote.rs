//! Quotes in texts on the command line: they let a name or path contain the signs of a notation.
//!
//! A quoted text begins and ends with `"`. Inside, `\"` stands for a quote and `\\` for a backslash.

/// The text in quotes.
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

/// Reads the quoted text at the beginning: the text without quotes, and the bytes that it took
/// with them. `None` if there is no quote at the beginning, or none that ends it.
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

/// The parts between separators, except for separators in quotes.
///
/// A quote opens a quoted text at the beginning of a part and after one of `openers`; anywhere else
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

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
}
