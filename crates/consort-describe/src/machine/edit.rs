//! Descriptions with some values changed, by the dotted names of their keys.

use crate::describe::{DescribeError, Locations};
use toml_edit::{DocumentMut, Item, TableLike, Value};

/// A value for a key such as `llc.size_kib` or `core_type.big.smt[1].ways`.
pub type KeyChange = (String, toml::Value);

/// Sets values in the text of a description. Lines stay where they are, so that later errors have the
/// lines of the original; a new key comes to the end of its table.
///
/// # Errors
/// Text that is no TOML; a name that leads through a value or beyond an array. Unknown keys and
/// impossible values are errors only when the text is parsed.
pub fn apply_changes(
    file: &str,
    text: &str,
    changes: &[KeyChange],
) -> Result<String, DescribeError> {
    // For a text that stays as it is, the parser has better errors.
    if changes.is_empty() {
        return Ok(text.to_owned());
    }
    let at = Locations::new(text);
    let refused =
        |key: &str, message: &str| DescribeError::new(file, at.line_of(key), key, message, 0);
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        let start = error.span().map_or(0, |span| span.start);
        DescribeError::new(file, at.line(start), "", error.message(), 0)
    })?;
    for (name, value) in changes {
        let value: Value = value
            .to_string()
            .parse()
            .map_err(|_| refused(name, "is no value"))?;
        let steps = parse_steps(name).ok_or_else(|| {
            refused(
                name,
                "is no name of a key; expected one like llc.size_kib or core_type.big.smt[1].ways",
            )
        })?;
        set_value(document.as_item_mut(), &steps, value)
            .map_err(|message| refused(name, &message))?;
    }
    Ok(document.to_string())
}

/// A step down: to a key of a table, or to an element of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum KeyStep<'a> {
    Key(&'a str),
    Element(usize),
}

/// The steps of a dotted name; `None` if it is not one.
fn parse_steps(name: &str) -> Option<Vec<KeyStep<'_>>> {
    let mut all = Vec::new();
    for part in name.split('.') {
        let (key, indices) = part
            .split_once('[')
            .map_or((part, ""), |(key, rest)| (key, rest));
        if key.is_empty() {
            return None;
        }
        all.push(KeyStep::Key(key));
        if part.contains('[') {
            let indices = indices.strip_suffix(']')?.split("][");
            for index in indices {
                all.push(KeyStep::Element(index.parse().ok()?));
            }
        }
    }
    Some(all)
}

/// Follows the steps and sets what is there; the message says why they lead nowhere.
fn set_value(root: &mut Item, steps: &[KeyStep<'_>], mut value: Value) -> Result<(), String> {
    let mut at = root;
    for (n, step) in steps.iter().enumerate() {
        at = match step {
            KeyStep::Key(key) => key_item(at, key, n + 1 == steps.len())?,
            KeyStep::Element(index) => element_item(at, *index)?,
        };
    }
    // Comments stay: they belong to the old value's decoration.
    if let Item::Value(old) = &*at {
        *value.decor_mut() = old.decor().clone();
    }
    *at = Item::Value(value);
    Ok(())
}

/// The item of a key; made where it is missing, for the reader to say what it makes of it.
fn key_item<'a>(at: &'a mut Item, key: &str, last: bool) -> Result<&'a mut Item, String> {
    let refused = || format!("leads through a value that has no key '{key}'");
    let table: &mut dyn TableLike = at.as_table_like_mut().ok_or_else(refused)?;
    if !table.contains_key(key) {
        let new = if last {
            toml_edit::value(0)
        } else {
            toml_edit::table()
        };
        table.insert(key, new);
    }
    table.get_mut(key).ok_or_else(refused)
}

fn element_item(at: &mut Item, index: usize) -> Result<&mut Item, String> {
    let count = match &*at {
        Item::ArrayOfTables(tables) => tables.len(),
        Item::Value(Value::Array(array)) => array.len(),
        _ => return Err("leads into a value that is no array".to_owned()),
    };
    let refused = || format!("leads to element [{index}] of {count}; the first is [0]");
    at.get_mut(index).ok_or_else(refused)
}

#[cfg(test)]
mod tests {
    use super::super::{parse, presets};
    use super::*;

    fn with(changes: &[(&str, toml::Value)]) -> Result<super::super::MachineSpec, String> {
        let text = presets::text("power8").ok_or("power8 is a preset")?;
        let changes = changes
            .iter()
            .map(|(key, value)| ((*key).to_owned(), value.clone()));
        let changes: Vec<KeyChange> = changes.collect();
        let text = apply_changes("power8.toml", text, &changes).map_err(|e| e.to_string())?;
        parse("power8.toml", &text).map_err(|e| e.to_string())
    }

    #[test]
    fn values_deep_in_a_description_are_set() -> Result<(), String> {
        let spec = with(&[
            ("memory.latency_ns", 123.5.into()),
            ("core_type.core.l2.size_kib", 1024.into()),
            ("core_type.core.smt[1].thread_dispatch_width", 3.into()),
        ])?;
        let core = &spec.core_types["core"];
        assert_eq!(spec.memory.latency_ns, 123.5);
        assert_eq!(core.l2.as_ref().map(|l2| l2.size_kib), Some(1024.0));
        assert_eq!(core.smt[1].thread_dispatch_width, 3.0);
        Ok(())
    }

    #[test]
    fn nothing_else_changes() {
        let text = "a = 1 # one\n\n[b]\nc = [{ d = 2 }] # two\n";
        let change = ("b.c[0].d".to_owned(), 7.into());
        let expected = "a = 1 # one\n\n[b]\nc = [{ d = 7 }] # two\n";
        assert_eq!(apply_changes("x", text, &[change]), Ok(expected.to_owned()));
    }

    #[test]
    fn impossible_changes_have_the_errors_of_files() {
        let error = |key: &str, value: toml::Value| with(&[(key, value)]).err().unwrap_or_default();
        let check = |key: &str, value: toml::Value, expected: &str| {
            let error = error(key, value);
            let reported = error
                .strip_prefix("power8.toml:")
                .and_then(|e| e.split_once(": "));
            assert_eq!(
                reported.map(|(_, message)| message),
                Some(expected),
                "{error}"
            );
        };
        check(
            "memory.latency_ns",
            (-1).into(),
            "memory.latency_ns: is -1; expected 0.1 to 10000",
        );
        check(
            "lcc.size_kib",
            4.into(),
            "lcc: is not a known key; did you mean 'llc'?",
        );
        check(
            "core_type.core.smt[9].ways",
            4.into(),
            "core_type.core.smt[9].ways: leads to element [9] of 4; the first is [0]",
        );
        check(
            "name.first",
            4.into(),
            "name.first: leads through a value that has no key 'first'",
        );
        assert!(error("llc..ways", 4.into()).contains("is no name of a key"));
    }
}
