//! The core and its matchings are pure: their source names no clock, no I/O, no environment and no
//! global randomness. `clippy.toml` bans the same by resolved path; this test also runs without
//! clippy, and covers whole modules.

#![expect(
    clippy::disallowed_methods,
    clippy::unwrap_used,
    reason = "a test may read files and fail loudly"
)]

use std::fs;
use std::path::{Path, PathBuf};

/// Text that must not appear in the source, each with the reason.
const BANNED: &[(&str, &str)] = &[
    ("std::fs", "the core does no I/O"),
    ("std::io", "the core does no I/O"),
    ("std::net", "the core does no I/O"),
    ("std::env", "configuration is passed in"),
    ("std::process", "the core starts and ends nothing"),
    ("std::thread", "the core is synchronous"),
    ("Instant", "time reaches the core inside an Observation"),
    ("SystemTime", "time reaches the core inside an Observation"),
    ("HashMap", "its order is random; use BTreeMap"),
    ("HashSet", "its order is random; use BTreeSet"),
    ("thread_rng", "randomness is passed in"),
    ("rand::rng", "randomness is passed in"),
    ("from_os_rng", "randomness is passed in"),
    ("println!", "explanations are data"),
    ("unsafe ", "the core has no need of it"),
];

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let nested = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().chain(nested).collect()
}

#[test]
fn source_names_nothing_impure() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR"));
    let matching = core.join("../consort-matching/src");
    let files = [sources(&core.join("src")), sources(&matching)].concat();
    assert!(files.len() > 15, "found only {} files", files.len());
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for (number, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or("");
            for (word, why) in BANNED {
                assert!(
                    !code.contains(word),
                    "{}:{}: {word}: {why}",
                    file.display(),
                    number + 1
                );
            }
        }
    }
}
