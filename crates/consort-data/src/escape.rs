//! Texts inside HTML and SVG.

use consort_core::escape_invisible;

/// Text that is nothing but text in HTML, inside and outside of quotes, all of it visible.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in escape_invisible(text).chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn nothing_in_a_text_is_taken_for_markup() {
        assert_eq!(
            escape("<a href='b'>\"c\" & d"),
            "&lt;a href=&#39;b&#39;&gt;&quot;c&quot; &amp; d"
        );
    }
}
