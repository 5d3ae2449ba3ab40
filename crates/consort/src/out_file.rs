//! A result as a file: whole, or not there.
//!
//! The path is checked before the work begins, and the file is written after it: a signal in
//! between leaves nothing behind.

use crate::failure::bad_input;
use anyhow::{Context, Result};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Mode of new files, before the umask is applied.
const MODE: u32 = 0o666;

/// A file that is written beside its place and then moved there.
pub(crate) struct OutFile {
    /// Kind of content, named in errors.
    what: &'static str,
    place: PathBuf,
    replace: bool,
}

impl OutFile {
    /// Checks that the file can be written, and may be.
    pub(crate) fn create(what: &'static str, place: &Path, replace: bool) -> Result<Self> {
        if place.exists() && !replace {
            return Err(exists(place));
        }
        if place.exists() && !place.is_file() {
            let place = place.display();
            return Err(bad_input(format!(
                "cannot write {what} {place}: it is no file"
            )));
        }
        // The kind alone: the temporary file's name helps nobody.
        beside(place).map_err(|error| {
            bad_input(format!(
                "cannot write {what} {}: {}",
                place.display(),
                error.kind()
            ))
        })?;
        Ok(Self {
            what,
            place: place.to_owned(),
            replace,
        })
    }

    pub(crate) fn write(self, text: &str) -> Result<()> {
        let place = self.place;
        let context = || format!("cannot write {} {}", self.what, place.display());
        let file = beside(&place).with_context(context)?;
        file.as_file()
            .write_all(text.as_bytes())
            .with_context(context)?;
        if self.replace {
            file.persist(&place)
                .map_err(|e| e.error)
                .with_context(context)?;
            return Ok(());
        }
        // Somebody may have made one meanwhile.
        match file.persist_noclobber(&place) {
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(&place)),
            persisted => persisted
                .map(drop)
                .map_err(|e| e.error)
                .with_context(context),
        }
    }
}

/// A temporary file in the folder of `place`; gone when dropped.
fn beside(place: &Path) -> std::io::Result<NamedTempFile> {
    let folder = place.parent().filter(|p| !p.as_os_str().is_empty());
    tempfile::Builder::new()
        .permissions(Permissions::from_mode(MODE))
        .tempfile_in(folder.unwrap_or(Path::new(".")))
}

fn exists(place: &Path) -> anyhow::Error {
    bad_input(format!("{} exists; --force replaces it", place.display()))
}
