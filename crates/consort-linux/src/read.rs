//! Reading small kernel files.
//!
//! Usage: every reader answers `None` for a file that is missing, unreadable or
//! not in the expected form; the caller falls back and notes it. Pitfall: the
//! kernel writes -1 for "unknown" into several ids, which is `None` here.

use consort_core::{PuId, PuSet};
use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Bytes that files of the kernel rarely exceed.
const USUAL_BYTES: usize = 4096;

/// Returns a file's bytes. The kernel reports no length for most of its files, so that `std::fs::read`
/// begins with 32 bytes and reads several times what this reads once.
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(USUAL_BYTES);
    File::open(path)?.take(u64::MAX).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns a file's text without surrounding blanks, up to the first NUL: some kernels write a C
/// string with its end, or a whole page with zeros at its end.
///
/// Bytes that are not UTF-8 are replaced, so that one strange name in a file does not hide the
/// rest.
pub(crate) fn text(path: &Path) -> Option<String> {
    text_in(&bytes(path).ok()?)
}

fn text_in(bytes: &[u8]) -> Option<String> {
    let string = bytes.split(|&byte| byte == 0).next()?;
    Some(String::from_utf8_lossy(string).trim().to_owned())
}

/// Returns the CPUs of a CPU list, a file's content; `None` for an empty list.
pub(crate) fn pus_in(bytes: &[u8]) -> Option<PuSet> {
    let set: PuSet = text_in(bytes)?.parse().ok()?;
    Some(set).filter(|set| !set.is_empty())
}

/// Returns the value of a file that holds nothing else.
pub(crate) fn value<T: FromStr>(path: &Path) -> Option<T> {
    text(path)?.parse().ok()
}

/// Returns the CPUs of a file that holds a CPU list; `None` for an empty list.
pub(crate) fn pus(path: &Path) -> Option<PuSet> {
    value::<PuSet>(path).filter(|set| !set.is_empty())
}

/// Returns the numbers in a file's content with one on each line.
pub(crate) fn numbers_in(bytes: &[u8]) -> Vec<u32> {
    let text = String::from_utf8_lossy(bytes);
    text.lines().filter_map(|line| line.parse().ok()).collect()
}

/// Returns the CPUs of the first of some files in a directory that holds a list, or, if its name is
/// that of a mask, a mask. Kernels before 2.6.26 write masks only, and so do archives of sysfs.
pub(crate) fn pus_in_dir(dir: &Path, lists: &[&str], masks: &[&str]) -> Option<PuSet> {
    let list = lists.iter().find_map(|name| pus(&dir.join(name)));
    list.or_else(|| masks.iter().find_map(|name| mask(&dir.join(name))))
}

fn mask(path: &Path) -> Option<PuSet> {
    mask_in(&text(path)?)
}

/// Returns the CPUs of a mask: words of 32 bits in hexadecimal, the highest first,
/// with commas between them; `None` for an empty mask.
pub(crate) fn mask_in(text: &str) -> Option<PuSet> {
    let mut pus = PuSet::new();
    for (word, position) in text.rsplit(',').zip(0u32..) {
        // User space tools write a prefix before each word, and leave words of zero empty.
        let digits = word.trim().trim_start_matches("0x");
        let bits = match digits {
            "" => 0,
            _ => u32::from_str_radix(digits, 16).ok()?,
        };
        let set = (0..u32::BITS).filter(|bit| bits & (1 << bit) != 0);
        set.for_each(|bit| pus.insert(PuId(position.saturating_mul(u32::BITS) + bit)));
    }
    Some(pus).filter(|pus| !pus.is_empty())
}

/// `sys/devices/system/cpu/cpuN` below the root.
pub(crate) fn pu_dir(root: &Path, pu: PuId) -> PathBuf {
    root.join(format!("sys/devices/system/cpu/cpu{pu}"))
}

/// Entries of a directory whose names are a prefix and a number, by that number.
pub(crate) fn numbered_entries(dir: &Path, prefix: &str) -> Vec<(u32, PathBuf)> {
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
        assert_eq!(mask(&file), None);
        fs::write(&file, [0xff, b'a']).unwrap();
        assert_eq!(text(&file).unwrap(), "\u{fffd}a");
    }

    #[test]
    fn text_ends_at_the_first_nul() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("f");
        for content in ["0-3\n\0", "0-3\0\0\0", "0-3\n\0rest of a page", " 0-3,\n"] {
            fs::write(&file, content).unwrap();
            assert_eq!(pus(&file).unwrap().to_string(), "0-3", "{content:?}");
        }
        fs::write(&file, "17\n\0").unwrap();
        assert_eq!(value::<u32>(&file), Some(17));
    }

    #[test]
    fn masks_stand_in_for_lists() {
        let dir = tempfile::tempdir().unwrap();
        let write = |name: &str, content: &str| fs::write(dir.path().join(name), content).unwrap();
        let read = || pus_in_dir(dir.path(), &["list"], &["map"]).map(|set| set.to_string());
        for (content, expected) in [
            ("0000000f\n", Some("0-3")),
            ("ff\n\0", Some("0-7")),
            ("00000001,00000000,80000000\n", Some("31,64")),
            ("0x00000003,,0x1", Some("0,64-65")),
            ("00000000,00000000\n", None),
            ("x", None),
            ("1ffffffff", None),
            ("", None),
        ] {
            write("map", content);
            assert_eq!(read().as_deref(), expected, "{content:?}");
        }
        write("map", "f");
        for (list, expected) in [("\n", "0-3"), ("garbage", "0-3"), ("4-5", "4-5")] {
            write("list", list);
            assert_eq!(read().as_deref(), Some(expected), "{list:?}");
        }
    }

    #[test]
    fn numbered_entries_are_sorted_by_number() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["cpu10", "cpu2", "cpufreq", "node1"] {
            fs::create_dir(dir.path().join(name)).unwrap();
        }
        let numbers: Vec<u32> = numbered_entries(dir.path(), "cpu")
            .iter()
            .map(|e| e.0)
            .collect();
        assert_eq!(numbers, [2, 10]);
        assert!(numbered_entries(&dir.path().join("none"), "cpu").is_empty());
    }
}
