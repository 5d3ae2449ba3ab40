//! The guardian, a process that restores masks when its owner ends or is silent; first as its owner
//! sees it, then the process itself.
//!
//! Owner and guardian share a socket pair and the open journal. The socket only shows that the
//! owner lives; when it ends, the guardian reads from the journal the masks to restore. Compared
//! with sending records through the socket this never blocks the owner, keeps the guardian's memory
//! flat, and a replacement guardian needs nothing but the same file.
//!
//! An owner may also stop without an end: by SIGSTOP, or in a system call that does not return. So
//! it sends a byte about once a second. If none comes for some seconds, the guardian announces
//! that it restores, restores masks and lets paused programs continue, and announces the end of
//! that. The announcement comes before the first write: an owner that finds a changed mask and
//! reads the socket only then still learns that no stranger has changed it.

use super::affinity::{self, Mask};
use super::host::Host;
use super::journal::{self, Journal};
use super::journal_state::{JournalState, ObservedMask};
use super::launch::RUN_MARKER;
use super::restore::{restore, restore_dead_runs};
use super::runtime_dir::RuntimeDir;
use crate::group::delete_stale_files;
use consort_core::PuSet;
use nix::errno::Errno;
use nix::libc;
use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::unistd::setsid;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use std::error::Error;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use thiserror::Error;

/// Byte that the guardian sends once it no longer dies with its owner's terminal.
pub(crate) const READY: u8 = b'r';
/// Byte that the owner sends when everything is restored.
pub(crate) const DONE: u8 = b'd';
/// Byte that the owner sends while it makes turns.
pub(crate) const BEAT: u8 = b'b';
/// Byte that the guardian sends before it restores although its owner has not ended. What a dying
/// guardian prints comes through the same socket and does not contain it.
pub(crate) const RESTORING: u8 = 1;
/// Byte that the guardian sends after that.
pub(crate) const RESTORED: u8 = 2;
/// Least time between two beats.
const BEAT_EVERY: Duration = Duration::from_millis(500);
/// Longest wait for a guardian that restores already.
const RESTORE_LIMIT: Duration = Duration::from_secs(20);
/// Longest time that a guardian may take to come up; long enough for a crowded host.
const READY_LIMIT: Duration = Duration::from_secs(20);

/// Reason for which there is no guardian.
#[derive(Debug, Error)]
pub enum GuardianError {
    /// The guardian could not be started.
    #[error("cannot start the guardian from /proc/self/exe: {0}")]
    Start(#[source] io::Error),
    /// The guardian ended or hung before it reported.
    #[error("the guardian did not report that it is ready: {0}")]
    NotReady(#[source] io::Error),
}

/// State of the guardian.
#[derive(Debug, Default)]
pub enum GuardianHealth {
    /// The guardian lives.
    #[default]
    Alive,
    /// The guardian had died; another one has taken its place with the whole state.
    Replaced,
    /// The guardian had died and no other could be started; nothing new is restricted.
    Missing(GuardianError),
}

/// Arguments and files that a guardian is started with.
#[derive(Debug)]
pub(crate) struct GuardianSpec<'a> {
    /// Words by which the program is made to call [`guardian_main`](super::guardian_main()).
    pub args: &'a [OsString],
    /// The open journal.
    pub journal: &'a File,
    /// Path at which the guardian deletes the journal in the end.
    pub path: &'a Path,
    /// The mask that the guardian itself is to have, as a CPU list.
    pub own_mask: String,
}

/// A running guardian. Dropping it makes it restore everything.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    /// Non-blocking but for the first word and the last: a stopped guardian reads nothing, and a
    /// full socket must not stop the owner too.
    socket: UnixStream,
    /// Time of the last beat.
    beaten: Option<Instant>,
}

