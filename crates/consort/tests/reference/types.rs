//! The pages that come from types: the configuration, JSON documents and the protocol.

use super::sources::{Sources, TypeSource, arguments, comment, head, value};
use super::table;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// JSON documents: the command that prints each, its type in the code, and true if it is a list of
/// these.
const DOCUMENTS: [(&str, &str, bool); 26] = [
    ("run", "RunReport", false),
    ("trial", "TrialReport", false),
    ("status", "DaemonStatus", false),
    ("explain", "ThreadExplanation", false),
    ("config check", "ConsortConfig", false),
    ("machine", "MachineReport", false),
    ("machine --machine NAME", "DescribedReport", false),
    ("list machines", "MachineRow", true),
    ("machine --check", "EventCheckRow", true),
    ("machine probe", "ProbeDocument", false),
    ("list policies", "PolicyRow", true),
    ("list programs", "ProgramListRow", true),
    ("profile", "ProfileDocument", false),
    ("simulate", "SimulateDocument", false),
    ("simulate --fidelity reference", "ReferenceDocument", false),
    ("compare", "PolicyComparison", false),
    ("map", "MappingDocument", false),
    ("replay", "ReplayDocument", false),
    ("what-if", "WhatIf", false),
    ("reproduce STUDY", "StudyDocument", false),
    ("list studies", "StudyInfo", true),
    ("sweep status", "SweepStatusDocument", false),
    ("validate", "Validation", false),
    ("train", "ModelDocument", false),
    ("bench", "BenchRow", true),
    ("list benches", "BenchListing", true),
];

/// Types that write themselves, with what they write.
const WRITTEN: [(&str, &str); 11] = [
    ("Duration", "time, for example `500ms`"),
    (
        "SocketAddr",
        "address with port, for example `127.0.0.1:9464`",
    ),
    ("PuSet", "list of CPUs as text, for example `0-3,8`"),
    ("PathBuf", "path"),
    ("Value", "any value"),
    ("EnactChoice", "`auto`, `nudge`, `pin` or `ext`"),
    ("EnactorKind", "`nudge`, `pin` or `ext`"),
    ("WatchRate", "`full` or `light`"),
    ("Table", "table"),
    ("Toml", "table"),
    ("MachineIdentity", "table"),
];

/// Types that pages have described so far, and those that are still to come.
struct Describer {
    sources: Sources,
    described: BTreeMap<String, PathBuf>,
    waiting: Vec<(String, PathBuf)>,
}

