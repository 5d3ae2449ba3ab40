//! Safe opening of the file behind a mapping: a managed program has told its path, and may have put
//! anything there since.
//!
//! Opening a FIFO waits for its other end, opening a device may do anything, and a link leads
//! wherever its owner likes. So the path is resolved without opening the file that it names
//! (`O_PATH`, `open(2)`), and only a file that is proven to be the regular one that was mapped is
//! opened, through the descriptor that the proof is about. Directories on the way may be links:
//! only the file counts.

use super::images::Image;
use nix::libc::{O_CLOEXEC, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH};
use nix::sys::stat::{major, minor};
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// Opens the file of a mapping; none when there is none, or something else in its place.
pub(super) fn open(root: &Path, image: &Image) -> Option<File> {
    if !image.is_file() {
        return None;
    }
    let path = root.join(image.path.trim_start_matches('/'));
    let found = open_with(&path, O_PATH | O_NOFOLLOW | O_CLOEXEC)?;
    if !is_of(&found.metadata().ok()?, image) {
        return None;
    }
    let found = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Non-blocking, so as not to wait for a process that holds a lease on the file.
    open_with(Path::new(&found), O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
}

fn open_with(path: &Path, flags: i32) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path).ok()
}

/// Returns true if this is the regular file that was mapped.
pub(super) fn is_of(found: &Metadata, image: &Image) -> bool {
    found.is_file() && found.ino() == image.inode && is_on(found.dev(), image.device)
}

/// Returns true if a file of device `found` may be one of `mapped`. Major number 0 is for file
/// systems without a device; some of them (btrfs, overlayfs) give a file another number than its
/// mapping, so there only the inode is compared.
fn is_on(found: u64, mapped: (u32, u32)) -> bool {
    let found = (major(found), minor(found));
    found.0 == 0 || mapped.0 == 0 || found == (u64::from(mapped.0), u64::from(mapped.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    #[test]
    fn the_file_itself_is_opened_also_behind_linked_directories() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("usr")).unwrap();
        symlink("usr", root.path().join("lib")).unwrap();
        fs::write(root.path().join("usr/code"), "code").unwrap();
        for path in ["usr/code", "lib/code"] {
            let mut text = String::new();
            let mut file = open(root.path(), &Image::of_file(root.path(), path)).unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "code");
        }
    }

    #[test]
    fn another_inode_or_device_is_another_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let image = Image::of_file(root.path(), "code");
        let inode = Image {
            inode: image.inode + 1,
            ..image
        };
        assert!(open(root.path(), &inode).is_none());
    }

    #[test]
    fn devices_are_compared_where_both_are_told() {
        let on_disk = nix::sys::stat::makedev(8, 1);
        assert!(is_on(on_disk, (8, 1)) && is_on(on_disk, (0, 37)));
        assert!(!is_on(on_disk, (8, 2)) && !is_on(on_disk, (9, 1)));
        assert!(is_on(nix::sys::stat::makedev(0, 40), (0, 41)));
    }
}
