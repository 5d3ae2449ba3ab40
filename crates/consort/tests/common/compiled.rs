//! Small C programs that do what no tool at hand does.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "each test file uses its own part of this"
)]

use super::common::skipped;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A program that lasts as long as this value.
pub struct Compiled {
    folder: tempfile::TempDir,
}

impl Compiled {
    /// Path of the program.
    pub fn path(&self) -> PathBuf {
        self.folder.path().join("program")
    }
}

/// Compiles `tests/c/NAME.c`; says so when this host cannot.
pub fn compiled(name: &str, flags: &[&str]) -> Option<Compiled> {
    let folder = tempfile::tempdir().unwrap();
    let source = format!("{}/tests/c/{name}.c", env!("CARGO_MANIFEST_DIR"));
    let program = Compiled { folder };
    let built = Command::new("cc")
        .args(["-O1", "-pthread", "-o"])
        .arg(program.path())
        .arg(source)
        .args(flags)
        .stderr(Stdio::null())
        .status();
    if built.is_ok_and(|status| status.success()) {
        return Some(program);
    }
    skipped(&format!("{name}: cc {} cannot build it", flags.join(" ")));
    None
}

/// Returns true where a tool is there; says so when it is not.
pub fn have(tool: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let there = std::env::split_paths(&path).any(|folder| folder.join(tool).exists());
    if !there && !Path::new(tool).exists() {
        skipped(&format!("{tool} is not installed"));
        return false;
    }
    true
}
