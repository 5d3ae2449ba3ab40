//! Waiting for memory is found where it is and nowhere else: loops of `tests/truth/loops` over much
//! and over little memory. The distance of the estimates from the truth is measured by
//! `tests/truth/stalls.py`; here only the side of one half counts.

use super::harness::{can_sample, launch};
use crate::skip::skipped;
use consort_core::MEMORY_FROM;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Sizes of the data, KiB: more than the last-level caches of a small host hold, and less than the
/// first level of any.
const MUCH_KIB: &str = "131072";
const LITTLE_KIB: &str = "16";

/// A loop compiled by the host's compiler, in a folder that is removed with it.
struct Loop {
    program: PathBuf,
    _folder: tempfile::TempDir,
}

impl Loop {
    /// Compiles a loop; none where that is not possible, which is reported as a skip.
    fn new(source: &str, name: &str) -> Option<Self> {
        if cfg!(not(target_arch = "x86_64")) {
            skipped("addresses accessed are told on x86-64 only");
            return None;
        }
        if !can_sample() {
            return None;
        }
        let folder = tempfile::tempdir().expect("a directory");
        let program = folder.path().join(name);
        let loops = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/truth/loops");
        let mut compile = Command::new("cc");
        compile.arg("-O2").arg(format!("-DLOOP={name}"));
        compile.arg(loops.join(source)).arg("-o").arg(&program);
        let Ok(status) = compile.status() else {
            skipped("cc is not installed");
            return None;
        };
        assert!(status.success(), "{name} does not compile");
        Some(Self {
            program,
            _folder: folder,
        })
    }

    /// Share of the loop's time that is estimated as waiting for memory, 0 to 1.
    fn stall(&self, kib: &str) -> f64 {
        let story = launch(&self.program, &["run", kib, "1.5"]);
        let threads = story.totals.values();
        let most = threads.max_by_key(|t| t.total.counts.sampled_ns);
        let estimate = most.expect("a thread").total.estimate;
        estimate.expect("samples").memory_stall_share
    }
}

fn assert_told_apart(source: &str, name: &str) {
    if let Some(tried) = Loop::new(source, name) {
        let (much, little) = (tried.stall(MUCH_KIB), tried.stall(LITTLE_KIB));
        assert!(much >= MEMORY_FROM, "{name} over much memory: {much:.2}");
        assert!(
            little < MEMORY_FROM / 2.0,
            "{name} over little: {little:.2}"
        );
    }
}

#[test]
fn a_binary_search_whose_comparisons_load_is_told_apart() {
    assert_told_apart("walks.c", "SEARCH");
}

#[test]
fn look_ups_in_a_hash_table_are_told_apart() {
    assert_told_apart("walks.c", "PROBE");
}

#[test]
fn a_walk_along_pointers_is_told_apart_though_it_does_nothing_else() {
    assert_told_apart("walks.c", "CHASE");
}

#[test]
fn an_atomic_in_the_first_level_waits_for_no_memory() {
    assert_told_apart("walks.c", "ATOMIC");
}

#[test]
fn a_stream_is_told_apart() {
    assert_told_apart("streams.c", "STRIDED");
}

#[test]
fn a_stream_of_three_arrays_is_told_apart() {
    assert_told_apart("streams.c", "TRIAD");
}

#[test]
fn a_large_fill_by_the_library_is_told_apart() {
    assert_told_apart("streams.c", "MEMSET");
}
