//! Lines of keys in a text, and the key at a given byte.

use core::ops::Range;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A key with its path.
struct KeyLocation {
    path: String,
    key: Range<usize>,
    value: Range<usize>,
}

/// All keys of a text by path, for example `core_type.big.smt[1].ways`.
pub struct Locations<'a> {
    text: &'a str,
    entries: Vec<KeyLocation>,
}

impl<'a> Locations<'a> {
    /// Indexes a text; what is no TOML is left out.
    pub fn new(text: &'a str) -> Self {
        // Errors are ignored: keys before and behind a broken line still have their places.
        let (root, _) = DeTable::parse_recoverable(text);
        let mut entries = Vec::new();
        add_table(&mut entries, "", root.get_ref());
        Self { text, entries }
    }

    /// Line, from 1, of a byte.
    pub fn line(&self, byte: usize) -> usize {
        let before = &self.text.as_bytes()[..byte.min(self.text.len())];
        1 + before.iter().filter(|&&b| b == b'\n').count()
    }

    /// Line of a key, or of the nearest parent that the text has.
    pub fn line_of(&self, path: &str) -> usize {
        let leads_there = |entry: &&KeyLocation| {
            path.strip_prefix(&entry.path)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
        };
        let parents = self.entries.iter().filter(leads_there);
        let nearest = parents.max_by_key(|entry| entry.path.len());
        self.line(nearest.map_or(0, |entry| entry.key.start))
    }

    /// Path of the innermost key whose name or value covers a byte, else of the last one before
    /// it on its line; empty for none.
    pub(crate) fn path_at(&self, byte: usize) -> &str {
        let covers = |range: &Range<usize>| range.contains(&byte);
        let around = self.entries.iter();
        let around = around.filter(|e| covers(&e.key) || covers(&e.value));
        let innermost = around.max_by_key(|entry| entry.path.len());
        let found = innermost.or_else(|| {
            let line = self.line(byte);
            let before = |e: &&KeyLocation| e.key.start <= byte && self.line(e.key.start) == line;
            let before = self.entries.iter().filter(before);
            before.max_by_key(|e| (e.key.start, e.path.len()))
        });
        found.map_or("", |entry| &entry.path)
    }

    /// Path of the table that spans exactly this; empty for the whole text.
    pub(crate) fn path_of(&self, value: &Range<usize>) -> &str {
        let entry = self.entries.iter().find(|entry| entry.value == *value);
        entry.map_or("", |entry| &entry.path)
    }
}

fn add_table(entries: &mut Vec<KeyLocation>, parent: &str, table: &DeTable<'_>) {
    for (key, value) in table {
        let path = super::join_path(parent, key.get_ref());
        add_entry(entries, path, key.span(), value);
    }
}

fn add_entry(
    entries: &mut Vec<KeyLocation>,
    path: String,
    key: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) {
    match value.get_ref() {
        DeValue::Table(table) => add_table(entries, &path, table),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                add_entry(entries, format!("{path}[{index}]"), item.span(), item);
            }
        }
        _ => {}
    }
    let value = value.span();
    entries.push(KeyLocation { path, key, value });
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a = 1\n\n[b.c]\nd = [\n  { e = 1 },\n  { e = 2 },\n]\n[[f]]\ng = 1\n[[f]]\ng = 2\n[b.h]\ni = 1\n";

    #[test]
    fn missing_keys_have_the_line_of_their_parent() {
        let at = Locations::new(TEXT);
        let lines = [
            ("a", 1),
            ("b.c", 3),
            ("b.c.d[1].e", 6),
            ("b.c.d[1].none", 6),
            ("b.c.d[7]", 4),
            ("f[1].g", 11),
            ("f[1].none", 10),
            ("b.h.none", 12),
            ("none", 1),
        ];
        for (path, line) in lines {
            assert_eq!(at.line_of(path), line, "{path}");
        }
    }

    #[test]
    fn a_byte_belongs_to_the_innermost_key() {
        let at = Locations::new(TEXT);
        let of = |needle: &str| at.path_at(TEXT.find(needle).expect("it is in the text"));
        assert_eq!(of("a ="), "a");
        assert_eq!(of("2 },"), "b.c.d[1].e");
        assert_eq!(of("i = 1"), "b.h.i");
        let broken = Locations::new("x = 1\ny = = 2\n");
        assert_eq!(broken.path_at(10), "y");
    }
}
