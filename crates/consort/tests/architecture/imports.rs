//! Imports between the files of a crate, read from its sources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Path of a module from the root of its crate, or of an item in one.
type Names = Vec<String>;

/// Files of a crate by their module; that of the root is empty.
pub struct Imports {
    files: BTreeMap<Names, File>,
}

/// Paths of one file, from the root of the crate.
#[derive(Default)]
struct File {
    module: Names,
    /// Names that the file defines itself.
    defines: BTreeSet<String>,
    /// All that it mentions of the crate.
    mentions: Vec<Names>,
    /// Names that it imports, which modules inside it and elsewhere may take from it, and modules of
    /// which it imports all.
    imports: BTreeMap<String, Names>,
    imports_all: Vec<Names>,
}

impl Imports {
    /// Reads a crate's sources without its tests and further programs.
    pub fn read(source: &Path) -> Self {
        let mut paths = Vec::new();
        super::sources(source, &mut paths);
        let modules = paths
            .iter()
            .filter_map(|path| Some((module(source, path)?, path)));
        let files = modules.map(|(module, path)| (module.clone(), File::read(module, path)));
        Self {
            files: files.collect(),
        }
    }

    /// Circles: sets of files that reach each other by imports, as modules. A module and those
    /// inside it are one part, whatever they import of each other.
    pub fn circles(&self) -> BTreeSet<BTreeSet<String>> {
        let reached = self.files.keys().map(|from| (from, self.reached(from)));
        let reached: BTreeMap<&Names, BTreeSet<&Names>> = reached.collect();
        let circle = |from: &&Names| -> BTreeSet<String> {
            let back = |to: &&&Names| reached[*to].contains(*from);
            let circle = reached[*from].iter().filter(back);
            circle.map(|names| names.join("::")).collect()
        };
        let circles = self.files.keys().map(|from| circle(&from));
        circles.filter(|circle| circle.len() > 1).collect()
    }

    fn reached<'a>(&'a self, from: &'a Names) -> BTreeSet<&'a Names> {
        let mut reached = BTreeSet::new();
        let mut next = vec![from];
        while let Some(file) = next.pop() {
            let new = self.imported_by(file).filter(|to| reached.insert(*to));
            next.extend(new.collect::<Vec<_>>());
        }
        reached
    }

    fn imported_by<'a>(&'a self, file: &'a Names) -> impl Iterator<Item = &'a Names> {
        let mentions = self.files[file].mentions.iter();
        let imported = mentions.filter_map(|names| self.definer(names));
        imported.filter(move |other| !other.starts_with(file) && !file.starts_with(other))
    }

    /// The file that defines what a path names, also where others import it first.
    fn definer(&self, names: &[String]) -> Option<&Names> {
        let cut = (0..=names.len()).rev();
        let known = cut
            .map(|at| names.split_at(at))
            .find(|(module, _)| self.files.contains_key(*module));
        let (module, rest) = known?;
        let (module, file) = self.files.get_key_value(module)?;
        let Some((name, rest)) = rest.split_first() else {
            return Some(module);
        };
        if file.defines.contains(name) {
            return Some(module);
        }
        if let Some(origin) = file.imports.get(name) {
            return self.definer(&[origin, rest].concat());
        }
        let all = file
            .imports_all
            .iter()
            .filter_map(|all| self.files.get_key_value(all));
        let mut definers = all.filter(|(_, file)| file.defines.contains(name));
        definers
            .next()
            .map_or(Some(module), |(definer, _)| Some(definer))
    }
}

/// The module that a source is, none for tests and further programs.
fn module(source: &Path, path: &Path) -> Option<Names> {
    let inside = path.strip_prefix(source).ok()?.with_extension("");
    let mut names: Names = inside
        .iter()
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    if names
        .iter()
        .any(|name| name == "tests" || name == "testing" || name == "bin")
    {
        return None;
    }
    if names
        .last()
        .is_some_and(|name| ["mod", "lib", "main"].contains(&name.as_str()))
    {
        names.pop();
    }
    Some(names)
}

impl File {
    fn read(module: Names, path: &Path) -> Self {
        let text = std::fs::read_to_string(path).unwrap();
        let syntax = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let mut file = Self {
            module,
            ..Self::default()
        };
        file.visit_file(&syntax);
        file
    }

    /// A path from the root, if it leads through this crate.
    fn rooted(&self, names: &[String]) -> Option<Names> {
        let (first, rest) = names.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => Some([&self.module, rest].concat()),
            "super" => {
                let ups = names.iter().take_while(|name| *name == "super").count();
                let parent = &self.module[..self.module.len().checked_sub(ups)?];
                Some([parent, &names[ups..]].concat())
            }
            // A module of this one, or another crate, which no file stands for.
            _ => Some([&self.module, names].concat()),
        }
    }

    fn mention(&mut self, names: &[String]) {
        let path = self.rooted(names);
        self.mentions.extend(path);
    }

    fn uses(&mut self, tree: &UseTree, before: &[String]) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.uses(&path.tree, &with(&path.ident)),
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.uses(tree, before);
                }
            }
            UseTree::Glob(_) => {
                let all = self.rooted(before);
                self.imports_all.extend(all);
                self.mention(before);
            }
            UseTree::Name(name) if name.ident == "self" => self.mention(before),
            UseTree::Name(name) => self.takes(&with(&name.ident), &name.ident),
            UseTree::Rename(name) => self.takes(&with(&name.ident), &name.rename),
        }
    }

    /// Takes in one name that is imported under another.
    fn takes(&mut self, names: &[String], under: &syn::Ident) {
        self.mention(names);
        let here = [&self.module[..], &[under.to_string()]].concat();
        // What leads through its own name is another crate of that name.
        let origin = self
            .rooted(names)
            .filter(|origin| !origin.starts_with(&here));
        if let Some(origin) = origin {
            self.imports.insert(under.to_string(), origin);
        }
    }
}

impl<'a> Visit<'a> for File {
    fn visit_item(&mut self, item: &'a Item) {
        let (attributes, name) = attributes_and_name(item);
        if attributes.iter().any(is_test) {
            return;
        }
        self.defines.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.uses(&item.tree, &[]);
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Names = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if names.len() > 1 && ["crate", "super"].contains(&names[0].as_str()) {
            self.mention(&names);
        }
        visit::visit_path(self, path);
    }
}

fn attributes_and_name(item: &Item) -> (&[syn::Attribute], Option<&syn::Ident>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(&item.ident)),
        Item::Enum(item) => (&item.attrs, Some(&item.ident)),
        Item::Fn(item) => (&item.attrs, Some(&item.sig.ident)),
        Item::Impl(item) => (&item.attrs, None),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref()),
        Item::Mod(item) => (&item.attrs, None),
        Item::Static(item) => (&item.attrs, Some(&item.ident)),
        Item::Struct(item) => (&item.attrs, Some(&item.ident)),
        Item::Trait(item) => (&item.attrs, Some(&item.ident)),
        Item::Type(item) => (&item.attrs, Some(&item.ident)),
        Item::Union(item) => (&item.attrs, Some(&item.ident)),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}

/// Returns true for `#[cfg(test)]`.
fn is_test(attribute: &syn::Attribute) -> bool {
    let is = |path: &syn::Path| path.is_ident("test");
    attribute.path().is_ident("cfg")
        && attribute
            .parse_args()
            .is_ok_and(|path: syn::Path| is(&path))
}
