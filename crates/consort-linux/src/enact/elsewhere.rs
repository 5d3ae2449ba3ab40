//! Programs that another run manages already.
//!
//! Two runs on one program would take each other's masks for originals, and
//! restore those.

use super::host::Host;
use super::journal::{Journal, SUFFIX};
use super::record::Record;
use super::runtime_dir::RuntimeDir;
use std::path::Path;

/// Names of the journals of other runs in the folder of this run's own.
pub(crate) fn other_journals(own: &Path) -> Vec<String> {
    let Some(names) = own.parent().and_then(|folder| folder.read_dir().ok()) else {
        return Vec::new();
    };
    names
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| name.ends_with(SUFFIX) && own.file_name() != Some(name.as_ref()))
        .collect()
}

/// Process id of another run that manages the program by one of these live journals beside this
/// run's own; none without such a run.
pub(crate) fn owner_of(
    host: &Host,
    (own, others): (&Path, &[String]),
    (pid, start_ticks): (u32, u64),
) -> Option<u32> {
    let folder = own.parent()?;
    let mut managers = others.iter();
    managers.find_map(|name| manager(host, folder, name, pid, start_ticks))
}

fn manager(host: &Host, folder: &Path, name: &str, pid: u32, start_ticks: u64) -> Option<u32> {
    let journal = Journal::open_in_use(RuntimeDir::open(folder).ok()?, name).ok()??;
    let header = journal.header();
    let here = header.boot_id == host.boot_id()? && header.pid_namespace == host.pid_namespace()?;
    let names_it = |record: &Record| matches!(record, Record::Program(p) if p.pid == pid && p.start_ticks == start_ticks);
    (here && journal.records().ok()?.iter().any(names_it)).then_some(header.pid)
}
