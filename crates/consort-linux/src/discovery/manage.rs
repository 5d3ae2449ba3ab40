//! The rules by which threads are left alone: the kernel's own, real-time ones, other users'.

use crate::proc::{ProcError, ProcStatus, Stat, read_stat, thread_dir};
use consort_core::ThreadId;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use thiserror::Error;

/// `PF_KTHREAD` of the kernel's `include/linux/sched.h`.
const KERNEL_THREAD: u64 = 0x0020_0000;
/// `CAP_SYS_NICE` of `capabilities(7)`.
const CAP_SYS_NICE: u32 = 23;

/// Reason for which a thread is not managed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum UnmanageableReason {
    /// The thread belongs to the kernel.
    #[error("it is a kernel thread")]
    KernelThread,
    /// The thread belongs to another user, and Consort lacks the privilege.
    #[error("it belongs to user {uid}; run as that user or grant CAP_SYS_NICE")]
    OtherUser {
        /// The owner's effective user id.
        uid: u32,
    },
    /// The thread has capabilities that Consort lacks, as after executing a setuid file.
    #[error("it has privileges that consort lacks, as setuid programs have")]
    Privileged,
    /// The thread's scheduling policy is a real-time one.
    #[error("its scheduling policy is {0}")]
    RealTime(&'static str),
}

/// Credentials of this process, as far as they decide which threads it may place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallerCredentials {
    /// Effective user id.
    pub uid: u32,
    /// True if threads of other users may be placed (`CAP_SYS_NICE` is effective).
    pub may_place_others: bool,
    /// Permitted capabilities, one bit each.
    pub permitted: u64,
}

impl CallerCredentials {
    /// Reads this process's credentials from `/proc/self/status`.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn read(root: &Path) -> Result<Self, ProcError> {
        let status = ProcStatus::read(&root.join("proc/self/status"))?;
        Ok(Self {
            uid: ThreadOwner::from_status(&status).effective_uid,
            may_place_others: capabilities(&status, "CapEff") & (1 << CAP_SYS_NICE) != 0,
            permitted: capabilities(&status, "CapPrm"),
        })
    }

    /// Reason for which a thread must be left alone, if it must. `sched_setaffinity(2)` wants the
    /// caller's effective user to be the thread's real or effective one, and the thread's permitted
    /// capabilities to be among the caller's (`cap_safe_nice` in the kernel's
    /// `security/commoncap.c`). The owner is looked up only where it decides.
    ///
    /// # Errors
    /// When the owner cannot be looked up.
    pub(crate) fn unmanageable_reason(
        self,
        stat: &Stat,
        owner: impl FnOnce() -> Result<ThreadOwner, ProcError>,
    ) -> Result<Option<UnmanageableReason>, ProcError> {
        if stat.flags & KERNEL_THREAD != 0 {
            return Ok(Some(UnmanageableReason::KernelThread));
        }
        if let Some(policy) = real_time_policy(stat.policy) {
            return Ok(Some(UnmanageableReason::RealTime(policy)));
        }
        if self.may_place_others {
            return Ok(None);
        }
        // Read only now, because it costs a file of its own.
        let owner = owner()?;
        let uid = owner.effective_uid;
        Ok(match owner.permitted & !self.permitted {
            _ if self.uid != owner.real_uid && self.uid != uid => {
                Some(UnmanageableReason::OtherUser { uid })
            }
            0 => None,
            _ => Some(UnmanageableReason::Privileged),
        })
    }
}

/// The name of a real-time policy of `sched(7)`.
pub(crate) fn real_time_policy(policy: u32) -> Option<&'static str> {
    match policy {
        1 => Some("SCHED_FIFO"),
        2 => Some("SCHED_RR"),
        6 => Some("SCHED_DEADLINE"),
        _ => None,
    }
}

/// A set of capabilities, one bit each; empty if the status does not have it.
fn capabilities(status: &ProcStatus, name: &str) -> u64 {
    let mask = status.field(name).unwrap_or_default();
    u64::from_str_radix(mask, 16).unwrap_or(0)
}