impl Describer {
    fn new() -> Self {
        Self {
            sources: Sources::read(&["Serialize", "Deserialize"]),
            described: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }

    /// The type of a value in words; a type of the workspace is a link and will be described.
    fn kind(&mut self, kind: &syn::Type, file: &Path) -> String {
        match kind {
            syn::Type::Reference(inner) => self.kind(&inner.elem, file),
            syn::Type::Slice(inner) => list(&self.kind(&inner.elem, file)),
            syn::Type::Array(inner) => list(&self.kind(&inner.elem, file)),
            syn::Type::Tuple(inner) => {
                let kinds = inner.elems.iter().map(|kind| self.kind(kind, file));
                format!("[{}]", kinds.collect::<Vec<_>>().join(", "))
            }
            syn::Type::Path(path) => self.path_kind(path, file),
            _ => panic!("{}: a type that no page can name", file.display()),
        }
    }

    fn path_kind(&mut self, path: &syn::TypePath, file: &Path) -> String {
        let last = path.path.segments.last().unwrap();
        let name = last.ident.to_string();
        let inner: Vec<&syn::Type> = match &last.arguments {
            syn::PathArguments::AngleBracketed(inner) => inner
                .args
                .iter()
                .filter_map(|argument| match argument {
                    syn::GenericArgument::Type(kind) => Some(kind),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        match (name.as_str(), inner.as_slice()) {
            ("Option", [inner]) => format!("{} or null", self.kind(inner, file)),
            ("Vec" | "BTreeSet" | "HashSet" | "VecDeque", [inner]) => list(&self.kind(inner, file)),
            ("BTreeMap" | "HashMap", [_, inner]) => {
                format!("table of {}", self.kind(inner, file))
            }
            ("Box" | "Arc" | "Rc" | "Cow", [inner]) => self.kind(inner, file),
            ("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64" | "u128", _) => {
                "integer".to_owned()
            }
            ("f64" | "f32", _) => "number".to_owned(),
            ("bool", _) => "true or false".to_owned(),
            ("String" | "str" | "char", _) => "text".to_owned(),
            _ => self.named_kind(&name, file),
        }
    }

    fn named_kind(&mut self, name: &str, file: &Path) -> String {
        if let Some((_, words)) = WRITTEN.iter().find(|(written, _)| *written == name) {
            return (*words).to_owned();
        }
        let Some(found) = self.sources.find(name, file) else {
            return format!("`{name}`");
        };
        // One value without a name is written as that value.
        if let syn::Item::Struct(item) = &found.item
            && let syn::Fields::Unnamed(fields) = &item.fields
        {
            return self.kind(&fields.unnamed[0].ty, &found.file);
        }
        self.waiting.push((name.to_owned(), found.file.clone()));
        format!("[{name}](#{})", name.to_lowercase())
    }

    /// Rows of key, type and description for the fields of a struct or a variant.
    fn rows(&mut self, fields: &syn::Fields, style: &str, file: &Path) -> Vec<Vec<String>> {
        let mut rows = Vec::new();
        for field in fields {
            let serde = arguments(&field.attrs, "serde");
            let has = |word: &str| serde.iter().any(|argument| argument == word);
            if has("skip") || has("skip_serializing") || has("skip_deserializing") {
                continue;
            }
            if has("flatten") {
                rows.extend(self.flattened(&field.ty, file));
                continue;
            }
            let own = field.ident.as_ref().map(ToString::to_string);
            let own = own.unwrap_or_default();
            let name = value(&serde, "rename").map_or_else(|| renamed(&own, style), str::to_owned);
            let kind = match value(&serde, "deserialize_with") {
                Some("percent") => "share as text, for example `5 %`".to_owned(),
                _ => self.kind(&field.ty, file),
            };
            rows.push(vec![
                format!("`{name}`"),
                kind,
                comment(&field.attrs).replace("`None`", "null"),
            ]);
        }
        rows
    }

    /// Rows of the type whose keys stand among those of another one.
    fn flattened(&mut self, kind: &syn::Type, file: &Path) -> Vec<Vec<String>> {
        let words = self.kind(kind, file);
        let inner = words.split(['[', ']']).nth(1).unwrap_or(&words).to_owned();
        let Some(found) = self.sources.find(&inner, file) else {
            return vec![vec!["and".to_owned(), words, String::new()]];
        };
        let syn::Item::Struct(item) = &found.item else {
            return vec![vec![
                "and".to_owned(),
                words,
                "Its keys, among these.".to_owned(),
            ]];
        };
        self.waiting.retain(|(name, _)| *name != inner);
        self.rows(&item.fields, &style(&item.attrs), &found.file)
    }

    /// What stands under the heading of a type: its comment and its keys or values.
    fn body(&mut self, found: &TypeSource) -> String {
        let file = &found.file;
        match &found.item {
            syn::Item::Struct(item) => {
                let rows = self.rows(&item.fields, &style(&item.attrs), file);
                let words = comment(&item.attrs);
                format!(
                    "{words}\n\n{}",
                    table(&["key", "type", "description"], &rows)
                )
            }
            syn::Item::Enum(item) => {
                let style = style(&item.attrs);
                let mut rows = Vec::new();
                for variant in &item.variants {
                    let serde = arguments(&variant.attrs, "serde");
                    let own = lower_words(&variant.ident.to_string());
                    let renamed = match style.is_empty() {
                        true => variant.ident.to_string(),
                        false => renamed(&own, &style),
                    };
                    let name = value(&serde, "rename").map_or(renamed, str::to_owned);
                    let content = match &variant.fields {
                        syn::Fields::Unit => String::new(),
                        syn::Fields::Unnamed(fields) => self.kind(&fields.unnamed[0].ty, file),
                        named => {
                            let rows = self.rows(named, "", file);
                            let cells = rows.iter().map(|row| format!("{} ({})", row[0], row[1]));
                            cells.collect::<Vec<_>>().join(", ")
                        }
                    };
                    rows.push(vec![format!("`{name}`"), content, comment(&variant.attrs)]);
                }
                let words = comment(&item.attrs);
                format!(
                    "{words}\n\n{}",
                    table(&["value", "content", "description"], &rows)
                )
            }
            _ => panic!("neither a struct nor an enum"),
        }
    }

    fn item(&self, name: &str, file: &Path) -> Rc<TypeSource> {
        let found = self.sources.find(name, file);
        found.unwrap_or_else(|| panic!("no type {name} that serde writes"))
    }

    /// Describes, by name, all types that were named and are not yet described.
    fn describe_waiting(&mut self) -> String {
        let mut parts = BTreeMap::new();
        while let Some((name, file)) = self.waiting.pop() {
            match self.described.get(&name) {
                Some(known) => assert_eq!(known, &file, "two types {name}"),
                None => {
                    let found = self.item(&name, &file);
                    self.described.insert(name.clone(), file);
                    let body = self.body(&found);
                    parts.insert(name, body);
                }
            }
        }
        let parts = parts.iter();
        let parts = parts.map(|(name, body)| format!("\n### {name}\n\n{body}"));
        parts.collect()
    }
}

/// A list of values of that kind, in words.
fn list(kind: &str) -> String {
    let is_word = ["integer", "number", "text", "path"].contains(&kind);
    format!("list of {kind}{}", if is_word { "s" } else { "" })
}

/// How serde renames all keys of a type.
fn style(attributes: &[syn::Attribute]) -> String {
    let serde = arguments(attributes, "serde");
    value(&serde, "rename_all").unwrap_or_default().to_owned()
}

/// A name of small letters with `_`, in another style.
fn renamed(name: &str, style: &str) -> String {
    match style {
        "kebab-case" => name.replace('_', "-"),
        "lowercase" => name.replace('_', ""),
        "UPPERCASE" => name.replace('_', "").to_uppercase(),
        _ => name.to_owned(),
    }
}

/// A name with a capital at the head of each word, as small words with `_`.
fn lower_words(name: &str) -> String {
    let mut words = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !words.is_empty() {
            words.push('_');
        }
        words.extend(letter.to_lowercase());
    }
    words
}

fn anywhere() -> PathBuf {
    super::root().join("crates/consort/src/lib.rs")
}

pub fn documents_page() -> String {
    let mut describer = Describer::new();
    let mut text = "# JSON documents\n\nThe keys of the documents that `--format json` prints, for anyone who \
                    reads them with a program. For example, `consort status --format json | jq \
                    .adherence` prints one of them. Keys are added and never renamed. Types are described \
                    at the end of the page.\n"
        .to_owned();
    for (command, name, is_list) in DOCUMENTS {
        let found = describer.item(name, &anywhere());
        let body = describer.body(&found);
        let list = if is_list { "A list. Each item: " } else { "" };
        text += &format!("\n## `consort {command}`\n\n{list}{body}");
    }
    text += "\n## Types\n";
    text += &describer.describe_waiting();
    text
}

pub fn configuration_page() -> String {
    let mut describer = Describer::new();
    let mut text =
        "# Configuration\n\nThe keys of `config.toml`, for operators who set defaults or run the \
                    daemon. For example, `consort config check` prints what is in effect and which \
                    files it came from.\n\n"
            .to_owned();
    text += head("crates/consort/src/config.rs").trim();
    text += "\n";
    let config = describer.item("ConsortConfig", &anywhere());
    let syn::Item::Struct(item) = &config.item else {
        panic!("the configuration is a struct");
    };
    let mut seen: Vec<(String, String)> = Vec::new();
    for field in &item.fields {
        let key = field.ident.as_ref().unwrap();
        if arguments(&field.attrs, "serde").contains(&"skip_deserializing".to_owned()) {
            continue;
        }
        let is_list = describer.kind(&field.ty, &config.file).starts_with("list");
        let heading = match is_list {
            true => format!("[[{key}]]"),
            false => format!("[{key}]"),
        };
        let (name, place) = describer.waiting.pop().unwrap();
        let body = match seen.iter().find(|(known, _)| *known == name) {
            Some((_, known)) => format!("The keys of `{known}`; they hold for the daemon.\n"),
            None => describer.body(&describer.item(&name, &place)),
        };
        let (words, keys) = body.split_once("\n\n").unwrap_or((&body, ""));
        let own = comment(&field.attrs);
        let words = if own.is_empty() { words } else { &own };
        let keys = keys.replace(" or null |", " |");
        let part = format!("\n## {heading}\n\n{words}\n\n{keys}");
        text += part.trim_end();
        text += "\n";
        seen.push((name, heading));
    }
    text
}

pub fn protocol_page() -> String {
    let mut describer = Describer::new();
    let file = "crates/consort-linux/src/protocol/messages.rs";
    let path = super::root().join(file);
    let mut text = "# Protocol\n\nThe lines that `consort` and its daemon exchange over the control socket, and \
                    those of the members of a group, for anyone who writes a client. For example, `consort \
                    status` sends the first line below and prints the answer. See [JSON \
                    documents](json.md) for the content of answers.\n\n"
        .to_owned();
    text += head(file).trim();
    text += "\n\n## Messages\n";
    for name in [
        "DaemonRequest",
        "DaemonAnswer",
        "MemberMessage",
        "LeaderMessage",
    ] {
        describer.waiting.push((name.to_owned(), path.clone()));
    }
    text += &describer.describe_waiting();
    text
}
