//! The sampling tier for an ordinary user at `kernel.perf_event_paranoid` 2.

use super::harness::sampled;
use crate::skip::skipped;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An ordinary user without any rights (`nobody` on most hosts).
const NOBODY: u32 = 65_534;

#[test]
fn everything_works_without_privilege() {
    if !nix::unistd::geteuid().is_root() {
        skipped("already without privilege");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let copy = |from: &Path, name: &str| -> PathBuf {
        let to = dir.path().join(name);
        // Not by this process, whose forks could hold the copy open for writing.
        let install = Command::new("install")
            .args(["-m", "755"])
            .args([from, &to])
            .status();
        assert!(install.unwrap().success());
        to
    };
    let tests = copy(&std::env::current_exe().unwrap(), "tests");
    let program = copy(&sampled(), "sampled");
    let mut command = Command::new(tests);
    // Of the loops that wait for memory one is enough: what they have in common needs no privilege.
    for skipped in "everything_works atomic binary_search hash pointers".split(' ') {
        command.args(["--skip", skipped]);
    }
    command.env("CONSORT_SAMPLED", program).current_dir("/");
    command.uid(NOBODY).gid(NOBODY);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
}
