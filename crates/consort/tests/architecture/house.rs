//! Measures of the code itself, each with a limit that may only fall.
//!
//! `cargo test --workspace --test architecture house -- --nocapture` prints them all. Test code is
//! left out: items under `cfg(test)`, and files in `tests`, `benches` or named `testing.rs`.

use super::{crates, sources};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

/// Limits, each to be lowered when the measure falls.
const LIMITS: &str = include_str!("limits.txt");

/// Words of the private dialect that style.md rules out (5 to 8), one per line.
const DIALECT: &str = include_str!("dialect.txt");

/// Crates whose texts people read, each with the number of its texts that keep such a word: keys of
/// tables, which others rely on, and notes of co-scheduling studies.
const TEXTS: [(&str, usize); 4] = [
    ("consort", 0),
    ("consort-data", 0),
    ("consort-lab", 9),
    ("consort-ops", 0),
];

/// One source file without its tests.
struct Source {
    path: PathBuf,
    krate: String,
    lines: Vec<String>,
    syntax: syn::File,
}

/// What the visitor collects of one file.
#[derive(Default)]
struct Definitions {
    /// Functions with a body: name, lines, whether private.
    functions: Vec<(String, usize, bool)>,
    /// Names of types that are public everywhere.
    public_types: Vec<String>,
    /// Types with an inherent `impl`.
    inherent_impls: BTreeSet<String>,
    /// Ranges of lines of tests, counted from 1.
    tests: Vec<(usize, usize)>,
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| {
        let mut found = attribute.path().is_ident("test");
        if attribute.path().is_ident("cfg") {
            let tokens = attribute
                .meta
                .require_list()
                .map(|list| list.tokens.to_string());
            found |= tokens.is_ok_and(|text| text.contains("test") && !text.contains("not"));
        }
        found
    })
}

fn lines_of(spanned: &impl Spanned) -> (usize, usize) {
    (spanned.span().start().line, spanned.span().end().line)
}

impl Definitions {
    fn add_function(&mut self, name: &syn::Ident, lines: (usize, usize), is_private: bool) {
        let count = lines.1 - lines.0 + 1;
        self.functions.push((name.to_string(), count, is_private));
    }

    fn add_type(&mut self, visibility: &syn::Visibility, name: &syn::Ident) {
        if matches!(visibility, syn::Visibility::Public(_)) {
            self.public_types.push(name.to_string());
        }
    }
}

impl<'a> Visit<'a> for Definitions {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let attributes = match item {
            syn::Item::Mod(item) => &item.attrs,
            syn::Item::Fn(item) => &item.attrs,
            syn::Item::Impl(item) => &item.attrs,
            syn::Item::Struct(item) => &item.attrs,
            syn::Item::Use(item) => &item.attrs,
            syn::Item::Const(item) => &item.attrs,
            _ => &Vec::new(),
        };
        if is_test(attributes) {
            self.tests.push(lines_of(item));
            return;
        }
        match item {
            syn::Item::Struct(item) => self.add_type(&item.vis, &item.ident),
            syn::Item::Enum(item) => self.add_type(&item.vis, &item.ident),
            syn::Item::Union(item) => self.add_type(&item.vis, &item.ident),
            syn::Item::Trait(item) => self.add_type(&item.vis, &item.ident),
            syn::Item::Type(item) => self.add_type(&item.vis, &item.ident),
            syn::Item::Fn(item) => {
                let is_private = matches!(item.vis, syn::Visibility::Inherited);
                let lines = (item.sig.fn_token.span.start().line, lines_of(item).1);
                self.add_function(&item.sig.ident, lines, is_private);
            }
            syn::Item::Impl(item) if item.trait_.is_none() => {
                if let syn::Type::Path(path) = &*item.self_ty
                    && let Some(last) = path.path.segments.last()
                {
                    self.inherent_impls.insert(last.ident.to_string());
                }
            }
            _ => {}
        }
        visit::visit_item(self, item);
    }

    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        if is_test(&item.attrs) {
            self.tests.push(lines_of(item));
            return;
        }
        // Methods of traits are called by others, whatever their visibility says.
        let is_private = matches!(item.vis, syn::Visibility::Inherited);
        let lines = (item.sig.fn_token.span.start().line, lines_of(item).1);
        self.add_function(&item.sig.ident, lines, is_private);
    }

    fn visit_item_impl(&mut self, item: &'a syn::ItemImpl) {
        if item.trait_.is_none() {
            visit::visit_item_impl(self, item);
            return;
        }
        let before = self.functions.len();
        visit::visit_item_impl(self, item);
        for function in &mut self.functions[before..] {
            function.2 = false;
        }
    }
}