impl Guardian {
    /// Starts a guardian and waits until it is beyond the reach of signals.
    pub(crate) fn spawn(spec: &GuardianSpec<'_>) -> Result<Self, GuardianError> {
        let (mut socket, theirs) = UnixStream::pair().map_err(GuardianError::Start)?;
        let mut child = command(spec, theirs)
            .and_then(|mut command| command.spawn())
            .map_err(GuardianError::Start)?;
        // Only then may a thread be restricted: before, a signal to the group could end the
        // guardian.
        let ready = wait_until_ready(&mut socket);
        if let Err(error) = ready.and_then(|()| socket.set_nonblocking(true)) {
            // Both fail only when it is dead already, which is what is wanted.
            let _ = child.kill();
            let _ = child.wait();
            return Err(GuardianError::NotReady(error));
        }
        Ok(Self {
            child,
            socket,
            beaten: None,
        })
    }

    /// Shows the guardian that the owner makes turns. From the first beat on the guardian restores
    /// when no other comes for some seconds.
    pub(crate) fn send_heartbeat(&mut self) {
        let now = Instant::now();
        if self.beaten.is_none_or(|at| now - at >= BEAT_EVERY) {
            self.beaten = Some(now);
            // A full socket has beats enough in it, and the end of a guardian is noticed elsewhere.
            let _ = self.socket.write(&[BEAT]);
        }
    }

    /// Returns true if the guardian has restored since the last call because there were no beats.
    /// Waits while the guardian is still at it.
    pub(crate) fn has_restored(&mut self) -> bool {
        let mut last = None;
        let mut news = [0; 64];
        while let Ok(count @ 1..) = self.socket.read(&mut news) {
            let latest = news[..count].iter().rev();
            last = { latest }
                .find(|byte| matches!(**byte, RESTORING | RESTORED))
                .copied()
                .or(last);
        }
        if last == Some(RESTORING)
            && let Err(error) = self.wait_until_restored()
        {
            tracing::warn!(%error, "the guardian does not finish its restoration");
        }
        last.is_some()
    }

    fn wait_until_restored(&mut self) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        self.socket.set_read_timeout(Some(RESTORE_LIMIT))?;
        let mut word = [0];
        let mut waited = Ok(());
        while waited.is_ok() && word != [RESTORED] {
            waited = self.socket.read_exact(&mut word);
        }
        self.socket.set_nonblocking(true)?;
        waited
    }

    /// Returns true if the guardian still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Ends the guardian without a restoration.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.socket.set_nonblocking(false)?;
        match self.socket.write_all(&[DONE]) {
            Err(e) if e.raw_os_error() != Some(Errno::EPIPE as i32) => return Err(e),
            _ => {}
        }
        self.child.wait().map(drop)
    }
}

fn command(spec: &GuardianSpec<'_>, socket: UnixStream) -> io::Result<Command> {
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("consort-guardian")
        .args(spec.args)
        .arg(spec.path)
        .arg(&spec.own_mask)
        .env_remove(RUN_MARKER)
        // What a dying guardian might print goes to the socket, where it is not read, rather than to the
        // owner's terminal; not every user may open /dev/null.
        .stderr(Stdio::from(OwnedFd::from(socket.try_clone()?)))
        .stdin(Stdio::from(OwnedFd::from(socket)))
        .stdout(Stdio::from(spec.journal.try_clone()?));
    Ok(command)
}

fn wait_until_ready(socket: &mut UnixStream) -> io::Result<()> {
    socket.set_read_timeout(Some(READY_LIMIT))?;
    let mut answer = [0];
    socket.read_exact(&mut answer)?;
    if answer == [READY] {
        Ok(())
    } else {
        Err(io::ErrorKind::InvalidData.into())
    }
}

// A program that uses `Enactor` calls `guardian_main` before any other thread exists, if it is started
// with the hidden words of its `EnactConfig`. A service manager that kills the whole control group
// kills the guardian too. Then `recover_stale` at the next start restores the masks.

