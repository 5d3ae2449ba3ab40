//! Programs of this workspace that the running test's build has made.

use std::path::{Path, PathBuf};

/// The program of that name beside the running test, whatever the profile or target folder;
/// prints `skipped: reason` where it has not been built.
///
/// Cargo tells a test only of its own package's programs. Those of other packages lie in the same
/// folder once `cargo build` or `cargo test --workspace` has made them; one that was made before
/// the last change stays as it was, so build first.
#[must_use]
pub fn built_program(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().ok()?;
    let found = beside(&test, name);
    if found.is_none() {
        println!("skipped: {name} is not built; cargo build makes it");
    }
    found
}

/// Tests lie in `deps`, programs one folder above.
fn beside(test: &Path, name: &str) -> Option<PathBuf> {
    let folders = test.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_above_the_tests() {
        let folder = tempfile::tempdir().unwrap();
        let test = folder.path().join("debug/deps/test-0123");
        std::fs::create_dir_all(test.parent().unwrap()).unwrap();
        assert_eq!(beside(&test, "tool"), None);
        let tool = folder.path().join("debug/tool");
        std::fs::write(&tool, "").unwrap();
        assert_eq!(beside(&test, "tool"), Some(tool));
    }
}
