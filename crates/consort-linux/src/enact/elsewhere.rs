//! Programs that another run manages already.
//!
//! Two runs on one program would take each other's masks for originals, and
//! restore those.

use super::host::Host;
use super::journal::{Journal, SUFFIX};
use super::record::Record;
use super::runtime_dir::RuntimeDir;
use std::path::{Path, PathBuf};

/// Journals of other runs in these folders. Runs of one user may keep theirs in different ones: a
/// service and a login have different environments.
pub(crate) fn other_journals(folders: &[PathBuf], own: &Path) -> Vec<PathBuf> {
    let entries = folders.iter().filter_map(|folder| folder.read_dir().ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let is_journal = |path: &PathBuf| path.to_str().is_some_and(|name| name.ends_with(SUFFIX));
    paths
        .filter(|path| is_journal(path) && path != own)
        .collect()
}

/// Process id of another run that manages the program by one of these live journals; `None` without
/// such a run.
pub(crate) fn owner_of(
    host: &Host,
    others: &[PathBuf],
    (pid, start_ticks): (u32, u64),
) -> Option<u32> {
    let mut managers = others.iter();
    managers.find_map(|journal| manager(host, journal, pid, start_ticks))
}

fn manager(host: &Host, journal: &Path, pid: u32, start_ticks: u64) -> Option<u32> {
    let (folder, name) = (journal.parent()?, journal.file_name()?.to_str()?);
    let journal = Journal::open_in_use(RuntimeDir::open(folder).ok()?, name).ok()??;
    let header = journal.header();
    let names_it = |record: &Record| matches!(record, Record::Program(p) if p.pid == pid && p.start_ticks == start_ticks);
    let is_here = host.shares_numbers_with(header);
    (is_here && journal.records().ok()?.iter().any(names_it)).then_some(header.pid)
}
