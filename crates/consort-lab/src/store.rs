//! Finished studies on disk, so that an interrupted set of studies can be resumed.

use crate::study::StudyReport;
use consort_experiment::Scale;
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Identity of a result in a file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreKey {
    /// The study's id.
    pub study: String,
    /// Its seed.
    pub seed: u64,
    /// Extent of the study that was run.
    pub scale: Scale,
    /// Version of the makers of the result: whatever changes results must change this text.
    pub version: String,
}

/// A folder of results: one file per study and scale, `W3-full.json`.
#[derive(Clone, Debug)]
pub struct StudyStore {
    folder: PathBuf,
}

/// Reason why results cannot be kept or read.
#[derive(Debug, Error)]
pub enum StoreError {
    /// The folder or a file cannot be used.
    #[error("cannot {doing} {}: {cause}", path.display())]
    Io {
        /// Operation that failed.
        doing: &'static str,
        /// The folder or file.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// A file is not a study's result.
    #[error(
        "{} is not a study's result: {cause}; remove it or choose another folder",
        path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// The mistake in it, with its line.
        cause: serde_json::Error,
    },
}

#[derive(Serialize)]
struct StoredResult<'a> {
    result_of: &'a StoreKey,
    report: &'a StudyReport,
}

/// The part that is read first: an older version's report may look different.
#[derive(Deserialize)]
struct StoredResultHead {
    result_of: StoreKey,
}

#[derive(Deserialize)]
struct StoredResultBody {
    report: StudyReport,
}

/// Bound on the size of a study's result, bytes.
const LARGEST: u64 = 256 << 20;

impl StudyStore {
    /// Opens a folder, which is made if it is not there, and checks that it can be written to, so
    /// that nothing is run whose result could not be kept.
    ///
    /// # Errors
    /// A folder that cannot be made or written to.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let failed = |doing| {
            let path = folder.to_owned();
            move |cause| StoreError::Io { doing, path, cause }
        };
        std::fs::create_dir_all(folder).map_err(failed("make the folder"))?;
        // Permissions alone do not show a full or a read-only file system.
        tempfile::tempfile_in(folder).map_err(failed("write to the folder"))?;
        let folder = folder.to_owned();
        Ok(Self { folder })
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The result with that key; `None` if there is no file, or if it holds the result of another
    /// seed or version.
    ///
    /// # Errors
    /// When the file cannot be read or is not a result.
    pub fn load(&self, key: &StoreKey) -> Result<Option<StudyReport>, StoreError> {
        let path = self.folder.join(file_name(key));
        let text = match consort_describe::input::read_text_within(LARGEST, &path) {
            Ok(text) => text,
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(cause) => {
                return Err(StoreError::Io {
                    doing: "read",
                    path,
                    cause,
                });
            }
        };
        let parse = || -> Result<Option<StudyReport>, serde_json::Error> {
            // The report of an older version may have another form, so that it is read only if the
            // key is right.
            let head: StoredResultHead = serde_json::from_str(&text)?;
            if head.result_of != *key {
                return Ok(None);
            }
            let body: StoredResultBody = serde_json::from_str(&text)?;
            Ok(Some(body.report))
        };
        parse().map_err(|cause| StoreError::Malformed { path, cause })
    }

    /// Keeps a result in place of the last one. The file is whole or not there.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn save(&self, key: &StoreKey, report: &StudyReport) -> Result<(), StoreError> {
        let result_of = key;
        let name = file_name(key);
        let written =
            serde_json::to_vec(&StoredResult { result_of, report }).map_err(io::Error::from);
        written
            .and_then(|content| consort_data::write_atomically(&self.folder, &name, &content))
            .map_err(|cause| StoreError::Io {
                doing: "write",
                path: self.folder.join(&name),
                cause,
            })
    }
}

fn file_name(key: &StoreKey) -> String {
    format!("{}-{}.json", key.study, key.scale)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::report;

    fn key() -> StoreKey {
        StoreKey {
            study: "T1".to_owned(),
            seed: 7,
            scale: Scale::Quick,
            version: "1".to_owned(),
        }
    }

    fn store() -> (tempfile::TempDir, StudyStore) {
        let folder = tempfile::tempdir().unwrap();
        let store = StudyStore::open(&folder.path().join("a/b")).unwrap();
        (folder, store)
    }

    #[test]
    fn kept_result_is_loaded_bit_by_bit() {
        let (_folder, store) = store();
        assert_eq!(store.load(&key()).unwrap(), None);
        store.save(&key(), &report("T1")).unwrap();
        assert_eq!(store.load(&key()).unwrap(), Some(report("T1")));
    }

    #[test]
    fn another_seed_scale_or_version_is_another_result() {
        let (_folder, store) = store();
        store.save(&key(), &report("T1")).unwrap();
        let scale = Scale::Full;
        let version = "2".to_owned();
        let others = [
            StoreKey { seed: 8, ..key() },
            StoreKey { scale, ..key() },
            StoreKey { version, ..key() },
        ];
        assert!(others.iter().all(|k| store.load(k).unwrap().is_none()));
    }

    #[test]
    fn older_version_in_another_form_is_ignored() {
        let (_folder, store) = store();
        let text =
            r#"{"result_of":{"study":"T1","seed":7,"scale":"quick","version":"0"},"report":3}"#;
        std::fs::write(store.folder().join("T1-quick.json"), text).unwrap();
        assert_eq!(store.load(&key()).unwrap(), None);
    }

    #[test]
    fn foreign_file_is_named_and_kept() {
        let (_folder, store) = store();
        let path = store.folder().join("T1-quick.json");
        std::fs::write(&path, "{\"mine\": 1}").unwrap();
        let error = store.load(&key()).unwrap_err().to_string();
        assert!(
            error.contains("T1-quick.json is not a study's result"),
            "{error}"
        );
        assert!(error.contains("line 1"), "{error}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "{\"mine\": 1}");
    }

    #[test]
    fn folder_that_cannot_be_made_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let error = StudyStore::open(&folder.path().join("file/in")).unwrap_err();
        assert!(error.to_string().starts_with("cannot make the folder "));
    }
}
