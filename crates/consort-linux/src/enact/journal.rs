//! The journal file of one run: written ahead of every restriction.
//!
//! A journal is private, append-only and locked. The lock belongs to the open file that the owner
//! shares with its guardian, so it is free exactly when both are dead: no pid needs to be trusted.
//! A journal appears under its final name only with its header written and the lock taken.
//!
//! It need not survive a loss of power: masks do not survive that either. A finished write outlives
//! any process, so nothing is ever synced.

use super::host::Host;
use super::record::{JournalHeader, JournalRecord, JournalRecordError, UNKNOWN_BOOT};
use super::runtime_dir::{NEW_SUFFIX, RuntimeDir, RuntimeDirError};
use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, fcntl, openat, renameat};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::{Mode, fstat, fstatat};
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use thiserror::Error;

/// End of a finished journal's name.
pub(crate) const SUFFIX: &str = ".journal";

/// Reason for which a journal could not be made, written or read.
#[derive(Debug, Error)]
pub enum JournalError {
    /// No folder can hold the journal.
    #[error(transparent)]
    Dir(#[from] RuntimeDirError),
    /// An operation on the file failed.
    #[error("cannot {action} the journal {path}: {source}")]
    File {
        /// The failed operation, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// `/proc` does not show the caller.
    #[error(
        "/proc does not show this process: it is not mounted here; mount it to manage threads \
         (mount -t proc proc /proc)"
    )]
    NoProc,
    /// `/proc` was mounted for another PID namespace than the caller's.
    #[error(
        "/proc is that of another PID namespace: this process is {here}, and {there} there; mount \
         that of this namespace to manage threads (unshare --mount-proc)"
    )]
    OtherProc {
        /// Process id of the caller.
        here: u32,
        /// Its process id in the other namespace.
        there: u32,
    },
}

/// An open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    /// Folder of the journal; none for one that is in memory only.
    dir: Option<RuntimeDir>,
    name: String,
    file: File,
    header: JournalHeader,
    len_bytes: u64,
}

impl Journal {
    /// Makes the journal of a new run of this process.
    pub(crate) fn create(host: &Host, dir: RuntimeDir) -> Result<Self, JournalError> {
        let header = own_header(host)?;
        let mut journal = Self::create_unpublished(Some(dir), header, &[])?;
        journal.publish().inspect_err(|_| journal.unlink())?;
        Ok(journal)
    }

    /// A journal that lasts only as long as its holders: for a run that changes nothing and has no
    /// folder for another.
    pub(crate) fn create_in_memory(host: &Host) -> Result<Self, JournalError> {
        Self::create_unpublished(None, own_header(host)?, &[])
    }

    /// A journal of the same run with only these records, to take this one's
    /// place by [`Journal::publish`].
    pub(crate) fn create_replacement(
        &self,
        records: &[JournalRecord],
    ) -> Result<Self, JournalError> {
        let dir = self.dir.as_ref().map(RuntimeDir::try_clone).transpose();
        let dir = dir.map_err(|e| self.error("share the folder of", e))?;
        Self::create_unpublished(dir, self.header.clone(), records)
    }

    /// Gives a new or rewritten journal its final name.
    pub(crate) fn publish(&mut self) -> Result<(), JournalError> {
        let Some(RuntimeDir { handle: dir, .. }) = &self.dir else {
            return Ok(());
        };
        let name = format!("{}{SUFFIX}", self.header.run);
        // In one step, so that other runs see no journal or a whole one.
        renameat(dir, self.name.as_str(), dir, name.as_str())
            .map_err(|e| self.error("name", e.into()))?;
        self.name = name;
        Ok(())
    }

    /// A journal with header, lock and records, still under its first name.
    fn create_unpublished(
        dir: Option<RuntimeDir>,
        header: JournalHeader,
        records: &[JournalRecord],
    ) -> Result<Self, JournalError> {
        let name = format!("{}{NEW_SUFFIX}", header.run);
        let create = OFlag::O_CREAT | OFlag::O_EXCL;
        let file = match &dir {
            Some(dir) => open_at(dir, &name, create)?,
            None => create_memory_file(&name)?,
        };
        let mut journal = Self {
            file,
            dir,
            name,
            len_bytes: 0,
            header,
        };
        match journal.write_header_and_records(records) {
            Ok(()) => Ok(journal),
            Err(error) => {
                journal.unlink();
                Err(error)
            }
        }
    }

    fn write_header_and_records(&mut self, records: &[JournalRecord]) -> Result<(), JournalError> {
        let locked = self.file.try_lock().map_err(io::Error::from);
        locked.map_err(|e| self.error("lock", e))?;
        self.append_text(&format!("{}\n", self.header))?;
        self.append(records)
    }

    /// Opens the journal that a guardian shares with its owner.
    pub(crate) fn from_shared_file(
        dir: RuntimeDir,
        name: &str,
        file: File,
    ) -> Result<Self, JournalError> {
        let failed = |source| file_error("read", dir.path.join(name), source);
        let (header, _) = read(&file).map_err(failed)?;
        let len_bytes = file.metadata().map_err(failed)?.len();
        Ok(Self {
            name: name.to_owned(),
            dir: Some(dir),
            file,
            header,
            len_bytes,
        })
    }