/// All sources of the workspace with what they define.
fn read() -> Vec<(Source, Definitions)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let mut all = Vec::new();
    for krate in crates() {
        let mut paths = Vec::new();
        sources(&root.join(&krate), &mut paths);
        for path in paths {
            let is_test = |part: &std::ffi::OsStr| {
                ["tests", "benches", "tests.rs", "testing.rs"]
                    .iter()
                    .any(|name| part == *name)
            };
            if path.strip_prefix(&root).unwrap().iter().any(is_test) {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let syntax = syn::parse_file(&text).unwrap();
            let mut definitions = Definitions::default();
            definitions.visit_file(&syntax);
            let is_left_out = |line: usize| {
                let within = |range: &(usize, usize)| (range.0..=range.1).contains(&line);
                definitions.tests.iter().any(within)
            };
            let lines = text.lines().enumerate();
            let lines = lines.filter(|(at, _)| !is_left_out(at + 1));
            let source = Source {
                lines: lines.map(|(_, line)| line.to_owned()).collect(),
                path,
                krate: krate.clone(),
                syntax,
            };
            all.push((source, definitions));
        }
    }
    all
}

fn percentile(sorted: &[usize], percent: usize) -> usize {
    sorted[(sorted.len() - 1) * percent / 100]
}

/// Occurrences of whole words in a text.
fn count_words(text: &str, words: &str) -> usize {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let found = text.match_indices(words);
    let whole = found.filter(|(at, _)| {
        !text[..*at].ends_with(is_word) && !text[at + words.len()..].starts_with(is_word)
    });
    whole.count()
}

/// Occurrences of words of the private dialect.
fn count_dialect(text: &str) -> usize {
    let text = text.to_lowercase();
    DIALECT.lines().map(|words| count_words(&text, words)).sum()
}

/// Texts in the code: string literals, also those in macros, without documentation.
fn texts(tokens: TokenStream, found: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) if !group.stream().to_string().starts_with("doc =") => {
                texts(group.stream(), found);
            }
            TokenTree::Literal(literal) => found.push(literal.to_string()),
            _ => {}
        }
    }
}

/// Number of lines that `use` and `mod` items take.
fn import_lines(syntax: &syn::File) -> usize {
    let lines = syntax.items.iter().map(|item| match item {
        syn::Item::Use(item) => lines_of(item).1 - lines_of(item).0 + 1,
        syn::Item::Mod(item) if item.content.is_none() => 1,
        _ => 0,
    });
    lines.sum()
}

