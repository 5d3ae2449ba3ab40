//! Programs that another run manages already.
//!
//! Two runs on one program would take each other's masks for original ones, and restore those.

use super::host::{AllowedPusCache, Host};
use super::journal::{Journal, JournalError, SUFFIX};
use super::record::JournalRecord;
use super::runtime_dir::{RuntimeDir, RuntimeDirError};
use crate::proc::ProcError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Journals of other runs in these folders. Runs of one user may keep theirs in different ones: a
/// service and a login have different environments.
///
/// # Errors
/// If a folder cannot be listed for the moment. One that is missing or closed to this user has none.
pub(crate) fn other_journals(folders: &[PathBuf], own: &Path) -> Result<Vec<PathBuf>, ProcError> {
    let mut journals = Vec::new();
    for folder in folders {
        let listed: io::Result<Vec<_>> = folder.read_dir().and_then(Iterator::collect);
        let entries = ignore_lasting_error(folder, listed)?.unwrap_or_default();
        let paths = entries.into_iter().map(|entry| entry.path());
        let is_journal = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(SUFFIX));
        journals.extend(paths.filter(|path| is_journal(path) && path != own));
    }
    Ok(journals)
}

/// Process id of another run that manages the program by one of these live journals; `None` without
/// such a run.
///
/// # Errors
/// If a journal cannot be read for the moment.
pub(crate) fn find_owner_pid(
    host: &Host,
    others: &[PathBuf],
    (pid, start_ticks): (u32, u64),
) -> Result<Option<u32>, ProcError> {
    for journal in others {
        let manager = read_owner_pid(host, journal, pid, start_ticks);
        if let Some(owner) = ignore_lasting_error(journal, manager)?.flatten() {
            return Ok(Some(owner));
        }
    }
    Ok(None)
}

fn read_owner_pid(host: &Host, path: &Path, pid: u32, start_ticks: u64) -> io::Result<Option<u32>> {
    let (Some(folder), Some(name)) = (path.parent(), path.file_name()) else {
        return Ok(None);
    };
    let folder = match RuntimeDir::open(folder) {
        Err(RuntimeDirError::Unusable { source, .. }) => return Err(source),
        Err(_) => return Ok(None),
        Ok(folder) => folder,
    };
    let of_journal = |error| match error {
        JournalError::File { source, .. } => source,
        other => io::Error::other(other),
    };
    let journal = Journal::open_in_use(folder, &name.to_string_lossy()).map_err(of_journal)?;
    let Some(journal) = journal else {
        return Ok(None);
    };
    let header = journal.header();
    if !host.has_same_pid_space(header) {
        return Ok(None);
    }
    let names_it = |record: &JournalRecord| matches!(record, JournalRecord::Program(p) if p.pid == pid && p.start_ticks == start_ticks);
    let records = journal.records().map_err(of_journal)?;
    Ok(records.iter().any(names_it).then_some(header.pid))
}

/// Returns `None` for what lasts, such as a file that has been deleted or is damaged.
fn ignore_lasting_error<T>(path: &Path, read: io::Result<T>) -> Result<Option<T>, ProcError> {
    match read.map_err(|error| ProcError::io(path, &error)) {
        Err(error) if error.is_transient() => Err(error),
        read => Ok(read.ok()),
    }
}

// A build starts processes by the dozen. One look at cpusets and other runs suffices for all that are
// taken in together.

/// Time for which a look counts as the present.
const MOMENT: Duration = Duration::from_millis(20);

/// One look.
#[derive(Debug)]
pub(crate) struct HostSnapshot {
    at: Instant,
    pub(crate) allowed: AllowedPusCache,
    /// Journals of other runs; an error if they cannot be listed for the moment.
    pub(crate) other_journals: Result<Vec<PathBuf>, ProcError>,
}

impl HostSnapshot {
    /// The last look, or a new one if that is no longer the present.
    pub(crate) fn get_or_refresh<'a>(
        last: &'a mut Option<Self>,
        host: &Host,
        (folders, own_journal): (&[PathBuf], &Path),
    ) -> &'a mut Self {
        let recent = last
            .take()
            .filter(|snapshot| snapshot.at.elapsed() < MOMENT);
        last.insert(recent.unwrap_or_else(|| Self {
            at: Instant::now(),
            allowed: AllowedPusCache::new(host),
            other_journals: other_journals(folders, own_journal),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::errno::Errno;

    #[test]
    fn shortage_is_no_answer_and_missing_files_are() {
        let path = Path::new("/x");
        for errno in [Errno::EMFILE, Errno::ENFILE, Errno::ENOMEM, Errno::EIO] {
            assert!(ignore_lasting_error::<()>(path, Err(errno.into())).is_err());
        }
        for errno in [Errno::ENOENT, Errno::EACCES, Errno::ELOOP] {
            assert_eq!(
                ignore_lasting_error::<()>(path, Err(errno.into())),
                Ok(None)
            );
        }
        assert_eq!(ignore_lasting_error(path, Ok(7)), Ok(Some(7)));
    }

    #[test]
    fn journals_are_listed_without_the_own_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.journal", "b.journal", "c.new"] {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let folders = [folder.path().join("missing"), folder.path().to_owned()];
        let others = other_journals(&folders, &folder.path().join("a.journal"));
        assert_eq!(others, Ok(vec![folder.path().join("b.journal")]));
        let gone = [folder.path().join("gone.journal")];
        assert_eq!(find_owner_pid(&Host::real(), &gone, (1, 1)), Ok(None));
    }
}
