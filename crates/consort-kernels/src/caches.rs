//! Sizes of the data caches, for chases and streams.
//!
//! Read from `sys/devices/system/cpu/cpu0/cache` below a given root. A file that is missing or
//! unreadable is normal (containers, some VMs, most Arm boards); the defaults then stand in.
//!
//! Pitfalls: CPU 0 stands for all, so on a hybrid chip the sizes are those of its core type. A VM
//! often reports the host's whole last-level cache, although it has only a slice of it.

use std::fs;
use std::path::Path;

/// Cache sizes as seen from CPU 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheSizes {
    /// Level-1 data cache.
    pub l1d_bytes: usize,
    /// Level-2 cache.
    pub l2_bytes: usize,
    /// The last level; equal to `l2_bytes` if level 2 is the last.
    pub llc_bytes: usize,
}

impl Default for CacheSizes {
    /// 32 KiB, 1 MiB and 32 MiB: small enough for the level to be hit on most
    /// server cores built since 2017.
    fn default() -> Self {
        Self {
            l1d_bytes: 32 << 10,
            l2_bytes: 1 << 20,
            llc_bytes: 32 << 20,
        }
    }
}

impl CacheSizes {
    /// Reads the sizes below `root` (`/` on a live host), with defaults for what cannot be read.
    #[must_use]
    pub fn read(root: &Path) -> Self {
        let found = data_caches(root);
        let level = |n| found.iter().find(|c| c.level == n).map(|c| c.bytes);
        let last = found.iter().max_by_key(|c| c.level);
        let default = Self::default();
        Self {
            l1d_bytes: level(1).unwrap_or(default.l1d_bytes),
            l2_bytes: level(2).unwrap_or(default.l2_bytes),
            llc_bytes: last
                .filter(|c| c.level >= 2)
                .map_or(default.llc_bytes, |c| c.bytes),
        }
    }
}

struct DataCache {
    level: u32,
    bytes: usize,
}

fn data_caches(root: &Path) -> Vec<DataCache> {
    let dir = root.join("sys/devices/system/cpu/cpu0/cache");
    let Ok(entries) = fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .filter_map(|entry| data_cache(&entry.ok()?.path()))
        .collect()
}

fn data_cache(index: &Path) -> Option<DataCache> {
    let text = |name| fs::read_to_string(index.join(name)).ok();
    if text("type")?.trim() == "Instruction" {
        return None;
    }
    Some(DataCache {
        level: text("level")?.trim().parse().ok()?,
        bytes: parse_size(text("size")?.trim())?,
    })
}

/// `48K` or `260M`, as the kernel writes them (`Documentation/ABI/testing/
/// sysfs-devices-system-cpu`, "size").
fn parse_size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    let bytes = digits.parse::<usize>().ok()?.checked_mul(factor)?;
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tree(caches: &[(&str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (i, (level, kind, size)) in caches.iter().enumerate() {
            let dir = root
                .path()
                .join(format!("sys/devices/system/cpu/cpu0/cache/index{i}"));
            fs::create_dir_all(&dir).unwrap();
            for (file, text) in [("level", level), ("type", kind), ("size", size)] {
                fs::write(dir.join(file), format!("{text}\n")).unwrap();
            }
        }
        root
    }

    #[test]
    fn levels_are_read_by_number() {
        let root = tree(&[
            ("1", "Data", "48K"),
            ("1", "Instruction", "32K"),
            ("2", "Unified", "2048K"),
            ("3", "Unified", "260M"),
        ]);
        let sizes = CacheSizes::read(root.path());
        assert_eq!(
            sizes,
            CacheSizes {
                l1d_bytes: 48 << 10,
                l2_bytes: 2 << 20,
                llc_bytes: 260 << 20
            }
        );
    }

    #[test]
    fn last_level_may_be_the_second() {
        let root = tree(&[("1", "Data", "32K"), ("2", "Unified", "512K")]);
        assert_eq!(CacheSizes::read(root.path()).llc_bytes, 512 << 10);
    }

    #[test]
    fn nothing_readable_gives_defaults() {
        let root = tree(&[("1", "Data", "zero"), ("two", "Unified", "512K")]);
        assert_eq!(CacheSizes::read(root.path()), CacheSizes::default());
        assert_eq!(
            CacheSizes::read(&root.path().join("absent")),
            CacheSizes::default()
        );
    }

    proptest! {
        #[test]
        fn any_text_gives_no_zero_size(text in "\\PC*") {
            prop_assert_ne!(parse_size(&text), Some(0));
        }

        #[test]
        fn kibibytes_are_read(kib in 1_usize..1 << 20) {
            prop_assert_eq!(parse_size(&format!("{kib}K")), Some(kib << 10));
        }
    }
}
