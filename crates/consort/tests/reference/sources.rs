//! The sources of the workspace: its types with their comments, as `syn` reads them.

use super::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// A struct or an enum with the file that defines it.
pub struct TypeSource {
    pub file: PathBuf,
    pub item: syn::Item,
}

impl TypeSource {
    pub fn attributes(&self) -> &[syn::Attribute] {
        match &self.item {
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Enum(item) => &item.attrs,
            _ => panic!("neither a struct nor an enum"),
        }
    }

    fn name(&self) -> String {
        match &self.item {
            syn::Item::Struct(item) => item.ident.to_string(),
            syn::Item::Enum(item) => item.ident.to_string(),
            _ => panic!("neither a struct nor an enum"),
        }
    }

    /// The crate that defines it.
    pub fn krate(&self) -> String {
        krate(&self.file)
    }
}

/// The crate of a file.
fn krate(file: &Path) -> String {
    let inside = file.strip_prefix(root().join("crates")).unwrap();
    inside.iter().next().unwrap().to_str().unwrap().to_owned()
}

/// Types by name; private ones of several crates can have the same.
pub struct Sources {
    types: BTreeMap<String, Vec<Rc<TypeSource>>>,
}

fn rust_files(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        match path.is_dir() {
            true => rust_files(&path, found),
            false if path.extension().is_some_and(|e| e == "rs") => found.push(path),
            false => {}
        }
    }
}

impl Sources {
    /// Reads all files that contain one of the words, such as `Serialize`.
    pub fn read(words: &[&str]) -> Self {
        let mut files = Vec::new();
        for entry in std::fs::read_dir(root().join("crates")).unwrap() {
            let folder = entry.unwrap().path().join("src");
            if folder.is_dir() {
                rust_files(&folder, &mut files);
            }
        }
        files.sort();
        let mut types: BTreeMap<String, Vec<Rc<TypeSource>>> = BTreeMap::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            if !words.iter().any(|word| text.contains(word)) {
                continue;
            }
            for item in syn::parse_file(&text).unwrap().items {
                if matches!(item, syn::Item::Struct(_) | syn::Item::Enum(_)) {
                    let file = file.clone();
                    let found = TypeSource { file, item };
                    types.entry(found.name()).or_default().push(Rc::new(found));
                }
            }
        }
        Self { types }
    }

    pub fn all(&self) -> impl Iterator<Item = (&String, &TypeSource)> {
        self.types
            .iter()
            .flat_map(|(name, found)| found.iter().map(move |one| (name, &**one)))
    }

    /// The type that a name means in a file: that of the file, else of its crate, else the only one
    /// that serde can write.
    pub fn find(&self, name: &str, from: &Path) -> Option<Rc<TypeSource>> {
        let found = self.types.get(name)?;
        let derived = || found.iter().filter(|one| is_written(one.attributes()));
        found
            .iter()
            .find(|one| one.file == from)
            .or_else(|| derived().find(|one| krate(&one.file) == krate(from)))
            .or_else(|| derived().next())
            .filter(|one| is_written(one.attributes()))
            .cloned()
    }
}

/// Returns true if serde derives how a type is written or read.
fn is_written(attributes: &[syn::Attribute]) -> bool {
    let derives = attributes.iter().filter(|a| a.path().is_ident("derive"));
    let mut lists = derives.filter_map(|a| a.meta.require_list().ok());
    lists.any(|list| {
        let text = list.tokens.to_string();
        text.contains("Serialize") || text.contains("Deserialize")
    })
}

/// Comment of an item as one line; lists, examples and headings are left out.
pub fn comment(attributes: &[syn::Attribute]) -> String {
    let mut text = String::new();
    for line in comment_lines(attributes) {
        if line.starts_with("# ") || line.starts_with("```") {
            break;
        }
        text += &line;
        text.push(' ');
    }
    without_links(text.trim())
}

/// Lines of a comment.
fn comment_lines(attributes: &[syn::Attribute]) -> Vec<String> {
    let mut lines = Vec::new();
    for attribute in attributes.iter().filter(|a| a.path().is_ident("doc")) {
        let value = &attribute.meta.require_name_value();
        if let Ok(syn::MetaNameValue {
            value: syn::Expr::Lit(literal),
            ..
        }) = value
            && let syn::Lit::Str(line) = &literal.lit
        {
            let line = line.value();
            lines.push(line.strip_prefix(' ').unwrap_or(&line).to_owned());
        }
    }
    lines
}

/// Comment at the head of a file, as Markdown.
pub fn head(file: &str) -> String {
    let text = std::fs::read_to_string(root().join(file)).unwrap();
    let lines = text.lines().take_while(|line| line.starts_with("//!"));
    let lines = lines.map(|line| line.trim_start_matches("//!"));
    let lines: Vec<&str> = lines.map(|l| l.strip_prefix(' ').unwrap_or(l)).collect();
    without_links(&lines.join("\n"))
}

/// Turns the links of rustdoc into the words that they have: [`a::B`] into `B`.
pub fn without_links(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("[`") {
        plain += before;
        let Some((name, behind)) = after.split_once("`]") else {
            plain += "[`";
            rest = after;
            continue;
        };
        let last = name.rsplit("::").next().unwrap();
        plain += &format!("`{last}`");
        rest = match behind
            .strip_prefix('(')
            .and_then(|link| link.split_once(')'))
        {
            Some((_, behind)) => behind,
            None => behind,
        };
    }
    plain + rest
}

/// Arguments of an attribute as text, for example those of `#[serde(...)]`.
pub fn arguments(attributes: &[syn::Attribute], name: &str) -> Vec<String> {
    let found = attributes.iter().filter(|a| a.path().is_ident(name));
    let lists = found.filter_map(|a| a.meta.require_list().ok());
    lists
        .flat_map(|list| {
            let text = list.tokens.to_string();
            text.split(" , ")
                .flat_map(|part| part.split(", "))
                .map(|part| part.trim().to_owned())
                .collect::<Vec<_>>()
        })
        .collect()
}

/// Value of `key = "value"` among arguments.
pub fn value<'a>(arguments: &'a [String], key: &str) -> Option<&'a str> {
    arguments.iter().find_map(|argument| {
        let rest = argument.strip_prefix(key)?.trim_start();
        Some(rest.strip_prefix('=')?.trim().trim_matches('"'))
    })
}
