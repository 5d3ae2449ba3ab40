//! Programs of this workspace that the running test's build has made.

use crate::error::VmError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of that name beside the running test, whatever the profile or target folder; built
/// by cargo where it is missing.
///
/// Cargo tells a test only of its own package's programs. Those of other packages lie in the same
/// folder once `cargo build` or `cargo test --workspace` has made them; one that was made before
/// the last change stays as it was.
///
/// # Errors
/// Where the program is missing and cargo cannot build it.
pub fn built_program(package: &str, name: &str) -> Result<PathBuf, VmError> {
    let test = std::env::current_exe().map_err(VmError::io("find", "the running test"))?;
    if let Some(found) = find_near(&test, name) {
        return Ok(found);
    }
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["build", "--quiet", "-p", package, "--bin", name]);
    cargo.args(cargo_target_args(&test));
    let status = cargo.status().map_err(VmError::io("run", "cargo"))?;
    let found = find_near(&test, name).filter(|_| status.success());
    found.ok_or_else(|| VmError::NotBuilt(name.to_owned()))
}

/// Finds a program beside a test: tests lie in `deps`, programs one folder above.
fn find_near(test: &Path, name: &str) -> Option<PathBuf> {
    let folders = test.ancestors().skip(1).take(2);
    folders
        .map(|folder| folder.join(name))
        .find(|path| path.is_file())
}

/// Arguments with which cargo builds into the folder of the running test: `TARGET/PROFILE/deps`.
fn cargo_target_args(test: &Path) -> Vec<String> {
    let folder = |up: usize| test.ancestors().nth(up);
    let profile = folder(2).and_then(Path::file_name);
    let profile = match profile.map(|name| name.to_string_lossy()) {
        Some(name) if name != "debug" => name.into_owned(),
        _ => "dev".to_owned(),
    };
    let target = folder(3).map_or_else(String::new, |path| path.display().to_string());
    ["--profile", &profile, "--target-dir", &target]
        .map(str::to_owned)
        .to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_lie_above_the_tests() {
        let folder = tempfile::tempdir().unwrap();
        let test = folder.path().join("debug/deps/test-0123");
        std::fs::create_dir_all(test.parent().unwrap()).unwrap();
        assert_eq!(find_near(&test, "tool"), None);
        let tool = folder.path().join("debug/tool");
        std::fs::write(&tool, "").unwrap();
        assert_eq!(find_near(&test, "tool"), Some(tool));
    }

    #[test]
    fn programs_are_built_where_the_test_lies() {
        let place = |test: &str| cargo_target_args(Path::new(test)).join(" ");
        assert_eq!(place("/t/debug/deps/x"), "--profile dev --target-dir /t");
        assert_eq!(
            place("/t/release/deps/x"),
            "--profile release --target-dir /t"
        );
    }
}
