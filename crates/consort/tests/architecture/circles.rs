//! Files of a crate import each other in one direction.

use super::imports::Imports;
use std::collections::BTreeSet;
use std::path::Path;

fn circles(name: &str) -> BTreeSet<BTreeSet<String>> {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    Imports::read(&crates.join(name).join("src")).circles()
}

#[test]
fn files_import_each_other_in_one_direction() {
    let of = |name: String| {
        circles(&name)
            .into_iter()
            .map(move |circle| format!("{name}: {circle:?}"))
    };
    let found: Vec<String> = super::crates().into_iter().flat_map(of).collect();
    assert!(
        found.is_empty(),
        "{} circles:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Writes a crate of these files. Returns its sources.
fn written(files: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    folder
}

fn circles_of(files: &[(&str, &str)]) -> Vec<Vec<String>> {
    let folder = written(files);
    let circles = Imports::read(folder.path()).circles();
    circles
        .into_iter()
        .map(|circle| circle.into_iter().collect())
        .collect()
}

#[test]
fn two_files_that_import_each_other_are_a_circle() {
    let lib = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", "use crate::b::B; pub struct A(B);");
    let circle = [vec!["a".to_owned(), "b".to_owned()]];
    assert_eq!(
        circles_of(&[lib, a, ("b.rs", "use super::a::A; pub struct B(A);")]),
        circle
    );
    assert_eq!(
        circles_of(&[lib, a, ("b.rs", "pub struct B(Box<super::a::A>);")]),
        circle
    );
    assert!(circles_of(&[lib, a, ("b.rs", "pub struct B;")]).is_empty());
}

#[test]
fn what_is_handed_on_counts_where_it_is_defined() {
    let lib = ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;");
    let a = ("a.rs", "use crate::B; pub struct A(B);");
    let b = ("b.rs", "use crate::A; pub struct B(A);");
    assert_eq!(circles_of(&[lib, a, b]).len(), 1);
    // A module inside another may take what that imports for itself alone.
    let lib = ("lib.rs", "mod a; mod b; use a::A; use b::B;");
    assert_eq!(circles_of(&[lib, a, b]).len(), 1);
}

#[test]
fn tests_and_modules_inside_a_module_are_no_circles() {
    let lib = ("lib.rs", "mod a;");
    let a = ("a/mod.rs", "mod b; use b::B; pub struct A(B);");
    let b = ("a/b.rs", "use super::A; pub struct B(A);");
    assert!(circles_of(&[lib, a, b]).is_empty());
    let tested = "pub struct B; #[cfg(test)] mod tests { use crate::a::A; }";
    let lib = ("lib.rs", "mod a; mod b;");
    let a = ("a.rs", "use crate::b::B; pub struct A(B);");
    assert!(circles_of(&[lib, a, ("b.rs", tested)]).is_empty());
}
