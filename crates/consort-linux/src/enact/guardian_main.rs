//! The guardian process: waits for its owner's end, or for its silence, and restores the masks that
//! are not yet restored.
//!
//! Usage: a program that uses [`Enactor`](super::Enactor) calls
//! [`guardian_main`] first thing when it is started with the hidden words of
//! its [`EnactConfig`](super::EnactConfig), before any thread exists.
//!
//! Pitfall: a service manager that kills the whole control group kills the
//! guardian too; [`recover_stale`](super::recover_stale) at the next start
//! covers that.

use super::affinity::{self, Mask};
use super::guardian::{BEAT, DONE, READY, RESTORED, RESTORING};
use super::host::Host;
use super::journal::{self, Journal};
use super::journal_state::{JournalState, ObservedMask};
use super::restore::{restore, restore_dead_runs};
use super::runtime_dir::RuntimeDir;
use crate::group::delete_stale_files;
use consort_core::PuSet;
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
use std::path::{Path, PathBuf};
use std::process::ExitCode;

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
    // So that `ps` tells it from its owner; without the name it works as well.
    let _ = nix::sys::prctl::set_name(c"consort-guard");
    detach_from_owner()?;
    let end_of_owner = getppid().and_then(|owner| pidfd_open(owner, PidfdFlags::empty()).ok());
    set_own_mask(&mask);
    let mut owner = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let journal = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    // An owner that is dead by now is found out by the read that follows.
    let _ = owner.write_all(&[READY]);
    if wait_for_owner(&mut owner, |owner| {
        restore_for_silent_owner(&journal, owner)
    }) {
        return Ok(());
    }
    let path = PathBuf::from(path);
    let restored = restore_from(journal, &path);
    // The owner may have led a group, whose lock it holds until it is gone altogether: the kernel
    // closes its files one after the other, the socket to here among the first.
    end_of_owner.as_ref().into_iter().for_each(wait_for_end);
    path.parent().into_iter().for_each(delete_stale_files);
    restored
}

/// Cuts every tie by which the guardian could die with its owner, or hold open files that are not
/// its own.
fn detach_from_owner() -> Result<(), Box<dyn Error>> {
    BLOCKED.into_iter().collect::<SigSet>().thread_block()?;
    // Fails only for a group leader, which a freshly forked process is not.
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
    // SAFETY: nothing in this process has opened a file beyond the standard
    // three yet, so no owner of a descriptor is deceived. A kernel without the
    // call (before 5.9) leaves open what was inherited, which does no harm to
    // restoration.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) };
}

fn set_own_mask(mask: &OsString) {
    let pus = mask.to_str().and_then(|text| text.parse::<PuSet>().ok());
    if let Some(pus) = pus.filter(|pus| !pus.is_empty()) {
        // A guardian on too few PUs still does its work.
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
    // All of them: one that fails must not keep the others frozen.
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
    fn an_owner_is_done_only_if_it_says_so() {
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
    fn a_start_by_hand_is_refused_before_anything_is_touched() {
        assert_eq!(guardian_main(["x".into()]), ExitCode::FAILURE);
    }
}
