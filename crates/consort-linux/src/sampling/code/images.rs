//! The executable mappings of one address space.

use crate::perf::record::Mapping;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// Most mappings kept of one process. A browser has some hundreds; a program that maps and unmaps
/// code at ever new addresses would have any number, since unmapping leaves no record.
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

    pub(crate) fn of_record(mapping: &Mapping) -> Self {
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

    /// Returns true if both are mappings of one file under one path.
    pub(super) fn has_file_of(&self, other: &Self) -> bool {
        let of = |image: &Self| (image.device, image.inode, image.generation);
        of(self) == of(other) && self.path == other.path
    }

    /// Returns true if the mapping is of a file that can be opened by its path.
    pub(crate) fn is_file(&self) -> bool {
        self.inode != 0 && self.path.starts_with('/') && !self.path.ends_with(" (deleted)")
    }

    /// The file of the mapping, if its code is the same for all processes that map it. Without a
    /// generation, a later file of the same inode could not be told from it.
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
        let fixed = self.is_file() || self.path.starts_with("[vdso");
        !fixed || self.prot & PROT_WRITE != 0
    }
}

/// Mappings by address; later ones replace what they overlap.
#[derive(Clone, Debug, Default)]
pub(crate) struct Images(BTreeMap<u64, Image>);

impl Images {
    pub(crate) fn insert(&mut self, image: Image) {
        if image.start >= image.end {
            return;
        }
        self.cut(image.start, image.end);
        self.0.insert(image.start, image);
    }

    /// The mapping that holds an address.
    pub(crate) fn at(&self, address: u64) -> Option<&Image> {
        let (_, image) = self.0.range(..=address).next_back()?;
        (address < image.end).then_some(image)
    }

    /// The mapping that holds an address, to change.
    pub(super) fn at_mut(&mut self, address: u64) -> Option<&mut Image> {
        let (_, image) = self.0.range_mut(..=address).next_back()?;
        (address < image.end).then_some(image)
    }

    /// Returns true if any code in a range of addresses cannot change without a record.
    pub(crate) fn has_fixed_in(&self, range: Range<u64>) -> bool {
        let below = self.0.range(..range.end).map(|(_, image)| image);
        let overlapping = below.rev().take_while(|image| image.end > range.start);
        overlapping.into_iter().any(|image| !image.is_changeable())
    }

    /// Returns true if there are more than [`MAX_IMAGES`].
    pub(crate) fn are_too_many(&self) -> bool {
        self.0.len() > MAX_IMAGES
    }

    /// Cuts a hole, leaving the parts of mappings on either side.
    fn cut(&mut self, start: u64, end: u64) {
        let overlapping = self.0.range(..end).filter(|(_, old)| old.end > start);
        let overlapping: Vec<u64> = overlapping.map(|(&at, _)| at).collect();
        for at in overlapping {
            let Some(old) = self.0.remove(&at) else {
                continue;
            };
            if old.start < start {
                let left = Image {
                    end: start,
                    ..old.clone()
                };
                self.0.insert(left.start, left);
            }
            if old.end > end {
                let file_offset = old.file_offset.wrapping_add(end - old.start);
                self.0.insert(
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
            let mapped = |(n, &(start, len)): (usize, &(u64, u64))| image(start, start + len, n as u64);
            let images: Images = ranges.iter().enumerate().map(mapped).collect();
            let holds = |&(start, len): &(u64, u64)| (start..start + len).contains(&address);
            let expect = ranges.iter().rposition(holds).map(|n| n as u64);
            let found = images.at(address);
            prop_assert_eq!(found.map(|i| i.inode), expect);
            if let Some(found) = found {
                prop_assert_eq!(found.file_offset, found.start);
            }
        }
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
