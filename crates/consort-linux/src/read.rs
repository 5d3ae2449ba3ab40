//! Reading small kernel files.
//!
//! Usage: every reader answers `None` for a file that is missing, unreadable or
//! not in the expected form; the caller falls back and notes it. Pitfall: the
//! kernel writes -1 for "not told" into several ids, which is `None` here.

use consort_core::{PuId, PuSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes that files of the kernel rarely exceed.
const USUAL_BYTES: usize = 4096;

/// Returns a file's bytes. The kernel tells no length of most of its files, so that `std::fs::read`
/// begins with 32 bytes and reads several times what this reads once.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns a file's text without surrounding blanks.
///
/// Bytes that are not UTF-8 are replaced, so that one strange name in a file does not hide the
/// rest.
pub(crate) fn text(path: &Path) -> Option<String> {
    let bytes = bytes(path).ok()?;
    Some(String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// Returns the value of a file that holds nothing else.
pub(crate) fn value<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// Returns the PUs of a file that holds a CPU list; an empty list counts as not told.
pub(crate) fn pus(path: &Path) -> Option<PuSet> {
    value::<PuSet>(path).filter(|set| !set.is_empty())
}

/// Returns the numbers of a file with one on each line.
pub(crate) fn numbers(path: &Path) -> Option<Vec<u32>> {
    let bytes = bytes(path).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    Some(text.lines().filter_map(|line| line.parse().ok()).collect())
}

/// `sys/devices/system/cpu/cpuN` below the root.
pub(crate) fn pu_dir(root: &Path, pu: PuId) -> PathBuf {
    root.join(format!("sys/devices/system/cpu/cpu{pu}"))
}

/// Entries of a directory whose names are a prefix and a number, by that number.
pub(crate) fn numbered(dir: &Path, prefix: &str) -> Vec<(u32, PathBuf)> {
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    let number = |path: PathBuf| {
        let name = path.file_name()?.to_str()?;
        let number = name.strip_prefix(prefix)?.parse().ok()?;
        Some((number, path))
    };
    let mut found: Vec<_> = entries
        .filter_map(|entry| number(entry.ok()?.path()))
        .collect();
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_that_say_nothing_are_none() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        assert_eq!(value::<u32>(&file), None);
        for (content, number) in [("7\n", Some(7)), ("-1\n", None), ("", None)] {
            fs::write(&file, content).unwrap();
            assert_eq!(value::<u32>(&file), number);
        }
        fs::write(&file, "\n").unwrap();
        assert_eq!(pus(&file), None);
        fs::write(&file, [0xff, b'a']).unwrap();
        assert_eq!(text(&file).unwrap(), "\u{fffd}a");
    }

    #[test]
    fn numbered_entries_are_sorted_by_number() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpufreq", "node1"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let numbers: Vec<u32> = numbered(dir.path(), "cpu").iter().map(|e| e.0).collect();
        assert_eq!(numbers, [2, 10]);
        assert!(numbered(&dir.path().join("none"), "cpu").is_empty());
    }
}