/// The measures, by name.
fn measures() -> BTreeMap<String, f64> {
    let all = read();
    let mut measures = BTreeMap::new();
    let mut set = |name: &str, value: f64| measures.insert(name.to_owned(), value);
    let lines: usize = all.iter().map(|(source, _)| source.lines.len()).sum();
    let count = |is: &dyn Fn(&str) -> bool| {
        let sources = all.iter().flat_map(|(source, _)| &source.lines);
        sources.filter(|line| is(line.trim_start())).count() as f64
    };
    let share = |value: f64| (1000.0 * value / lines as f64).round() / 10.0;
    set("lines", lines as f64);
    set("files", all.len() as f64);
    set("crates", crates().len() as f64);
    let mut lengths: Vec<usize> = all.iter().map(|(source, _)| source.lines.len()).collect();
    lengths.sort_unstable();
    set("file lines, median", percentile(&lengths, 50) as f64);
    set("file lines, most", percentile(&lengths, 100) as f64);
    let functions = || {
        all.iter()
            .flat_map(|(_, definitions)| &definitions.functions)
    };
    let mut lengths: Vec<usize> = functions().map(|function| function.1).collect();
    lengths.sort_unstable();
    set("functions", lengths.len() as f64);
    set("function lines, median", percentile(&lengths, 50) as f64);
    set(
        "function lines, 90th percentile",
        percentile(&lengths, 90) as f64,
    );
    let mut once = 0;
    for (source, definitions) in &all {
        let text = source.lines.join("\n");
        let private = definitions.functions.iter().filter(|function| function.2);
        // The definition and one use.
        once += private
            .filter(|function| count_words(&text, &function.0) == 2)
            .count();
    }
    let percent = |part: usize, of: usize| (1000.0 * part as f64 / of as f64).round() / 10.0;
    set(
        "private functions named once, %",
        percent(once, lengths.len()),
    );
    let imports: usize = all
        .iter()
        .map(|(source, _)| import_lines(&source.syntax))
        .sum();
    let heads = count(&|line| line.starts_with("//!"));
    set("use, mod and //! lines, %", share(imports as f64 + heads));
    let comments = count(&|line| line.starts_with("// "));
    set("inline comment lines, %", share(comments));
    set(
        "doc comment lines, %",
        share(count(&|line| line.starts_with("///"))),
    );
    let mut names: BTreeMap<&str, usize> = BTreeMap::new();
    for name in all
        .iter()
        .flat_map(|(_, definitions)| &definitions.public_types)
    {
        *names.entry(name).or_default() += 1;
    }
    set(
        "public type names used twice",
        names.values().filter(|n| **n > 1).count() as f64,
    );
    let mut impls: BTreeMap<(&str, &str), BTreeSet<&Path>> = BTreeMap::new();
    for (source, definitions) in &all {
        for name in &definitions.inherent_impls {
            impls
                .entry((&source.krate, name))
                .or_default()
                .insert(&source.path);
        }
    }
    set(
        "types with impls in three files",
        impls.values().filter(|f| f.len() > 2).count() as f64,
    );
    let mut dialect: BTreeMap<&str, usize> = BTreeMap::new();
    for (source, _) in &all {
        let comments = source.lines.iter().map(|line| line.trim_start());
        let comments = comments.filter(|line| line.starts_with("//"));
        let text = comments.collect::<Vec<_>>().join("\n").to_lowercase();
        *dialect.entry(&source.krate).or_default() += count_dialect(&text);
    }
    for (krate, count) in dialect {
        set(&format!("dialect, {krate}"), count as f64);
    }
    measures
}

/// Limits by name; `least` for those that must not fall.
fn limits() -> BTreeMap<String, (bool, f64)> {
    let parse = |line: &str| {
        let (name, value) = line.rsplit_once(' ').unwrap();
        let (name, is_least) = match name.strip_suffix(" at least") {
            Some(name) => (name, true),
            None => (name.strip_suffix(" at most").unwrap(), false),
        };
        (name.to_owned(), (is_least, value.parse().unwrap()))
    };
    let lines = LIMITS
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(parse).collect()
}

#[test]
fn house_keeps_its_limits() {
    let limits = limits();
    let mut broken = String::new();
    for (name, value) in measures() {
        println!("{name}: {value}");
        let is_kept = match limits.get(&name) {
            Some((true, least)) => value >= *least,
            Some((false, most)) => value <= *most,
            // A crate that is new starts without dialect.
            None => value == 0.0 || !name.starts_with("dialect"),
        };
        if !is_kept {
            writeln!(broken, "{name}: {value}").unwrap();
        }
    }
    assert!(
        broken.is_empty(),
        "beyond its limit in limits.txt:\n{broken}"
    );
}

#[test]
fn texts_are_free_of_dialect() {
    for (krate, most) in TEXTS {
        let mut all = Vec::new();
        for (source, _) in read().iter().filter(|(source, _)| source.krate == krate) {
            texts(source.lines.join("\n").parse().unwrap(), &mut all);
        }
        all.retain(|text| count_dialect(text) > 0);
        assert!(
            all.len() <= most,
            "{krate}: {} > {most}: {all:#?}",
            all.len()
        );
    }
}

#[test]
fn public_type_names_are_unique() {
    let all = read();
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (source, definitions) in &all {
        for name in &definitions.public_types {
            places
                .entry(name)
                .or_default()
                .push(source.path.display().to_string());
        }
    }
    places.retain(|_, paths| paths.len() > 1);
    assert!(places.is_empty(), "rename all but one: {places:#?}");
}
