//! The model as a file: whole, or not there.

use crate::failure::bad_input;
use anyhow::{Context, Result};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// What files are made with; the umask takes its part away.
const MODE: u32 = 0o666;

/// Written beside its place and moved there at the end.
pub(super) struct OutFile {
    file: NamedTempFile,
    place: PathBuf,
    replace: bool,
}

impl OutFile {
    pub(super) fn create(place: &Path, replace: bool) -> Result<Self> {
        if place.exists() && !replace {
            return Err(exists(place));
        }
        if place.exists() && !place.is_file() {
            let place = place.display();
            return Err(bad_input(format!(
                "cannot write model {place}: it is no file"
            )));
        }
        let folder = place.parent().filter(|p| !p.as_os_str().is_empty());
        let file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(MODE))
            .tempfile_in(folder.unwrap_or(Path::new(".")))
            // The kind alone: the temporary file's name helps nobody.
            .map_err(|error| {
                bad_input(format!(
                    "cannot write model {}: {}",
                    place.display(),
                    error.kind()
                ))
            })?;
        let place = place.to_owned();
        Ok(Self {
            file,
            place,
            replace,
        })
    }

    pub(super) fn write(self, text: &str) -> Result<()> {
        let place = self.place;
        let context = || format!("cannot write model {}", place.display());
        self.file
            .as_file()
            .write_all(text.as_bytes())
            .with_context(context)?;
        if self.replace {
            self.file
                .persist(&place)
                .map_err(|e| e.error)
                .with_context(context)?;
            return Ok(());
        }
        // Somebody may have made one meanwhile.
        match self.file.persist_noclobber(&place) {
            Err(e) if e.error.kind() == std::io::ErrorKind::AlreadyExists => Err(exists(&place)),
            persisted => persisted
                .map(drop)
                .map_err(|e| e.error)
                .with_context(context),
        }
    }
}

fn exists(place: &Path) -> anyhow::Error {
    bad_input(format!("{} exists; --force replaces it", place.display()))
}
