//! Recovery from runs that were killed together with their guardians.

use super::host::{Host, ProcessEntry};
use super::journal::{Journal, JournalError, SUFFIX};
use super::journal_state::JournalState;
use super::restore::{RestoreReport, restore_dead_runs};
use super::runtime_dir::{NEW_SUFFIX, RuntimeDir, RuntimeDirError};
use crate::group::delete_stale_files;
use crate::proc::ProcError;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time between two looks at journals that guardians are restoring from.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// Outcome of a search of the folders for journals.
#[derive(Debug, Default)]
pub struct RecoverReport {
    /// Number of journals in use by a run; left alone.
    pub in_use: usize,
    /// Number of journals of killed runs that their guardians are restoring from; left alone.
    pub restoring: usize,
    /// Number of journals from before a reboot; deleted.
    pub outdated: usize,
    /// Number of journals of another PID namespace; left alone.
    pub elsewhere: usize,
    /// Restorations, one for each abandoned journal; the journals of complete restorations are
    /// deleted.
    pub restored: Vec<(PathBuf, RestoreReport)>,
    /// Folders and journals that could not be used.
    pub errors: Vec<JournalError>,
}

/// Restores from abandoned journals in these folders and deletes them, together with files that
/// killed leaders of groups have left. Call it before a run starts; it is cheap when there is
/// nothing to do.
pub fn recover_stale(dirs: &[PathBuf]) -> RecoverReport {
    AbandonedJournals::find(dirs).recover()
}

