//! Age of mapped files on file systems that give inodes no generation.
//!
//! A file that was last changed well before it was mapped is the one that is still there under the
//! same inode with the same time of change (`ctime`, which no program can set): neither another
//! file of that inode nor another content of it could have an older one. So the time of change
//! stands for the generation. Images of virtual machines and containers are often made without
//! generations.

use super::images::Image;
use crate::reader::CodeReader;
use nix::time::{ClockId, clock_gettime};
use std::collections::HashMap;
use std::time::Duration;

/// Time that must lie between the change of a file and its mapping, ns: file systems keep times to
/// two seconds at the coarsest (FAT), and the clock may be set back a little.
const SURELY_BEFORE_NS: u64 = 4_000_000_000;

/// Times of change of mapped files, looked up once per round.
#[derive(Debug, Default)]
pub(super) struct FileChangeTimes {
    /// Time of change by device and inode, ns since 1970; `None` if the path leads elsewhere.
    changed_ns: HashMap<((u32, u32), u64), Option<u64>>,
}

impl FileChangeTimes {
    /// Forgets what was looked up: files mapped from now on may be others.
    pub(super) fn begin_round(&mut self) {
        self.changed_ns.clear();
    }

    /// Gives an image, mapped in this round or before, a number that stands for the generation of
    /// its file where it has none and one can be known. `seen_by` are the process and those that may
    /// have the same root.
    ///
    /// A process maps a dozen libraries and runs in few of them, so this is for images in which
    /// something was seen to run.
    pub(super) fn settle_generation(
        &mut self,
        image: &mut Image,
        seen_by: &[u32],
        reader: &mut CodeReader,
    ) {
        if image.generation == 0 && image.mapped_ns != 0 && image.is_file() {
            image.generation = self.file_generation(image, image.mapped_ns, seen_by, reader);
            image.mapped_ns = 0;
        }
    }

    /// Number that stands for the generation of a file mapped at `mapped_ns`; 0 if it cannot be
    /// known.
    fn file_generation(
        &mut self,
        image: &Image,
        mapped_ns: u64,
        seen_by: &[u32],
        reader: &mut CodeReader,
    ) -> u64 {
        let changed = self.changed_ns.entry((image.device, image.inode));
        let changed_ns = *changed.or_insert_with(|| {
            let pid = *seen_by.first()?;
            reader.read_change_ns(pid, image.file_ref(seen_by.to_vec()))
        });
        let mapped_ns = since_1970_ns(mapped_ns);
        let surely = |&at: &u64| at.saturating_add(SURELY_BEFORE_NS) < mapped_ns;
        changed_ns.filter(surely).unwrap_or(0)
    }
}

/// The time since 1970 at a time of `CLOCK_MONOTONIC`, ns.
fn since_1970_ns(monotonic_ns: u64) -> u64 {
    let apart_ns = now_ns(ClockId::CLOCK_REALTIME).saturating_sub(now_ns(ClockId::CLOCK_MONOTONIC));
    monotonic_ns.saturating_add(apart_ns)
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::path::Path;

    /// Number for an image of the file `code` below `root`, mapped at `mapped_ns`.
    fn generation(
        vintages: &mut FileChangeTimes,
        image: &Image,
        root: &Path,
        mapped_ns: u64,
    ) -> u64 {
        vintages.file_generation(image, mapped_ns, &[u32::MAX], &mut CodeReader::new(root))
    }

    fn later_ns(seconds: u64) -> u64 {
        now_ns(ClockId::CLOCK_MONOTONIC) + seconds * 1_000_000_000
    }

    #[test]
    fn file_changed_well_before_mapping_is_known() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let image = Image::of_file(root.path(), "code");
        let mut vintages = FileChangeTimes::default();
        let of = |vintages: &mut FileChangeTimes, mapped_ns| {
            generation(vintages, &image, root.path(), mapped_ns)
        };
        assert_eq!(of(&mut vintages, later_ns(0)), 0);
        let known = of(&mut vintages, later_ns(10));
        assert_ne!(known, 0);
        assert_eq!(of(&mut vintages, later_ns(20)), known);
        // Another content of the same inode, noticed in the next round.
        std::thread::sleep(Duration::from_millis(20));
        fs::write(root.path().join("code"), "other").unwrap();
        assert_eq!(of(&mut vintages, later_ns(10)), known);
        vintages.begin_round();
        assert_ne!(of(&mut vintages, later_ns(10)), known);
    }

    #[test]
    fn path_to_another_file_has_no_generation() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let image = Image::of_file(root.path(), "code");
        fs::rename(root.path().join("code"), root.path().join("moved")).unwrap();
        assert_eq!(
            generation(
                &mut FileChangeTimes::default(),
                &image,
                root.path(),
                later_ns(10)
            ),
            0
        );
        fs::write(root.path().join("code"), "code").unwrap();
        assert_eq!(
            generation(
                &mut FileChangeTimes::default(),
                &image,
                root.path(),
                later_ns(10)
            ),
            0
        );
    }

    #[test]
    fn image_is_settled_once_and_keeps_generation() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let mapped = |generation, mapped_ns| Image {
            generation,
            mapped_ns,
            ..Image::of_file(root.path(), "code")
        };
        let settled = |mut image: Image| {
            FileChangeTimes::default().settle_generation(
                &mut image,
                &[1],
                &mut CodeReader::new(root.path()),
            );
            (image.generation, image.mapped_ns)
        };
        assert_eq!(settled(mapped(7, later_ns(10))).0, 7);
        let (generation, mapped_ns) = settled(mapped(0, later_ns(10)));
        assert_ne!(generation, 0);
        assert_eq!(mapped_ns, 0);
        // Changed too shortly before, or mapped at an unknown time: never read again.
        assert_eq!(settled(mapped(0, later_ns(0))), (0, 0));
        assert_eq!(settled(mapped(0, 0)), (0, 0));
    }
}
