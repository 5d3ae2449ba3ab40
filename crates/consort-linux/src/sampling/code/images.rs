//! The executable mappings of one address space.

use crate::perf::record::MmapRecord;
use crate::reader::{CodeReader, FileRef};
use nix::time::{ClockId, clock_gettime};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Most mappings kept of one process. A browser has some hundreds; a program that maps and unmaps
/// files at ever new addresses would have any number, since unmapping leaves no record.
pub(crate) const MAX_IMAGES: usize = 8_192;

/// `PROT_WRITE` of `mmap(2)`.
const PROT_WRITE: u32 = 2;

/// One executable mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Image {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Offset of `start` in the file, bytes.
    pub(crate) file_offset: u64,
    /// Major and minor number of the file's device.
    pub(crate) device: (u32, u32),
    pub(crate) inode: u64,
    /// Generation of the inode; 0 where it is not known.
    pub(crate) generation: u64,
    /// Time of `CLOCK_MONOTONIC` at which it was mapped, ns; 0 where it is not known, or nothing is
    /// to be concluded from it any more.
    pub(super) mapped_ns: u64,
    /// `PROT_*` bits.
    pub(crate) prot: u32,
    pub(crate) path: Arc<str>,
}

/// Identity of a file whose code does not change, wherever it is mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct FileId {
    device: (u32, u32),
    inode: u64,
    generation: u64,
}

impl Image {
    /// An executable mapping of the first page of the file `path` below `root`, as it is now.
    #[cfg(test)]
    pub(super) fn of_file(root: &std::path::Path, path: &str) -> Self {
        use nix::sys::stat::{major, minor};
        use std::os::unix::fs::MetadataExt;
        let file = std::fs::metadata(root.join(path)).unwrap();
        Self {
            start: 0,
            end: 4096,
            file_offset: 0,
            device: (major(file.dev()) as u32, minor(file.dev()) as u32),
            inode: file.ino(),
            generation: 0,
            mapped_ns: 0,
            prot: 5,
            path: format!("/{path}").into(),
        }
    }

    pub(crate) fn from_record(mapping: &MmapRecord) -> Self {
        Self {
            start: mapping.start,
            end: mapping.start.saturating_add(mapping.len),
            file_offset: mapping.file_offset,
            device: mapping.device,
            inode: mapping.inode,
            generation: mapping.generation,
            mapped_ns: mapping.time_ns,
            prot: mapping.prot,
            path: mapping.path.as_str().into(),
        }
    }

    /// The file as the reader requests it; `seen_by` are processes that may have the same root.
    pub(super) fn file_ref(&self, seen_by: Vec<u32>) -> FileRef {
        FileRef {
            path: self.path.to_string(),
            device: self.device,
            inode: self.inode,
            seen_by,
        }
    }

    /// Returns true if the mapping is of a file that can be opened by its path.
    pub(crate) fn is_file(&self) -> bool {
        self.inode != 0 && self.path.starts_with('/') && !self.path.ends_with(" (deleted)")
    }

    /// The file of the mapping, if its code is the same for all processes that map it. Without a
    /// generation, a later file of the same inode could not be distinguished from it.
    pub(super) fn fixed_file(&self) -> Option<FileId> {
        let is_fixed = !self.is_changeable() && self.is_file() && self.generation != 0;
        is_fixed.then_some(FileId {
            device: self.device,
            inode: self.inode,
            generation: self.generation,
        })
    }

    /// Returns true if the code may change without a record: the mapping is of no file and not the
    /// vDSO, or may be written.
    pub(crate) fn is_changeable(&self) -> bool {
        !self.is_lasting() || self.prot & PROT_WRITE != 0
    }

    /// Returns true if the mapping shows more than its memory does: it has a file, or is the vDSO.
    fn is_lasting(&self) -> bool {
        self.is_file() || self.path.starts_with("[vdso")
    }
}

