//! A table of a TOML file whose errors name file, line and key.

use crate::model::error::ModelError;
use crate::suggest::hint;
use std::fmt::Display;
use std::ops::RangeInclusive;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// The text of a file and its name.
#[derive(Clone, Copy, Debug)]
pub(super) struct ModelSource<'t> {
    pub(super) origin: &'t str,
    pub(super) text: &'t str,
}

/// One table of a file with its place there.
#[derive(Clone, Debug)]
pub(super) struct TomlSection<'a> {
    pub(super) source: ModelSource<'a>,
    pub(super) table: &'a DeTable<'a>,
    /// Path of the table with a dot behind it; empty for the whole file.
    pub(super) path: String,
    /// Offset of the table's beginning in the text, bytes.
    pub(super) start: usize,
}

type TomlValue<'a> = &'a Spanned<DeValue<'a>>;

impl ModelSource<'_> {
    pub(super) fn error(&self, at: usize, key: &str, problem: impl Display) -> ModelError {
        let before = self.text.as_bytes().iter().take(at);
        ModelError::File {
            origin: self.origin.to_owned(),
            line: 1 + before.filter(|byte| **byte == b'\n').count(),
            key: key.to_owned(),
            problem: problem.to_string(),
        }
    }
}

impl<'a> TomlSection<'a> {
    /// Refuses keys that are not known.
    pub(super) fn check_keys(&self, known: &[&str]) -> Result<(), ModelError> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if !known.contains(&name) {
                let problem = format!("unknown key; {}", hint(name, known.iter().copied()));
                let path = format!("{}{name}", self.path);
                return Err(self.source.error(key.span().start, &path, problem));
            }
        }
        Ok(())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(super) fn string(&self, key: &str) -> Result<String, ModelError> {
        let value = self.value(key, "a string")?;
        let text = value.get_ref().as_str();
        text.map(str::to_owned)
            .ok_or_else(|| self.type_error(key, value, "a string"))
    }

    /// A string that is not empty.
    pub(super) fn name(&self, key: &str) -> Result<String, ModelError> {
        let name = self.string(key)?;
        if name.is_empty() {
            return Err(self.key_error(key, "is empty; give a name"));
        }
        Ok(name)
    }

    pub(super) fn strings(&self, key: &str) -> Result<Vec<String>, ModelError> {
        let expected = "an array of strings";
        let value = self.value(key, expected)?;
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.type_error(key, value, expected))?;
        let text = |item: &Spanned<DeValue<'_>>| item.get_ref().as_str().map(str::to_owned);
        let texts: Option<Vec<String>> = array.iter().map(text).collect();
        texts.ok_or_else(|| self.type_error(key, value, expected))
    }

    pub(super) fn integer(&self, key: &str, range: RangeInclusive<u64>) -> Result<u64, ModelError> {
        let expected = format!("an integer from {} to {}", range.start(), range.end());
        let value = self.value(key, &expected)?;
        let integer = value.get_ref().as_integer();
        let integer = integer.and_then(|i| u64::from_str_radix(i.as_str(), i.radix()).ok());
        integer
            .filter(|i| range.contains(i))
            .ok_or_else(|| self.type_error(key, value, &expected))
    }

    /// A number; integers are numbers too.
    pub(super) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Result<f64, ModelError> {
        let expected = format!("a number from {} to {}", range.start(), range.end());
        let value = self.value(key, &expected)?;
        let number: Option<f64> = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse().ok(),
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse().ok(),
            _ => None,
        };
        number
            .filter(|n| range.contains(n))
            .ok_or_else(|| self.type_error(key, value, &expected))
    }

    pub(super) fn table(&self, key: &str) -> Result<Self, ModelError> {
        let value = self.value(key, "a table")?;
        self.section_from_value(key, &format!("{}{key}.", self.path), value)
    }

    /// The tables of an array of tables.
    pub(super) fn tables(&self, key: &str) -> Result<Vec<Self>, ModelError> {
        let expected = "an array of tables";
        let value = self.value(key, expected)?;
        let array = value.get_ref().as_array();
        let array = array.ok_or_else(|| self.type_error(key, value, expected))?;
        let place =
            |(i, item)| self.section_from_value(key, &format!("{}{key}[{i}].", self.path), item);
        array.iter().enumerate().map(place).collect()
    }

    /// An error at a key of this table, or at the table where it is missing.
    pub(super) fn key_error(&self, key: &str, problem: impl Display) -> ModelError {
        let start = self.table.get(key).map_or(self.start, |v| v.span().start);
        let path = format!("{}{key}", self.path);
        self.source.error(start, &path, problem)
    }

    fn section_from_value(
        &self,
        key: &str,
        path: &str,
        value: TomlValue<'a>,
    ) -> Result<Self, ModelError> {
        let table = value.get_ref().as_table();
        let table = table.ok_or_else(|| self.type_error(key, value, "a table"))?;
        Ok(Self {
            source: self.source,
            table,
            path: path.to_owned(),
            start: value.span().start,
        })
    }

    fn value(&self, key: &str, expected: &str) -> Result<TomlValue<'a>, ModelError> {
        let missing = || self.key_error(key, format!("is missing; expected {expected}"));
        self.table.get(key).ok_or_else(missing)
    }

    fn type_error(&self, key: &str, value: TomlValue<'_>, expected: &str) -> ModelError {
        let shown = self.source.text.get(value.span()).unwrap_or("");
        let shown = shown.lines().next().unwrap_or("").trim();
        let path = format!("{}{key}", self.path);
        let problem = format!("is {shown}; expected {expected}");
        self.source.error(value.span().start, &path, problem)
    }
}
