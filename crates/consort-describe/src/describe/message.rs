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
        unknown_field(message)
            .or_else(|| missing_field(message))
            .unwrap_or_else(|| Self::Wrong {
                message: unknown_variant(message)
                    .or_else(|| wrong_type(message))
                    .or_else(|| no_string(message))
                    .unwrap_or_else(|| message.to_owned()),
            })
    }
}

/// The name before and the names after "expected"; serde writes them in backticks.
fn split_names(rest: &str) -> Option<(&str, Vec<&str>)> {
    let (name, known) = match rest.rsplit_once("`, expected ") {
        Some((name, known)) => (name, known),
        None => (rest.rsplit_once("`, there are no")?.0, ""),
    };
    Some((name, known.split('`').skip(1).step_by(2).collect()))
}

fn unknown_field(message: &str) -> Option<ReaderMessage> {
    let (name, known) = split_names(message.strip_prefix("unknown field `")?)?;
    let hint = hint(name, known.iter().copied());
    Some(ReaderMessage::Unknown {
        key: name.to_owned(),
        message: format!("is not a known key; {hint}"),
    })
}

fn missing_field(message: &str) -> Option<ReaderMessage> {
    let name = message.strip_prefix("missing field `")?.strip_suffix('`')?;
    let key = name.to_owned();
    Some(ReaderMessage::Missing { key })
}

fn unknown_variant(message: &str) -> Option<String> {
    let (name, known) = split_names(message.strip_prefix("unknown variant `")?)?;
    Some(format!("is '{name}'; expected {}", known.join(", ")))
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

/// Rewords the reader's message about a number where one of several words belongs.
fn no_string(message: &str) -> Option<String> {
    message.strip_prefix("wanted string")?;
    Some("is no string; expected one of the format's words in quotes".to_owned())
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
    fn wrong_values_are_told_with_what_is_expected() {
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
