//! The executable mappings of one address space.

use crate::perf::record::MmapRecord;
use crate::reader::FileRef;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

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

    /// The file as the reader asks for it; `seen_by` are processes that may have the same root.
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
/// tens of thousands of mappings without a file, which are read like memory of which nothing is
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
    /// Mappings that were looked at to find those that overlap.
    static LOOKS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

impl FromIterator<Image> for Images {
    fn from_iter<I: IntoIterator<Item = Image>>(images: I) -> Self {
        let mut all = Self::default();
        images.into_iter().for_each(|image| all.insert(image));
        all
    }
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