    /// Opens the journal that another run may have left; none while it is in use.
    pub(crate) fn open_stale(dir: RuntimeDir, name: &str) -> Result<Option<Self>, JournalError> {
        let file = open_at(&dir, name, OFlag::empty())?;
        match file.try_lock() {
            Ok(()) => Self::from_shared_file(dir, name, file).map(Some),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) => Err(file_error("lock", dir.path.join(name), e)),
        }
    }

    /// Opens another run's journal for reading while it is in use; none when it is abandoned.
    pub(crate) fn open_in_use(dir: RuntimeDir, name: &str) -> Result<Option<Self>, JournalError> {
        let file = open_at(&dir, name, OFlag::empty())?;
        // The shared lock is refused exactly while a run or its guardian holds the exclusive one.
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Self::from_shared_file(dir, name, file).map(Some),
            Ok(()) => Ok(None),
            Err(TryLockError::Error(e)) => Err(file_error("lock", dir.path.join(name), e)),
        }
    }

    /// Appends records; they count only when all are written.
    pub(crate) fn append(&mut self, records: &[JournalRecord]) -> Result<(), JournalError> {
        let text: String = records.iter().map(|record| format!("{record}\n")).collect();
        self.append_text(&text)
    }

    fn append_text(&mut self, text: &str) -> Result<(), JournalError> {
        if let Err(error) = self.file.write_all(text.as_bytes()) {
            // A full disk can take a part of the text. It is taken back, lest the next record be
            // glued to it. Should even that fail, the part is a damaged line, which readers skip.
            let cut = self.file.set_len(self.len_bytes);
            cut.map_err(|e| self.error("take back a part of", e))?;
            return Err(self.error("append to", error));
        }
        self.len_bytes += text.len() as u64;
        Ok(())
    }

    /// Every record that is whole.
    pub(crate) fn records(&self) -> Result<Vec<JournalRecord>, JournalError> {
        let (_, records) = read(&self.file).map_err(|e| self.error("read", e))?;
        Ok(records)
    }

    /// Deletes the file, unless another one has taken its name.
    pub(crate) fn unlink(&self) {
        let Some(RuntimeDir { handle: dir, .. }) = &self.dir else {
            return;
        };
        let flags = nix::fcntl::AtFlags::AT_SYMLINK_NOFOLLOW;
        let named = fstatat(dir, self.name.as_str(), flags);
        let own = fstat(self.file.as_fd());
        // After a rewrite the name belongs to the new journal, which must stay.
        let same = matches!((named, own), (Ok(a), Ok(b)) if a.st_ino == b.st_ino);
        if same && let Err(errno) = unlinkat(dir, self.name.as_str(), UnlinkatFlags::NoRemoveDir) {
            tracing::warn!(name = self.name, %errno, "cannot delete a journal");
        }
    }

    /// The open file, to be shared with a guardian together with its lock.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// Path of the journal; its name alone for one in memory.
    pub(crate) fn path(&self) -> PathBuf {
        let dir = self.dir.as_ref().map_or(Path::new(""), |dir| &dir.path);
        dir.join(&self.name)
    }

    pub(crate) fn header(&self) -> &JournalHeader {
        &self.header
    }

    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    fn error(&self, action: &'static str, source: io::Error) -> JournalError {
        file_error(action, self.path(), source)
    }
}

fn file_error(action: &'static str, path: PathBuf, source: io::Error) -> JournalError {
    JournalError::File {
        action,
        path,
        source,
    }
}

/// Opens a file of a checked folder, for appending, without following a link.
fn open_at(dir: &RuntimeDir, name: &str, more: OFlag) -> Result<File, JournalError> {
    let flags = OFlag::O_RDWR | OFlag::O_APPEND | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let action = if more.is_empty() { "open" } else { "create" };
    openat(&dir.handle, name, flags | more, mode)
        .map(File::from)
        .map_err(|e| file_error(action, dir.path.join(name), e.into()))
}

/// A file without a name, for appending.
fn create_memory_file(name: &str) -> Result<File, JournalError> {
    let failed = |errno: Errno| file_error("create", PathBuf::from(name), errno.into());
    let file = memfd_create(name, MFdFlags::MFD_CLOEXEC).map_err(failed)?;
    let flags = FcntlArg::F_SETFL(OFlag::O_APPEND);
    fcntl(&file, flags).map_err(failed)?;
    Ok(file.into())
}

/// Reads header and whole records of an open journal, skipping damaged lines.
pub(crate) fn read(file: &File) -> io::Result<(JournalHeader, Vec<JournalRecord>)> {
    let mut bytes = vec![0; usize::try_from(file.metadata()?.len()).unwrap_or(0)];
    file.read_exact_at(&mut bytes, 0)?;
    parse(&bytes).map_err(|e| io::Error::new(io::ErrorKind::InvalidData, e))
}