/// The users that a thread acts for, and the capabilities that it may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ThreadOwner {
    real_uid: u32,
    effective_uid: u32,
    permitted: u64,
}

impl ThreadOwner {
    /// Reads the owner from a thread's status; `u32::MAX` for a missing user.
    pub(crate) fn from_status(status: &ProcStatus) -> Self {
        let unknown = u32::MAX;
        let uids = status.field("Uid").unwrap_or_default();
        let mut uids = uids.split_ascii_whitespace().map(|f| f.parse().ok());
        let mut uid = || uids.next().flatten().unwrap_or(unknown);
        Self {
            real_uid: uid(),
            effective_uid: uid(),
            permitted: capabilities(status, "CapPrm"),
        }
    }
}

/// Returns true if a thread with this status may take real-time policies.
pub(crate) fn may_be_real_time(status: &ProcStatus) -> bool {
    capabilities(status, "CapPrm") >> CAP_SYS_NICE & 1 == 1
}

/// A thread as it was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AnnouncedThread {
    pub(crate) pid: u32,
    /// Kernel thread id of the parent, if a record had it.
    pub(crate) parent: Option<u32>,
}

/// A thread as `/proc` describes it at first sight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FoundThread {
    pub(crate) id: ThreadId,
    pub(crate) name: String,
    pub(crate) unmanageable: Option<UnmanageableReason>,
}

/// Announced threads by tid, and recent ends.
#[derive(Debug, Default)]
pub(crate) struct PendingThreads {
    announced: BTreeMap<u32, AnnouncedThread>,
    /// Time of the end by tid: rings of different CPUs are read one after another,
    /// so an end may arrive one round before a beginning or a sample.
    ends: HashMap<u32, u64>,
    older_ends: HashMap<u32, u64>,
}

impl PendingThreads {
    /// Announces a thread that began at `time_ns`; returns false when its end is known already.
    pub(crate) fn announce(&mut self, tid: u32, thread: AnnouncedThread, time_ns: u64) -> bool {
        let end = self.ends.remove(&tid);
        let end = end.or_else(|| self.older_ends.remove(&tid));
        let alive = end.is_none_or(|end_ns| end_ns < time_ns);
        if alive {
            self.announced.insert(tid, thread);
        }
        alive
    }

    /// Takes out a thread that has ended; returns false when no record had announced it. Records
    /// that come late may name a thread again that was looked up in vain and counted.
    pub(crate) fn remove_ended(&mut self, tid: u32) -> bool {
        let announced = self.announced.remove(&tid);
        announced.is_some_and(|thread| thread.parent.is_some())
    }

    pub(crate) fn remember_end(&mut self, tid: u32, time_ns: u64) {
        self.ends.insert(tid, time_ns);
    }

    /// Returns true if the thread waits to be looked up, or has ended lately.
    pub(crate) fn contains(&self, tid: u32) -> bool {
        let ends = [&self.ends, &self.older_ends];
        self.announced.contains_key(&tid) || ends.iter().any(|e| e.contains_key(&tid))
    }

    /// Drops all announced threads of a process but its leader; returns their number.
    pub(crate) fn drop_other_threads(&mut self, pid: u32) -> u64 {
        let before = self.announced.len();
        self.announced
            .retain(|&tid, thread| thread.pid != pid || tid == pid);
        (before - self.announced.len()) as u64
    }

    /// Takes up to `max` threads out, lowest tid first.
    pub(crate) fn take_lowest(&mut self, max: usize) -> Vec<(u32, AnnouncedThread)> {
        let take = max.min(self.announced.len());
        (0..take)
            .filter_map(|_| self.announced.pop_first())
            .collect()
    }

    /// Forgets ends that are two rounds old.
    pub(crate) fn next_round(&mut self) {
        self.older_ends = std::mem::take(&mut self.ends);
    }
}

