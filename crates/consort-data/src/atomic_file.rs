//! Atomic files: complete, or absent.
//!
//! A result is written to a file without a name (`O_TMPFILE`), which the kernel frees when the
//! process ends for any reason. It gets its name when it is finished, so that Ctrl-C, a kill or a
//! full disk leave the earlier file or none, and no temporary file. On file systems without unnamed
//! files (some network file systems, FUSE) the file has a temporary name that begins with
//! [`PREFIX`]; a kill can leave it there, and it is safe to remove.

use nix::fcntl::{AT_FDCWD, AtFlags};
use nix::unistd::linkat;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Beginning of the names of files that are not finished.
pub const PREFIX: &str = ".consort-";

/// Mode of a result that everyone may read, before the umask is applied.
pub const PUBLIC: u32 = 0o666;

/// Names that are tried for a file that replaces another.
const TRIES: u32 = 100;

/// A file that appears under its name when it is finished.
#[derive(Debug)]
pub struct AtomicFile {
    place: PathBuf,
    file: UnfinishedFile,
}

#[derive(Debug)]
enum UnfinishedFile {
    Unnamed(File),
    Named(NamedTempFile),
}

impl AtomicFile {
    /// Begins a file in the folder of its place, with these permissions less the umask.
    ///
    /// # Errors
    /// Those of the file system, without the name of a temporary file.
    pub fn create(place: &Path, mode: u32) -> io::Result<Self> {
        let folder = folder_of(place);
        let unnamed = OpenOptions::new()
            .write(true)
            .read(true)
            .custom_flags(nix::libc::O_TMPFILE)
            .mode(mode)
            .open(folder);
        // Without /proc the file could not be named later.
        let file = match unnamed {
            Ok(file) if proc_path(&file).exists() => UnfinishedFile::Unnamed(file),
            _ => UnfinishedFile::Named(create_named(folder, mode)?),
        };
        let place = place.to_owned();
        Ok(Self { place, file })
    }

    /// The file, to be written to.
    pub fn as_file(&self) -> &File {
        match &self.file {
            UnfinishedFile::Unnamed(file) => file,
            UnfinishedFile::Named(file) => file.as_file(),
        }
    }

    /// Gives the file its name and replaces a file that has it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn replace(self) -> io::Result<()> {
        match self.file {
            UnfinishedFile::Named(file) => file.persist(&self.place).map(drop).map_err(|e| e.error),
            UnfinishedFile::Unnamed(file) => match link_file(&file, &self.place) {
                Err(e) if e.kind() == ErrorKind::AlreadyExists => rename_file(&file, &self.place),
                linked => linked,
            },
        }
    }

    /// Gives the file its name unless a file has it.
    ///
    /// # Errors
    /// [`ErrorKind::AlreadyExists`]; what the file system answers.
    pub fn persist_new(self) -> io::Result<()> {
        match self.file {
            UnfinishedFile::Named(file) => {
                let kept = file.persist_noclobber(&self.place);
                kept.map(drop).map_err(|e| e.error)
            }
            UnfinishedFile::Unnamed(file) => link_file(&file, &self.place),
        }
    }
}

/// Writes a file into a folder; it is on disk before it replaces one of that name.
///
/// # Errors
/// Those of the file system.
pub fn write_atomically(folder: &Path, name: &str, content: &[u8]) -> io::Result<()> {
    let file = AtomicFile::create(&folder.join(name), PUBLIC)?;
    file.as_file().write_all(content)?;
    file.as_file().sync_all()?;
    file.replace()
}

fn folder_of(place: &Path) -> &Path {
    let folder = place.parent().filter(|p| !p.as_os_str().is_empty());
    folder.unwrap_or(Path::new("."))
}

fn create_named(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(mode))
        .tempfile_in(folder)
        // The name of a passing file in the message helps no user.
        .map_err(|error| error.kind().into())
}

/// The link of `/proc` to an open file. `linkat` follows it, which is how an unnamed file gets a name.
fn proc_path(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

fn link_file(file: &File, place: &Path) -> io::Result<()> {
    let linked = linkat(
        AT_FDCWD,
        &proc_path(file),
        AT_FDCWD,
        place,
        AtFlags::AT_SYMLINK_FOLLOW,
    );
    linked.map_err(io::Error::from)
}

/// Links the file under a passing name and renames it, because no call links over a file. A kill
/// between both calls leaves the passing name.
fn rename_file(file: &File, place: &Path) -> io::Result<()> {
    let folder = folder_of(place);
    for attempt in 0..TRIES {
        let passing = folder.join(format!("{PREFIX}{}-{attempt}", std::process::id()));
        match link_file(file, &passing) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => continue,
            linked => linked?,
        }
        let renamed = fs::rename(&passing, place);
        if renamed.is_err() {
            fs::remove_file(&passing)?;
        }
        return renamed;
    }
    Err(ErrorKind::AlreadyExists.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn new_file_replaces_the_old() {
        let folder = tempfile::tempdir().unwrap();
        write_atomically(folder.path(), "a", b"long old content").unwrap();
        write_atomically(folder.path(), "a", b"new").unwrap();
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"new");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn unfinished_file_has_no_name() {
        let folder = tempfile::tempdir().unwrap();
        let file = AtomicFile::create(&folder.path().join("a"), PUBLIC).unwrap();
        file.as_file().write_all(b"begun").unwrap();
        if matches!(file.file, UnfinishedFile::Named(_)) {
            println!("skipped: this file system has no files without names");
            return;
        }
        assert_eq!(names(folder.path()), [""; 0]);
        file.replace().unwrap();
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn named_files_are_recognisable_and_take_their_place() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        let file = UnfinishedFile::Named(create_named(folder.path(), PUBLIC).unwrap());
        assert!(names(folder.path())[0].starts_with(PREFIX));
        let place_of = place.clone();
        AtomicFile { place, file }.replace().unwrap();
        assert_eq!(names(folder.path()), ["a"]);
        let file = UnfinishedFile::Named(create_named(folder.path(), PUBLIC).unwrap());
        let place = place_of;
        let error = AtomicFile { place, file }.persist_new().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::AlreadyExists);
    }

    #[test]
    fn persist_new_keeps_an_existing_file() {
        let folder = tempfile::tempdir().unwrap();
        write_atomically(folder.path(), "a", b"old").unwrap();
        let file = AtomicFile::create(&folder.path().join("a"), PUBLIC).unwrap();
        file.as_file().write_all(b"new").unwrap();
        assert_eq!(
            file.persist_new().unwrap_err().kind(),
            ErrorKind::AlreadyExists
        );
        assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a"]);
    }

    #[test]
    fn failed_write_leaves_no_trace() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("taken")).unwrap();
        assert!(write_atomically(folder.path(), "taken", b"x").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
    }

    #[test]
    fn permissions_are_requested_less_the_umask() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("a");
        AtomicFile::create(&place, 0o600)
            .unwrap()
            .replace()
            .unwrap();
        let mode = fs::metadata(&place).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn reader_sees_one_whole_file_or_the_other() {
        let folder = tempfile::tempdir().unwrap();
        let contents = [vec![b'a'; 100_000], vec![b'b'; 70_000]];
        write_atomically(folder.path(), "f", &contents[0]).unwrap();
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for round in 0..40 {
                    write_atomically(folder.path(), "f", &contents[round % 2]).unwrap();
                }
            });
            while !writer.is_finished() {
                let seen = fs::read(folder.path().join("f")).unwrap();
                assert!(contents.contains(&seen), "{} bytes", seen.len());
            }
        });
    }
}