/// Mappings by address; later ones replace what they overlap.
///
/// Only those are kept that show more than memory does: programs that make code at run time have
/// tens of thousands of mappings without a file, which are read like memory about which nothing is
/// known. Processes share their mappings until one of them changes its own, as after a `fork`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images {
    by_start: Arc<BTreeMap<u64, Image>>,
    /// True if mappings were left out because there were too many.
    pub(super) is_partial: bool,
}

impl Images {
    pub(crate) fn insert(&mut self, image: Image) {
        if image.start >= image.end {
            return;
        }
        self.cut(image.start, image.end);
        if !image.is_lasting() {
            return;
        }
        if self.by_start.len() >= MAX_IMAGES {
            self.is_partial = true;
            return;
        }
        Arc::make_mut(&mut self.by_start).insert(image.start, image);
    }

    /// Takes in mappings that are younger than these.
    pub(super) fn cover_with(&mut self, younger: &Self) {
        for image in younger.by_start.values() {
            self.insert(image.clone());
        }
    }

    /// The mapping that holds an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Image> {
        let (_, image) = self.by_start.range(..=address).next_back()?;
        (address < image.end).then_some(image)
    }

    /// The mapping that holds an address, to change.
    pub(super) fn at_mut(&mut self, address: u64) -> Option<&mut Image> {
        self.at(address)?;
        let images = Arc::make_mut(&mut self.by_start);
        let (_, image) = images.range_mut(..=address).next_back()?;
        Some(image)
    }

    /// Returns true if any code in a range of addresses cannot change without a record.
    pub(crate) fn has_fixed_in(&self, range: Range<u64>) -> bool {
        self.overlapping(range).any(|image| !image.is_changeable())
    }

    /// Mappings that overlap a range, the last first. None overlaps another, so that their ends are
    /// in the order of their starts, and the first one that ends below the range is the last look.
    fn overlapping(&self, range: Range<u64>) -> impl Iterator<Item = &Image> {
        let below = self.by_start.range(..range.end).rev();
        let below = below.map(|(_, image)| image);
        #[cfg(test)]
        let below = below.inspect(|_| LOOKS.set(LOOKS.get() + 1));
        below.take_while(move |image| image.end > range.start)
    }

    /// Cuts a hole, leaving the parts of mappings on either side.
    fn cut(&mut self, start: u64, end: u64) {
        let overlapping: Vec<u64> = self.overlapping(start..end).map(|old| old.start).collect();
        if overlapping.is_empty() {
            return;
        }
        let images = Arc::make_mut(&mut self.by_start);
        for at in overlapping {
            let Some(old) = images.remove(&at) else {
                continue;
            };
            if old.start < start {
                let left = Image {
                    end: start,
                    ..old.clone()
                };
                images.insert(left.start, left);
            }
            if old.end > end {
                let file_offset = old.file_offset.wrapping_add(end - old.start);
                images.insert(
                    end,
                    Image {
                        start: end,
                        file_offset,
                        ..old
                    },
                );
            }
        }
    }
}

#[cfg(test)]
thread_local! {
    /// Mappings that were looked at to find the ones that overlap.
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl FromIterator<Image> for Images {
    fn from_iter<I: IntoIterator<Item = Image>>(images: I) -> Self {
        let mut all = Self::default();
        images.into_iter().for_each(|image| all.insert(image));
        all
    }
}

// A file that was last changed well before it was mapped is the one that is still there under the
// same inode with the same time of change (`ctime`, which no program can set): neither another file
// of that inode nor another content of it could have an older one. So the time of change stands for
// the generation. Images of virtual machines and containers are often made without generations.

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
    /// its file where it has none and one can be known. `seen_by` are the process and others that may
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
        // Records carry `CLOCK_MONOTONIC`, files the time since 1970.
        let apart_ns =
            now_ns(ClockId::CLOCK_REALTIME).saturating_sub(now_ns(ClockId::CLOCK_MONOTONIC));
        let mapped_ns = mapped_ns.saturating_add(apart_ns);
        let surely = |&at: &u64| at.saturating_add(SURELY_BEFORE_NS) < mapped_ns;
        changed_ns.filter(surely).unwrap_or(0)
    }
}

