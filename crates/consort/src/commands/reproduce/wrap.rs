//! Paragraphs for a terminal.

/// Longest line, in characters.
const WIDTH: usize = 96;

/// Breaks a text between words; lines after the first begin with as many blanks as `lead` has
/// characters.
pub(crate) fn wrap(lead: &str, text: &str) -> String {
    let indent = " ".repeat(lead.chars().count());
    let mut lines = vec![lead.to_owned()];
    let mut empty = true;
    for word in text.split_whitespace() {
        let used = lines.last().map_or(0, |line| line.chars().count());
        if !empty && used + 1 + word.chars().count() > WIDTH {
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

    proptest! {
        #[test]
        fn no_word_is_lost_and_no_line_is_too_long(words in prop::collection::vec("[a-z]{1,20}", 0..60)) {
            let text = wrap("Note: ", &words.join(" "));
            let kept: Vec<&str> = text.split_whitespace().skip(1).collect();
            prop_assert_eq!(kept, words);
            prop_assert!(text.lines().all(|line| line.chars().count() <= WIDTH));
        }
    }
}
