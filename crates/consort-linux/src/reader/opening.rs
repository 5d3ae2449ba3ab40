//! Safe opening of the file behind a mapping: a managed program has given its path, and may have put
//! anything there since.
//!
//! Opening a FIFO waits for its other end, opening a device may do anything, and a link leads
//! wherever its owner likes. So the path is resolved without opening the file that it names
//! (`O_PATH`, `open(2)`), and only a file that is proven to be the regular one that was mapped is
//! opened, through the descriptor that the proof is about. Directories on the way may be links:
//! only the file counts.
//!
//! The path is that of the mapping program, in its root and mount namespace (`chroot(2)`,
//! containers). So it is tried below the caller's root and below `/proc/PID/root` of the process and
//! of its ancestors, which mostly have the same root: a process of a build has ended by the time its
//! records are read, and the shell that started it has not.

use super::request::FileRef;
use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::libc::{O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_PATH};
use nix::sys::stat::{major, minor};
use std::fs::{File, Metadata, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Opens a mapped file for reading; `None` if there is none, or something else in its place.
pub(super) fn open(root: &Path, file: &FileRef) -> Option<File> {
    let found = roots(root, file).find_map(|below| {
        let path = below.join(file.path.trim_start_matches('/'));
        let found = open_with_flags(&path, O_PATH | O_NOFOLLOW | O_CLOEXEC)?;
        is_mapped_file(&found.metadata().ok()?, file).then_some(found)
    })?;
    let found = format!("/proc/self/fd/{}", found.as_raw_fd());
    // Non-blocking, so as not to wait for a process that holds a lease on the file.
    open_with_flags(Path::new(&found), O_NONBLOCK | O_NOCTTY | O_CLOEXEC)
}

/// Time of change of a mapped file, ns since 1970. No mount is entered on the way: the look-up is
/// for file systems of the host, and a program may have mounted one of its own there.
pub(super) fn changed_ns(root: &Path, file: &FileRef) -> Option<u64> {
    let how = OpenHow::new()
        .flags(OFlag::O_PATH | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC)
        .resolve(ResolveFlag::RESOLVE_NO_XDEV);
    let path = file.path.trim_start_matches('/');
    roots(root, file).find_map(|below| {
        let below = open_with_flags(&below, O_PATH | O_DIRECTORY | O_CLOEXEC)?;
        let found = File::from(openat2(&below, path, how).ok()?);
        let found = found.metadata().ok()?;
        let at_ns = i128::from(found.ctime()) * 1_000_000_000 + i128::from(found.ctime_nsec());
        is_mapped_file(&found, file).then(|| u64::try_from(at_ns).ok())?
    })
}

/// Folders that the path may be meant below.
fn roots(root: &Path, file: &FileRef) -> impl Iterator<Item = PathBuf> {
    let of_processes = file.seen_by.iter();
    let of_processes = of_processes.map(|pid| root.join(format!("proc/{pid}/root")));
    std::iter::once(root.to_owned()).chain(of_processes)
}

fn open_with_flags(path: &Path, flags: i32) -> Option<File> {
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(flags).open(path).ok()
}

/// Returns true if this is the regular file that was mapped.
fn is_mapped_file(found: &Metadata, file: &FileRef) -> bool {
    found.is_file() && found.ino() == file.inode && is_same_device(found.dev(), file.device)
}

/// Returns true if a file of device `found` may be one of `mapped`. Major number 0 is for file
/// systems without a device; some of them (btrfs, overlayfs) give a file another number than its
/// mapping, so there only the inode is compared.
fn is_same_device(found: u64, mapped: (u32, u32)) -> bool {
    let found = (major(found), minor(found));
    found.0 == 0 || mapped.0 == 0 || found == (u64::from(mapped.0), u64::from(mapped.1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::io::Read;
    use std::os::unix::fs::symlink;

    /// The file `path` below `root`, as if it were mapped.
    fn mapped(root: &Path, path: &str) -> FileRef {
        let file = fs::metadata(root.join(path)).unwrap();
        FileRef {
            path: format!("/{path}"),
            device: (major(file.dev()) as u32, minor(file.dev()) as u32),
            inode: file.ino(),
            seen_by: vec![7, 8],
        }
    }

    #[test]
    fn the_file_itself_is_opened_also_behind_linked_directories() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("usr")).unwrap();
        symlink("usr", root.path().join("lib")).unwrap();
        fs::write(root.path().join("usr/code"), "code").unwrap();
        for path in ["usr/code", "lib/code"] {
            let mut text = String::new();
            let mut file = open(root.path(), &mapped(root.path(), path)).unwrap();
            file.read_to_string(&mut text).unwrap();
            assert_eq!(text, "code");
        }
    }

    #[test]
    fn another_inode_is_another_file() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("code"), "code").unwrap();
        let mut file = mapped(root.path(), "code");
        file.inode += 1;
        assert!(open(root.path(), &file).is_none());
        assert!(changed_ns(root.path(), &file).is_none());
    }

    #[test]
    fn path_below_the_root_of_an_ancestor_is_found() {
        let root = tempfile::tempdir().unwrap();
        let other = root.path().join("other");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("code"), "code").unwrap();
        fs::write(root.path().join("code"), "elsewhere").unwrap();
        fs::create_dir_all(root.path().join("proc/8")).unwrap();
        symlink("/gone", root.path().join("proc/7")).unwrap();
        symlink(&other, root.path().join("proc/8/root")).unwrap();
        let file = mapped(&other, "code");
        assert!(changed_ns(root.path(), &file).is_some());
        let mut text = String::new();
        let mut found = open(root.path(), &file).unwrap();
        found.read_to_string(&mut text).unwrap();
        assert_eq!(text, "code");
    }

    #[test]
    fn no_mount_is_entered_to_learn_the_time_of_change() {
        let elsewhere = mapped(Path::new("/"), "proc/version");
        assert_eq!(changed_ns(Path::new("/"), &elsewhere), None);
        let there = mapped(Path::new("/proc"), "version");
        assert!(changed_ns(Path::new("/proc"), &there).is_some());
    }

    #[test]
    fn devices_are_compared_where_both_are_given() {
        let on_disk = nix::sys::stat::makedev(8, 1);
        assert!(is_same_device(on_disk, (8, 1)) && is_same_device(on_disk, (0, 37)));
        assert!(!is_same_device(on_disk, (8, 2)) && !is_same_device(on_disk, (9, 1)));
        assert!(is_same_device(nix::sys::stat::makedev(0, 40), (0, 41)));
    }
}