fn now_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock).map_or(Duration::ZERO, Duration::from);
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn image(start: u64, end: u64, inode: u64) -> Image {
        Image {
            start,
            end,
            file_offset: start,
            device: (8, 1),
            inode,
            generation: 0,
            mapped_ns: 0,
            prot: 5,
            path: "/x".into(),
        }
    }

    proptest! {
        #[test]
        fn the_last_mapping_of_an_address_wins(
            ranges in prop::collection::vec((0u64..60, 1u64..30), 1..12), address in 0u64..100
        ) {
            let mapped = |(n, &(start, len)): (usize, &(u64, u64))| {
                image(start, start + len, 1 + n as u64)
            };
            let images: Images = ranges.iter().enumerate().map(mapped).collect();
            let holds = |&(start, len): &(u64, u64)| (start..start + len).contains(&address);
            let expect = ranges.iter().rposition(holds).map(|n| 1 + n as u64);
            let found = images.at(address);
            prop_assert_eq!(found.map(|i| i.inode), expect);
            if let Some(found) = found {
                prop_assert_eq!(found.file_offset, found.start);
            }
        }
    }

    #[test]
    fn inserting_looks_at_few_other_mappings() {
        const MAPPINGS: u64 = 8_000;
        let mut images = Images::default();
        for at in 0..MAPPINGS {
            images.insert(image(at * 10, at * 10 + 5, 9));
        }
        // In the order of their addresses and again over the earlier ones.
        for at in 0..MAPPINGS {
            images.insert(image(at * 10 + 2, at * 10 + 4, 8));
        }
        assert_eq!(images.at(23).map(|image| image.inode), Some(8));
        let looks = LOOKS.get();
        assert!(looks <= 4 * MAPPINGS, "{looks} looks");
    }

    #[test]
    fn any_number_of_mappings_takes_bounded_memory() {
        let mut images = Images::default();
        for at in 0..4 * MAX_IMAGES as u64 {
            images.insert(Image {
                path: "//anon".into(),
                ..image(at * 10, at * 10 + 5, 0)
            });
        }
        assert!(images.by_start.is_empty() && !images.is_partial);
        for at in 0..2 * MAX_IMAGES as u64 {
            images.insert(image(at * 10, at * 10 + 5, 9));
        }
        assert!(images.by_start.len() == MAX_IMAGES && images.is_partial);
    }

    #[test]
    fn code_without_a_file_covers_code_of_one() {
        let mut images = Images::default();
        images.insert(image(0, 30, 9));
        images.insert(Image {
            path: "//anon".into(),
            ..image(10, 20, 0)
        });
        let found = [5, 15, 25].map(|address| images.at(address).map(|image| image.file_offset));
        assert_eq!(found, [Some(0), None, Some(20)]);
    }

    #[test]
    fn child_shares_the_mappings_until_it_changes_them() {
        let mut parent = Images::default();
        parent.insert(image(0, 10, 9));
        let mut child = parent.clone();
        assert!(Arc::ptr_eq(&parent.by_start, &child.by_start));
        child.insert(image(5, 10, 8));
        assert_eq!(parent.at(7).map(|image| image.inode), Some(9));
        assert_eq!(child.at(7).map(|image| image.inode), Some(8));
    }

    #[test]
    fn only_files_without_write_permission_are_fixed() {
        let with = |path: &str, prot| Image {
            path: path.into(),
            prot,
            ..image(0, 1, 9)
        };
        assert!(!with("/bin/x", 5).is_changeable());
        assert!(with("/bin/x", 7).is_changeable());
        assert!(with("/bin/x (deleted)", 5).is_changeable());
        let anonymous = Image {
            inode: 0,
            ..with("//anon", 5)
        };
        assert!(anonymous.is_changeable());
        let vdso = Image {
            inode: 0,
            ..with("[vdso]", 5)
        };
        assert!(!vdso.is_changeable());
    }
}

#[cfg(test)]
mod file_change_times_tests {
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
