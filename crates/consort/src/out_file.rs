//! A result as a file, complete or absent.
//!
//! The path is checked before the work begins, and the file is written after it, so that a signal in
//! between leaves nothing. A link is itself replaced and never followed, because another user may have
//! planted it in a folder such as `/tmp`.

use crate::failure::bad_input;
use anyhow::{Context, Result};
use consort_data::{AtomicFile, PUBLIC};
use nix::unistd::Uid;
use std::fmt::Display;
use std::io::{self, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Nature of a path that a result is to be written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OutPlace {
    /// An ordinary file, a link to one, or nothing: it is replaced.
    File,
    /// A device, a pipe, or a link of the kernel to an open file, such as `/dev/stdout`: it is
    /// written to and must stay what it is.
    Stream,
}

impl OutPlace {
    /// Returns the nature of a path; an error if no result can be written there.
    pub(crate) fn for_path(path: &Path) -> io::Result<Self> {
        let there = match path.symlink_metadata() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::File),
            there => there?,
        };
        if there.is_symlink() {
            return Self::for_link(path);
        }
        let owner = there.uid();
        match there.file_type() {
            kind if kind.is_file() => Ok(Self::File),
            kind if kind.is_dir() => Err(io::Error::other("it is a folder")),
            // One that another user has put there is not for root to fill.
            _ if owner != 0 && owner != Uid::effective().as_raw() => Err(io::Error::other(
                format!("it belongs to user {owner} and is not an ordinary file"),
            )),
            _ => Ok(Self::Stream),
        }
    }

    fn for_link(path: &Path) -> io::Result<Self> {
        let folder = path.parent().and_then(|folder| folder.canonicalize().ok());
        let is_kernels = folder.is_some_and(|f| f == Path::new("/dev") || f.starts_with("/proc"));
        match path.metadata() {
            _ if is_kernels => Ok(Self::Stream),
            Ok(target) if !target.is_file() => Err(io::Error::other(
                "it is a link to what is not an ordinary file; name that itself",
            )),
            _ => Ok(Self::File),
        }
    }
}

/// A checked place for a file that is written when its content is ready.
pub(crate) struct OutFile {
    /// Kind of content, named in errors.
    what: &'static str,
    place: PathBuf,
    replace: bool,
}

impl OutFile {
    /// Checks that the file can be written, and may be.
    pub(crate) fn create(what: &'static str, place: &Path, replace: bool) -> Result<Self> {
        let refused = |why: &dyn Display| {
            bad_input(format!("cannot write {what} {}: {why}", place.display()))
        };
        if place.symlink_metadata().is_ok() && !replace {
            return Err(exists_error(place));
        }
        match OutPlace::for_path(place) {
            Ok(OutPlace::File) => {}
            Ok(OutPlace::Stream) => return Err(refused(&"it is no file")),
            Err(error) => return Err(refused(&error)),
        }
        AtomicFile::create(place, PUBLIC).map_err(|error| refused(&error.kind()))?;
        Ok(Self {
            what,
            place: place.to_owned(),
            replace,
        })
    }

    pub(crate) fn write(self, text: &str) -> Result<()> {
        let write = || {
            let file = AtomicFile::create(&self.place, PUBLIC)?;
            file.as_file().write_all(text.as_bytes())?;
            match self.replace {
                true => file.replace(),
                false => file.persist_new(),
            }
        };
        match write() {
            // Another process may have made the file since the check.
            Err(e) if !self.replace && e.kind() == io::ErrorKind::AlreadyExists => {
                Err(exists_error(&self.place))
            }
            written => written
                .with_context(|| format!("cannot write {} {}", self.what, self.place.display())),
        }
    }
}

fn exists_error(place: &Path) -> anyhow::Error {
    bad_input(format!("{} exists; --force replaces it", place.display()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn link_is_replaced_and_its_target_stays() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        symlink(&file, &link).unwrap();
        assert!(OutFile::create("model", &link, false).is_err());
        let out = OutFile::create("model", &link, true).unwrap();
        out.write("new").unwrap();
        assert!(!link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        assert_eq!(std::fs::read_to_string(&link).unwrap(), "new");
    }

    #[test]
    fn nature_of_a_path_is_found_without_following_planted_links() {
        let folder = tempfile::tempdir().unwrap();
        let link = |name: &str, target: &str| {
            let link = folder.path().join(name);
            symlink(target, &link).unwrap();
            link
        };
        assert_eq!(
            OutPlace::for_path(&link("absent", "/nowhere")).unwrap(),
            OutPlace::File
        );
        assert!(OutPlace::for_path(&link("device", "/dev/null")).is_err());
        assert!(OutPlace::for_path(folder.path()).is_err());
        assert_eq!(
            OutPlace::for_path(Path::new("/dev/null")).unwrap(),
            OutPlace::Stream
        );
        assert_eq!(
            OutPlace::for_path(Path::new("/dev/stdin")).unwrap(),
            OutPlace::Stream
        );
        assert_eq!(
            OutPlace::for_path(&folder.path().join("none")).unwrap(),
            OutPlace::File
        );
    }
}
