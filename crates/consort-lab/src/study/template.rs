//! Texts with words in braces.

use std::collections::BTreeMap;

/// Puts the values of words in the places of `{WORD}`; braces around unknown words stay.
pub(crate) fn fill(text: &str, words: &BTreeMap<String, String>) -> String {
    let mut filled = String::new();
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once('{') {
        filled += before;
        let known = behind.split_once('}');
        let known = known.and_then(|(word, after)| Some((words.get(word)?, after)));
        rest = match known {
            Some((value, after)) => {
                filled += value;
                after
            }
            None => {
                filled.push('{');
                behind
            }
        };
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_replaced_once_and_unknown_ones_stay() {
        let all = [("a", "{b}"), ("b", "2")].map(|(k, v)| (k.to_owned(), v.to_owned()));
        let filled = fill("{a} and {b}, {c}, {", &all.into());
        assert_eq!(filled, "{b} and 2, {c}, {");
    }
}
