//! Messages of the TOML reader, in our words.

use consort_core::hint;

/// A reader's message taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReaderMessage {
    /// A key that the format does not have.
    Unknown { key: String, message: String },
    /// A key that the format needs.
    Missing { key: String },
    /// A value of the wrong kind, or text that is no TOML.
    Wrong { message: String },
}

impl ReaderMessage {
    /// Takes a message apart.
    pub(crate) fn new(message: &str) -> Self {
        if let Some((name, known)) = split_names(message, "unknown field `") {
            let hint = hint(name, known.into_iter());
            return Self::Unknown {
                key: name.to_owned(),
                message: format!("is not a known key; {hint}"),
            };
        }
        let missing = message.strip_prefix("missing field `");
        if let Some(name) = missing.and_then(|rest| rest.strip_suffix('`')) {
            let key = name.to_owned();
            return Self::Missing { key };
        }
        let message = if let Some((name, known)) = split_names(message, "unknown variant `") {
            format!("is '{name}'; expected {}", known.join(", "))
        } else if message.starts_with("wanted string") {
            // A number in place of one of several words.
            "is no string; expected one of the format's words in quotes".to_owned()
        } else {
            wrong_type(message).unwrap_or_else(|| message.to_owned())
        };
        Self::Wrong { message }
    }
}

/// The name behind `start`, and the names after "expected"; serde writes them in backticks.
fn split_names<'a>(message: &'a str, start: &str) -> Option<(&'a str, Vec<&'a str>)> {
    let rest = message.strip_prefix(start)?;
    let (name, known) = match rest.rsplit_once("`, expected ") {
        Some((name, known)) => (name, known),
        None => (rest.rsplit_once("`, there are no")?.0, ""),
    };
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

fn wrong_type(message: &str) -> Option<String> {
    let rest = message.strip_prefix("invalid type: ");
    let rest = rest.or_else(|| message.strip_prefix("invalid value: "))?;
    let (found, expected) = rest.rsplit_once(", expected ")?;
    let expected = match expected {
        "f64" => "a number",
        "u32" => "a whole number from 0 to 4294967295",
        "a boolean" => "true or false",
        "a sequence" => "an array",
        "a map" => "a table",
        other => other.strip_prefix("struct ").map_or(other, |_| "a table"),
    };
    Some(format!(
        "is {}; expected {expected}",
        found.replace('`', "'")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_get_the_nearest_known_one() {
        let said = ReaderMessage::new("unknown field `wyas`, expected one of `ways`, `size_kib`");
        let message = "is not a known key; did you mean 'ways'?".to_owned();
        let key = "wyas".to_owned();
        assert_eq!(said, ReaderMessage::Unknown { key, message });
    }

    #[test]
    fn wrong_values_name_the_expectation() {
        let check = |message: &str, expect: &str| {
            let message_of = ReaderMessage::Wrong {
                message: expect.to_owned(),
            };
            assert_eq!(ReaderMessage::new(message), message_of);
        };
        check(
            "invalid type: string \"many\", expected u32",
            "is string \"many\"; expected a whole number from 0 to 4294967295",
        );
        check(
            "invalid type: integer `3`, expected struct CacheSpec",
            "is integer '3'; expected a table",
        );
        check(
            "unknown variant `torus`, expected one of `ring`, `mesh`",
            "is 'torus'; expected ring, mesh",
        );
        check("something else", "something else");
    }

    #[test]
    fn missing_keys_are_named() {
        let key = "ways".to_owned();
        assert_eq!(
            ReaderMessage::new("missing field `ways`"),
            ReaderMessage::Missing { key }
        );
    }
}