/// Recovers again and again until no guardian of a killed run is at work any more, or `limit` is
/// over: a mask that such a run has left would be taken for original. Returns the sum of all
/// recoveries, with the state of the last.
pub(crate) fn wait_for_guardians(dirs: &[PathBuf], limit: Duration) -> RecoverReport {
    let end = Instant::now() + limit;
    let mut restored = Vec::new();
    loop {
        // Each round restores from journals whose guardians have died meanwhile.
        let mut report = recover_stale(dirs);
        restored.append(&mut report.restored);
        if report.restoring == 0 || Instant::now() >= end {
            report.restored = restored;
            return report;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Journals that killed runs and their guardians have left. They are open and locked, so that no
/// other process restores from them meanwhile.
pub(crate) struct AbandonedJournals {
    host: Host,
    dirs: Vec<PathBuf>,
    journals: Vec<Journal>,
    /// Findings so far.
    report: RecoverReport,
}

impl AbandonedJournals {
    /// Opens and locks the abandoned journals of these folders, and deletes unfinished ones.
    pub(crate) fn find(dirs: &[PathBuf]) -> Self {
        let dirs = dirs.iter().filter(|dir| dir.exists()).cloned().collect();
        let mut found = Self {
            host: Host::real(),
            dirs,
            journals: Vec::new(),
            report: RecoverReport::default(),
        };
        for dir in found.dirs.clone() {
            let names = names_in(&dir).unwrap_or_else(|error| {
                found.report.errors.push(error);
                Vec::new()
            });
            for name in names {
                if let Err(error) = found.inspect_file(&dir, &name) {
                    found.report.errors.push(error);
                }
            }
        }
        found
    }

    /// Returns true if there is no journal to restore from.
    pub(crate) fn is_empty(&self) -> bool {
        self.journals.is_empty()
    }

    /// Restores from the journals, and deletes those of complete restorations.
    pub(crate) fn recover(mut self) -> RecoverReport {
        let mut dead = Vec::new();
        for journal in std::mem::take(&mut self.journals) {
            match read_journal_state(&self.host, &journal, &mut self.report) {
                Ok(ledger) => dead.extend(ledger.map(|ledger| (journal, ledger))),
                Err(error) => self.report.errors.push(error),
            }
        }
        let runs: Vec<_> = dead
            .iter()
            .map(|(journal, ledger)| (ledger, journal.header().run.as_str()))
            .collect();
        let reports = restore_dead_runs(&self.host, &runs);
        for ((journal, _), restored) in dead.iter().zip(reports) {
            if restored.complete {
                journal.unlink();
            }
            self.report.restored.push((journal.path(), restored));
        }
        // Only now: the next leader of a group takes the masks that it finds for original ones.
        self.dirs.iter().for_each(|dir| delete_stale_files(dir));
        self.report
    }

    fn inspect_file(&mut self, dir: &Path, name: &str) -> Result<(), JournalError> {
        if let Some(run) = name.strip_suffix(NEW_SUFFIX) {
            return delete_unfinished(&self.host, dir, name, run);
        }
        if !name.ends_with(SUFFIX) {
            return Ok(());
        }
        match Journal::open_stale(RuntimeDir::open(dir)?, name)? {
            None if is_being_restored(&self.host, dir, name) => self.report.restoring += 1,
            None => self.report.in_use += 1,
            Some(journal) => self.journals.push(journal),
        }
        Ok(())
    }
}

/// Names in a folder; none in one that is missing or closed to this user.
fn names_in(dir: &Path) -> Result<Vec<String>, JournalError> {
    let listed: io::Result<Vec<_>> = std::fs::read_dir(dir).and_then(Iterator::collect);
    let entries = listed.or_else(|source| match ProcError::io(dir, &source).is_transient() {
        true => Err(JournalError::File {
            action: "list journals in",
            path: dir.to_owned(),
            source,
        }),
        false => Ok(Vec::new()),
    })?;
    let names = entries.into_iter().map(|entry| entry.file_name());
    Ok(names.filter_map(|name| name.into_string().ok()).collect())
}

/// Returns true if only a guardian still uses a journal, as the run, of this host, is dead or about
/// to die: after a SIGKILL the kernel lets a process run no more, but it may take a while to end.
/// Also if that cannot be found out for the moment.
fn is_being_restored(host: &Host, dir: &Path, name: &str) -> bool {
    let journal = RuntimeDir::open(dir).map(|dir| Journal::open_in_use(dir, name));
    let journal = match journal {
        Ok(Ok(Some(journal))) => journal,
        Ok(Err(JournalError::File { source, .. }))
        | Err(RuntimeDirError::Unusable { source, .. }) => {
            return ProcError::io(dir, &source).is_transient();
        }
        _ => return false,
    };
    let owner = journal.header();
    // The numbers of another PID namespace mean other processes here.
    let is_here = host.has_same_pid_space(owner);
    let process = host.process(owner.pid, owner.start_ticks);
    let lives = |process: ProcessEntry| !process.stat.is_exiting() && !host.was_killed(owner.pid);
    is_here && process.map_or(true, |process| !process.is_some_and(lives))
}

/// Returns what is to be restored from a journal; `None` if its numbers mean nothing here. One from
/// before a reboot is deleted.
fn read_journal_state(
    host: &Host,
    journal: &Journal,
    report: &mut RecoverReport,
) -> Result<Option<JournalState>, JournalError> {
    let header = journal.header();
    if !header.is_of_boot(host.boot_id().as_deref()) {
        report.outdated += 1;
        journal.unlink();
    } else if header.pid_namespace != host.pid_namespace() {
        report.elsewhere += 1;
    } else {
        return Ok(Some(JournalState::new(journal.records()?)));
    }
    Ok(None)
}

/// Deletes a journal whose owner died before its first record counted.
fn delete_unfinished(host: &Host, dir: &Path, name: &str, run: &str) -> Result<(), JournalError> {
    let mut numbers = run.split('-').map_while(|field| field.parse::<u64>().ok());
    let owner = (numbers.next().and_then(|pid| u32::try_from(pid).ok())).zip(numbers.next());
    if owner.is_some_and(|(pid, start)| host.process(pid, start) != Ok(None)) {
        return Ok(());
    }
    let path = dir.join(name);
    RuntimeDir::open(dir)?;
    std::fs::remove_file(&path).map_err(|source| JournalError::File {
        action: "delete",
        path,
        source,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEAD: &str = "4194304-1-0";

    fn dir_with(name: &str, text: &str) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join(name), text).unwrap();
        dir
    }

    fn files_in(dir: &tempfile::TempDir) -> usize {
        std::fs::read_dir(dir.path()).unwrap().count()
    }

    #[test]
    fn a_journal_from_before_a_reboot_is_deleted() {
        let text = format!("consort-journal 1 {DEAD} other-boot pid:[1] 4194304 1\n");
        let dir = dir_with("a.journal", &text);
        let report = recover_stale(&[dir.path().to_owned()]);
        assert_eq!((report.outdated, files_in(&dir)), (1, 0));
    }

    #[test]
    fn a_journal_of_another_pid_namespace_stays() {
        let boot = Host::real().boot_id().unwrap();
        let text = format!("consort-journal 1 {DEAD} {boot} pid:[1] 4194304 1\n");
        let dir = dir_with("a.journal", &text);
        let report = recover_stale(&[dir.path().to_owned()]);
        assert_eq!((report.elsewhere, files_in(&dir)), (1, 1));
    }

    #[test]
    fn an_unfinished_journal_of_the_dead_is_deleted() {
        let dir = dir_with(&format!("{DEAD}.new"), "");
        assert!(recover_stale(&[dir.path().to_owned()]).errors.is_empty());
        assert_eq!(files_in(&dir), 0);
    }

    #[test]
    fn what_is_no_journal_is_reported_and_stays() {
        let dir = dir_with("a.journal", "x\ny\n");
        let report = recover_stale(&[dir.path().to_owned()]);
        assert!(
            report.errors[0]
                .to_string()
                .contains("not a journal of version 1")
        );
        assert_eq!(files_in(&dir), 1);
    }
}