fn parse(bytes: &[u8]) -> Result<(JournalHeader, Vec<JournalRecord>), JournalRecordError> {
    // A line without its end has had no effect: an action follows only a whole record.
    let whole = bytes.iter().rposition(|&b| b == b'\n').unwrap_or(0);
    let text = String::from_utf8_lossy(&bytes[..whole]);
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default().parse()?;
    let records = lines.filter_map(|line| {
        let record: Result<JournalRecord, JournalRecordError> = line.parse();
        record
            .inspect_err(|error| tracing::warn!(%error, "a journal line is damaged"))
            .ok()
    });
    Ok((header, records.collect()))
}

fn own_header(host: &Host) -> Result<JournalHeader, JournalError> {
    // One process may have several runs, for example in tests.
    static RUNS: AtomicU32 = AtomicU32::new(0);
    let run = RUNS.fetch_add(1, Ordering::Relaxed);
    let pid = std::process::id();
    // In the `/proc` of another PID namespace the same number is another process.
    let there = host.own_pid().ok_or(JournalError::NoProc)?;
    if there != pid {
        return Err(JournalError::OtherProc { here: pid, there });
    }
    let stat = host.stat(pid, pid).ok().flatten();
    let stat = stat.ok_or(JournalError::NoProc)?;
    Ok(JournalHeader {
        run: format!("{pid}-{}-{run}", stat.start_ticks),
        boot_id: host.boot_id().unwrap_or_else(|| UNKNOWN_BOOT.to_owned()),
        pid_namespace: host.pid_namespace(),
        pid,
        start_ticks: stat.start_ticks,
    })
}

#[cfg(test)]
mod tests {
    use super::super::record::tests::record;
    use super::*;
    use proptest::prelude::*;

    fn journal_in(dir: &Path) -> Journal {
        Journal::create(&Host::real(), RuntimeDir::open(dir).unwrap()).unwrap()
    }

    fn paused(pid: u32) -> JournalRecord {
        JournalRecord::Paused {
            pid,
            start_ticks: 1,
        }
    }

    #[test]
    fn a_journal_in_use_is_not_stale() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal_in(dir.path());
        let name = journal.name.clone();
        let open = || Journal::open_stale(RuntimeDir::open(dir.path()).unwrap(), &name).unwrap();
        assert!(open().is_none());
        drop(journal);
        assert!(open().is_some());
    }

    #[test]
    fn lock_lasts_until_last_holder_ends() {
        let dir = tempfile::tempdir().unwrap();
        let journal = journal_in(dir.path());
        let name = journal.name.clone();
        let shared = journal.file().try_clone().unwrap();
        drop(journal);
        let open = || Journal::open_stale(RuntimeDir::open(dir.path()).unwrap(), &name).unwrap();
        assert!(open().is_none());
        drop(shared);
        assert!(open().is_some());
    }

    #[test]
    fn journal_in_memory_has_no_file() {
        let mut journal = Journal::create_in_memory(&Host::real()).unwrap();
        journal.append(&[paused(4)]).unwrap();
        journal.publish().unwrap();
        journal.unlink();
        assert_eq!(journal.records().unwrap(), [paused(4)]);
        let new = journal.create_replacement(&[paused(5)]).unwrap();
        assert_eq!(new.records().unwrap(), [paused(5)]);
        assert!(!new.path().exists());
    }

    #[test]
    fn a_torn_last_line_and_garbage_are_skipped() {
        let dir = tempfile::tempdir().unwrap();
        let mut journal = journal_in(dir.path());
        journal.append(&[paused(4)]).unwrap();
        journal.append_text("thr\u{0}ead \n").unwrap();
        journal.append(&[paused(5)]).unwrap();
        journal.append_text("paused 6").unwrap();
        assert_eq!(journal.records().unwrap(), [paused(4), paused(5)]);
    }

    #[test]
    fn rewritten_journal_takes_old_name() {
        let dir = tempfile::tempdir().unwrap();
        let old = journal_in(dir.path());
        let mut new = old.create_replacement(&[paused(4)]).unwrap();
        new.publish().unwrap();
        old.unlink();
        assert_eq!(new.path(), old.path());
        assert!(new.path().exists(), "the old journal deleted the new one");
        new.unlink();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(bytes: Vec<u8>) {
            let _ = parse(&bytes);
        }

        #[test]
        fn a_cut_leaves_a_prefix_of_the_records(
            records in prop::collection::vec(record(), 0..10),
            cut: prop::sample::Index,
        ) {
            let lines: String = records.iter().map(|r| format!("{r}\n")).collect();
            let text = format!("consort-journal 1 r b n 1 2\n{lines}");
            let kept = &text.as_bytes()[..cut.index(text.len() + 1)];
            if let Ok((_, read)) = parse(kept) {
                prop_assert_eq!(&records[..read.len()], &read[..]);
                prop_assert_eq!(read.len() + 1, kept.iter().filter(|&&b| b == b'\n').count());
            }
        }
    }
}
