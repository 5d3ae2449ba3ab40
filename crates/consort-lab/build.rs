//! Gives the crate a fingerprint of what decides its results: the sources of the simulation and of
//! the studies, the described machines and programs, and the versions of all dependencies.
//!
//! The fingerprint depends on the contents and names of files alone, so every
//! host gives the same. It changes with comments, too: a result that is computed
//! once more does no harm, one that is wrongly kept does. Where a folder is not
//! there, as outside the workspace, its package's version has to do.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Files and folders that decide results, relative to this crate.
const DECIDES: [&str; 14] = [
    "src",
    "studies",
    "../consort-core/src",
    "../consort-data/src",
    "../consort-describe/machines",
    "../consort-describe/programs",
    "../consort-describe/src",
    "../consort-experiment/src",
    "../consort-matching/src",
    "../consort-ops/src",
    "../consort-reference/src",
    "../consort-sim/src",
    "../../traces",
    "../../Cargo.lock",
];

fn main() -> io::Result<()> {
    let mut hash = Fnv::new();
    for path in DECIDES.map(Path::new) {
        if !path.exists() {
            continue;
        }
        println!("cargo:rerun-if-changed={}", path.display());
        for file in files(path)? {
            hash.add(file.to_string_lossy().as_bytes());
            hash.add(&fs::read(&file)?);
        }
    }
    println!("cargo:rustc-env=CONSORT_FINGERPRINT={:016x}", hash.0);
    Ok(())
}

/// A file, or all files below a folder, in the order of their names.
fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = fs::read_dir(path)?.map(|entry| entry.map(|e| e.path()));
    let mut paths: Vec<PathBuf> = entries.collect::<io::Result<_>>()?;
    paths.sort();
    let below: io::Result<Vec<Vec<PathBuf>>> = paths.iter().map(|path| files(path)).collect();
    Ok(below?.concat())
}

/// The FNV-1a hash of 64 bits (Fowler, Noll, Vo; draft-eastlake-fnv).
struct Fnv(u64);

impl Fnv {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Adds a text and its length, so that texts cannot run into each other.
    fn add(&mut self, text: &[u8]) {
        for byte in (text.len() as u64).to_le_bytes().iter().chain(text) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