/// Signals that end or stop a process and that a terminal, a session or a service manager may send
/// to all processes around the owner.
const BLOCKED: [Signal; 10] = [
    Signal::SIGHUP,
    Signal::SIGINT,
    Signal::SIGQUIT,
    Signal::SIGTERM,
    Signal::SIGPIPE,
    Signal::SIGTSTP,
    Signal::SIGTTIN,
    Signal::SIGTTOU,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
];

/// Time of one look for a sign of life, ms, and the number of looks in vain after which the owner
/// counts as silent. Looks are counted rather than time, so that a guardian that was itself stopped
/// for long, with the host or with its control group, first gives its owner a chance. Time here is
/// that of `CLOCK_MONOTONIC`, which stands still while the host is suspended.
const LOOK_MS: u16 = 1000;
const MOST_LOOKS: u32 = 5;

/// Longest time that a killed process may take to close its files, ms.
const LONGEST_END_MS: u16 = 5000;

/// Runs the guardian with the words that follow the hidden ones: the journal's path and the mask
/// that the guardian is to have. Standard input is the socket to the owner, standard output the
/// open journal.
pub fn guardian_main(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    match run(args.into_iter().collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn run(args: Vec<OsString>) -> Result<(), Box<dyn Error>> {
    let [path, mask] = <[OsString; 2]>::try_from(args)
        .map_err(|_| "the guardian is started by consort itself, not by hand")?;
    // So that `ps` shows which process is the guardian. It is no error if that fails.
    let _ = nix::sys::prctl::set_name(c"consort-guard");
    // Before the owner is allowed to restrict a thread.
    detach_from_owner()?;
    let end_of_owner = getppid().and_then(|owner| pidfd_open(owner, PidfdFlags::empty()).ok());
    set_own_mask(&mask);
    let mut owner = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let journal = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // The read that follows shows if the owner is dead by now.
    let _ = owner.write_all(&[READY]);
    // True if the owner has restored everything itself.
    if wait_for_owner(&mut owner, |owner| {
        restore_for_silent_owner(&journal, owner)
    }) {
        return Ok(());
    }
    let path = PathBuf::from(path);
    // From the open file, which exists even if the folder was deleted.
    let restored = restore_from(journal, &path);
    // The owner may have led a group, whose lock it holds until its last file is closed. The kernel
    // closes the files of a dying process one after the other, and the socket to here may be closed
    // before the lock.
    end_of_owner.as_ref().into_iter().for_each(wait_for_end);
    path.parent().into_iter().for_each(delete_stale_files);
    restored
}

/// Cuts every tie by which the guardian could die with its owner, or hold open files that are not
/// its own.
fn detach_from_owner() -> Result<(), Box<dyn Error>> {
    BLOCKED.into_iter().collect::<SigSet>().thread_block()?;
    // setsid(2) fails only for a group leader, which a freshly forked process is not.
    setsid()?;
    std::env::set_current_dir("/")?;
    close_other_files();
    // Lowering the score needs a privilege; without it, the score stays.
    let _ = std::fs::write("/proc/self/oom_score_adj", "-1000");
    Ok(())
}

fn close_other_files() {
    let (first, last, flags): (libc::c_uint, libc::c_uint, libc::c_uint) =
        (3, libc::c_uint::MAX, 0);
    // SAFETY: nothing in this process has opened a file beyond the standard three yet, so no owner
    // of a descriptor is deceived. A kernel without the call (before 5.9) leaves open what was
    // inherited, which does no harm to restoration.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}

fn set_own_mask(mask: &OsString) {
    let pus = mask.to_str().and_then(|text| text.parse::<PuSet>().ok());
    if let Some(pus) = pus.filter(|pus| !pus.is_empty()) {
        // A guardian on too few CPUs still does its work.
        let _ = affinity::set(std::process::id(), &Mask::Only(pus));
    }
}

/// Waits until a process has ended, at most [`LONGEST_END_MS`].
fn wait_for_end(process: &OwnedFd) {
    let mut ends = [PollFd::new(process.as_fd(), PollFlags::POLLIN)];
    // Without an answer the files are swept as things are.
    let _ = poll(&mut ends, LONGEST_END_MS);
}

/// Waits for the owner's last word; returns false when the owner ended without one. Calls
/// `at_silence` when beats stop coming, and again after as many looks while it returns false; before
/// the first beat there is none to miss.
fn wait_for_owner(
    owner: &mut UnixStream,
    mut at_silence: impl FnMut(&mut UnixStream) -> bool,
) -> bool {
    let mut word = [0];
    let mut in_vain = None;
    loop {
        if let Some(looks) = in_vain {
            let mut speaks = [PollFd::new(owner.as_fd(), PollFlags::POLLIN)];
            if poll(&mut speaks, LOOK_MS) == Ok(0) {
                in_vain = match looks < MOST_LOOKS {
                    true => Some(looks + 1),
                    false => (!at_silence(owner)).then_some(1),
                };
                continue;
            }
        }
        match owner.read(&mut word) {
            Ok(0) => return false,
            Ok(_) if word == [DONE] => return true,
            Ok(_) if word == [BEAT] => in_vain = Some(1),
            Ok(_) => {}
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
}

/// Restores masks and lets paused programs continue while the owner makes no turns. Groups made for
/// pausing stay, thawed, and so do cookies: the owner may come back and counts on them. The journal
/// is not changed: all is restored again at the end. Returns false if something could not be put
/// back, as when memory is short, so that it is tried again.
fn restore_for_silent_owner(journal: &File, owner: &mut UnixStream) -> bool {
    let Ok((header, records)) = journal::read(journal) else {
        return false;
    };
    let ledger = JournalState::new(records);
    if ledger.has_nothing_to_restore() {
        return true;
    }
    // An owner that is gone by now is noticed by the next read.
    let _ = owner.write_all(&[RESTORING]);
    // Without an early return, because one cgroup that fails must not keep the others frozen.
    let mut are_thawed = true;
    for cgroup in &ledger.freezers {
        are_thawed &= cgroup.thaw().is_ok();
    }
    let ours = |seen: &ObservedMask<'_>| ledger.may_have_written(seen);
    let restored = restore(
        &Host::real(),
        &ledger.without_cgroups_and_cookies(),
        &header.run,
        &ours,
    );
    let _ = owner.write_all(&[RESTORED]);
    restored.complete && are_thawed
}

/// Restores from the open file, even if its folder has been deleted meanwhile.
fn restore_from(journal: File, path: &Path) -> Result<(), Box<dyn Error>> {
    let (header, records) = journal::read(&journal)?;
    let ledger = JournalState::new(records);
    let reports = restore_dead_runs(&Host::real(), &[(&ledger, &header.run)]);
    if !reports.iter().all(|report| report.complete) {
        return Err("some threads could not be put back".into());
    }
    let dir = RuntimeDir::open(path.parent().ok_or("the journal has no folder")?)?;
    let name = path.file_name().and_then(|name| name.to_str());
    Journal::from_shared_file(dir, name.ok_or("the journal has no name")?, journal)?.unlink();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owner_is_done_after_last_word() {
        let (mut owner, mut guardian) = UnixStream::pair().unwrap();
        owner.write_all(b"xd").unwrap();
        assert!(wait_for_owner(&mut guardian, |_| true));
        drop(owner);
        assert!(!wait_for_owner(&mut guardian, |_| true));
    }

    #[test]
    fn silence_after_a_beat_is_noticed_once() {
        let (mut owner, mut guardian) = UnixStream::pair().unwrap();
        owner.write_all(&[BEAT]).unwrap();
        let mut silences = 0;
        let done = wait_for_owner(&mut guardian, |_| {
            silences += 1;
            // No silence follows the second beat, as the last word comes with it.
            owner.write_all(&[BEAT, DONE]).unwrap();
            true
        });
        assert_eq!((done, silences), (true, 1));
    }

    #[test]
    fn start_by_hand_is_refused() {
        assert_eq!(guardian_main(["x".into()]), ExitCode::FAILURE);
    }
}