/// Looks a thread up in `/proc`.
pub(crate) fn look_up(
    root: &Path,
    me: CallerCredentials,
    pid: u32,
    tid: u32,
) -> Result<FoundThread, ProcError> {
    let stat = read_stat(root, pid, tid)?;
    if !stat.is_alive() {
        // It waits for its parent to take note; there is nothing left to manage.
        return Err(ProcError::Gone);
    }
    let owner = || {
        let status = ProcStatus::read(&thread_dir(root, pid, tid).join("status"))?;
        Ok(ThreadOwner::from_status(&status))
    };
    Ok(FoundThread {
        id: ThreadId {
            pid,
            tid,
            start_ticks: stat.start_ticks,
        },
        unmanageable: me.unmanageable_reason(&stat, owner)?,
        name: stat.comm,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::line_of;

    fn verdict(
        flags: u64,
        policy: u32,
        owner_uid: u32,
        caller: CallerCredentials,
    ) -> Option<UnmanageableReason> {
        let stat = Stat::parse(&line_of(1, "x", 0, 0, flags, policy)).unwrap();
        let owner = format!("Name:\tx\nUid:\t{owner_uid}\t{owner_uid}\t0\t0\n");
        let owner = ThreadOwner::from_status(&ProcStatus::from(owner.as_str()));
        caller.unmanageable_reason(&stat, || Ok(owner)).unwrap()
    }

    #[test]
    fn each_reason_is_reported() {
        let me = CallerCredentials {
            uid: 7,
            may_place_others: false,
            permitted: 0,
        };
        let root = CallerCredentials {
            uid: 0,
            may_place_others: true,
            permitted: u64::MAX,
        };
        assert_eq!(verdict(0, 0, 7, me), None);
        assert_eq!(verdict(0, 0, 8, root), None);
        let other = UnmanageableReason::OtherUser { uid: 8 };
        assert_eq!(verdict(0, 0, 8, me), Some(other));
        let real_time = UnmanageableReason::RealTime("SCHED_FIFO");
        assert_eq!(verdict(0, 1, 7, root), Some(real_time));
        let kernel = UnmanageableReason::KernelThread;
        assert_eq!(verdict(KERNEL_THREAD, 0, 0, root), Some(kernel));
    }

    #[test]
    fn setuid_program_of_same_user_is_unmanageable() {
        let stat = Stat::parse(&line_of(1, "x", 0, 0, 0, 0)).unwrap();
        let status = "Uid:\t7\t0\t0\t0\nCapPrm:\t00000000000000ff\n";
        let owner = ThreadOwner::from_status(&ProcStatus::from(status));
        let caller = |permitted| CallerCredentials {
            uid: 7,
            may_place_others: false,
            permitted,
        };
        let refused = Some(UnmanageableReason::Privileged);
        assert_eq!(
            caller(0xf).unmanageable_reason(&stat, || Ok(owner)),
            Ok(refused)
        );
        assert_eq!(
            caller(0xff).unmanageable_reason(&stat, || Ok(owner)),
            Ok(None)
        );
    }

    #[test]
    fn right_to_real_time_policies_is_read() {
        let may = |caps: &str| may_be_real_time(&ProcStatus::from(&*format!("CapPrm:\t{caps}\n")));
        assert!(may("0000000000800000") && may("000001ffffffffff"));
        assert!(!may("0000000000000000") && !may("00000000007fffff"));
    }

    #[test]
    fn owner_is_read_only_without_cap_sys_nice() {
        let stat = Stat::parse(&line_of(1, "x", 0, 0, 0, 0)).unwrap();
        let caller = |may_place_others| CallerCredentials {
            uid: 7,
            may_place_others,
            permitted: 0,
        };
        let gone = || Err(ProcError::Gone);
        assert_eq!(caller(true).unmanageable_reason(&stat, gone), Ok(None));
        assert_eq!(
            caller(false).unmanageable_reason(&stat, gone),
            Err(ProcError::Gone)
        );
    }

    #[test]
    fn own_credentials_are_readable() {
        let caller = CallerCredentials::read(Path::new("/")).unwrap();
        assert_eq!(caller.uid, nix::unistd::geteuid().as_raw());
    }
}
