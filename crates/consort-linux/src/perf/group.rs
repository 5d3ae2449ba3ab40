//! Groups of counting events on one thread.
//!
//! # Usage
//!
//! [`CounterGroup::open`] once, [`CounterGroup::read`] once per interval: one system call gives the
//! counts of all members since the last read, and the times for which the group was enabled and
//! really counting.
//!
//! # Pitfalls
//!
//! - A group is on the counters as a whole or not at all; a group that never
//!   runs shows nothing ([`GroupDelta::is_lost`]).
//! - `inherit` is not used: a group read would be refused by older kernels, and
//!   each thread has its own groups here.
//! - A thread that has exited can still be read: the last counts stay.

use super::open::{PerfError, PerfTarget, open};
use nix::errno::Errno;
use perf_event_open_sys as sys;
use perf_event_open_sys::bindings;
use std::ffi::CStr;
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// An event to count, in the terms of `perf_event_attr`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerfEventSpec {
    /// `type`: a constant of the kernel's, or the number in a PMU's `type` file.
    pub kind: u32,
    /// `config`.
    pub config: u64,
    /// `config1`.
    pub config1: u64,
    /// `config2`.
    pub config2: u64,
    /// True to count user mode only, which is all that `perf_event_paranoid` 2 permits without
    /// privilege.
    pub user_only: bool,
    /// For a tracepoint, the condition under which an event counts, in the language of the kernel's
    /// `Documentation/trace/events.rst`, "Event filtering".
    pub filter: Option<&'static CStr>,
}

impl PerfEventSpec {
    /// A software event of the kernel, one of `PERF_COUNT_SW_*`.
    pub fn software(config: u32, user_only: bool) -> Self {
        Self {
            kind: bindings::PERF_TYPE_SOFTWARE,
            config: u64::from(config),
            config1: 0,
            config2: 0,
            user_only,
            filter: None,
        }
    }

    /// The same event, counted only where the filter holds.
    pub fn with_filter(self, filter: &'static CStr) -> Self {
        Self {
            filter: Some(filter),
            ..self
        }
    }

    fn attr(&self) -> bindings::perf_event_attr {
        let mut attr = bindings::perf_event_attr {
            type_: self.kind,
            config: self.config,
            read_format: u64::from(
                bindings::PERF_FORMAT_GROUP
                    | bindings::PERF_FORMAT_ID
                    | bindings::PERF_FORMAT_TOTAL_TIME_ENABLED
                    | bindings::PERF_FORMAT_TOTAL_TIME_RUNNING,
            ),
            ..Default::default()
        };
        attr.__bindgen_anon_3.config1 = self.config1;
        attr.__bindgen_anon_4.config2 = self.config2;
        attr.set_exclude_kernel(u64::from(self.user_only));
        attr.set_exclude_hv(u64::from(self.user_only));
        attr
    }
}

/// Cause of a refusal: [`PerfError::Gone`] where the thread has ended. Such a thread takes its
/// group's leader with it, and the kernel refuses members of that leader with `ENODEV` (inferred on
/// Linux 6.18, not traced); so a leader is opened anew.
fn cause(error: PerfError, leader: &PerfEventSpec, target: PerfTarget) -> PerfError {
    match open(&mut leader.attr(), target, None) {
        Err(PerfError::Gone) => PerfError::Gone,
        _ => error,
    }
}

/// Opens one event and sets its filter. A leader does not count before it is enabled.
fn open_filtered(
    spec: &PerfEventSpec,
    target: PerfTarget,
    leader: Option<BorrowedFd<'_>>,
) -> Result<OwnedFd, PerfError> {
    let mut attr = spec.attr();
    attr.set_disabled(u64::from(leader.is_none()));
    let fd = open(&mut attr, target, leader)?;
    let Some(filter) = spec.filter else {
        return Ok(fd);
    };
    // SAFETY: the request reads a string that ends with a zero and lives for ever; it does not
    // write to it, though the binding takes a mutable pointer.
    let answer = unsafe { sys::ioctls::SET_FILTER(fd.as_raw_fd(), filter.as_ptr().cast_mut()) };
    if answer < 0 {
        return Err(Errno::last().into());
    }
    Ok(fd)
}

/// Counts of a group over one interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupDelta {
    /// Counts, unscaled, in the order in which the events were given.
    pub counts: Vec<u64>,
    /// Time for which the group was enabled while the thread ran, ns.
    pub enabled_ns: u64,
    /// Time for which it was counting, ns; at most `enabled_ns`.
    pub running_ns: u64,
}

impl GroupDelta {
    /// Returns true if the thread ran but the group was never on the counters: something else holds
    /// them.
    pub fn is_lost(&self) -> bool {
        self.enabled_ns > 0 && self.running_ns == 0
    }
}

/// An open group of events on one thread.
#[derive(Debug)]
pub struct CounterGroup {
    fds: Vec<OwnedFd>,
    ids: Vec<u64>,
    raw: Vec<u8>,
    words: Vec<u64>,
    last: GroupDelta,
}

/// Number of words before the members: their number, time enabled, time running.
const HEADER: usize = 3;

impl CounterGroup {
    /// Opens the events as one group led by the first; they count at once.
    ///
    /// # Errors
    /// When the kernel refuses an event, with its answer for the first such; those already open are
    /// closed again. An empty list is [`PerfError::NoSuchEvent`].
    pub fn open(specs: &[PerfEventSpec], target: PerfTarget) -> Result<Self, PerfError> {
        let mut fds: Vec<OwnedFd> = Vec::with_capacity(specs.len());
        for spec in specs {
            let leader = fds.first().map(AsFd::as_fd);
            let opened = open_filtered(spec, target, leader);
            fds.push(opened.map_err(|error| cause(error, &specs[0], target))?);
        }
        let Some(leader) = fds.first() else {
            return Err(PerfError::NoSuchEvent);
        };
        // Members of a leader that counts already may count from the thread's next switch only
        // (Linux 6.18 and a task clock); enabled together, all count from the same instant.
        // SAFETY: the request takes its argument by value.
        if unsafe { sys::ioctls::ENABLE(leader.as_raw_fd(), 0) } < 0 {
            return Err(Errno::last().into());
        }
        let ids = fds.iter().map(id).collect::<Result<_, _>>()?;
        Ok(Self {
            ids,
            raw: vec![0; 8 * (HEADER + 2 * specs.len())],
            words: vec![0; HEADER + 2 * specs.len()],
            last: GroupDelta {
                counts: vec![0; specs.len()],
                ..GroupDelta::default()
            },
            fds,
        })
    }

    /// Number of file descriptors in use.
    pub fn fd_count(&self) -> usize {
        self.fds.len()
    }

    /// Reads the counts since the last read, or since the opening.
    ///
    /// # Errors
    /// When the kernel refuses the read, for example because a member went into
    /// its error state ([`PerfError::Gone`]).
    pub fn read(&mut self) -> Result<GroupDelta, PerfError> {
        self.fill()?;
        // The words after the header are pairs of a count and its member's number.
        let members = self.words[HEADER..].chunks_exact(2);
        let value = |id| members.clone().find(|m| m[1] == id).map_or(0, |m| m[0]);
        let values = self.ids.iter().map(|&id| value(id));
        let counts = values.zip(&mut self.last.counts);
        Ok(GroupDelta {
            counts: counts.map(|(now, last)| take_growth(now, last)).collect(),
            enabled_ns: take_growth(self.words[1], &mut self.last.enabled_ns),
            running_ns: take_growth(self.words[2], &mut self.last.running_ns),
        })
    }

    fn fill(&mut self) -> Result<(), PerfError> {
        let read = nix::unistd::read(&self.fds[0], &mut self.raw)?;
        if read != self.raw.len() {
            return Err(PerfError::Gone);
        }
        let (chunks, _) = self.raw.as_chunks::<8>();
        for (word, &chunk) in self.words.iter_mut().zip(chunks) {
            *word = u64::from_ne_bytes(chunk);
        }
        Ok(())
    }
}

/// Number by which group reads name an event.
fn id(fd: &OwnedFd) -> Result<u64, PerfError> {
    let mut id = 0_u64;
    // SAFETY: the request writes one u64 through a pointer that is valid for it.
    let answer = unsafe { sys::ioctls::ID(fd.as_raw_fd(), &mut id) };
    if answer < 0 {
        return Err(Errno::last().into());
    }
    Ok(id)
}

/// Growth of a count since the last one, which it then is.
fn take_growth(now: u64, last: &mut u64) -> u64 {
    let last = std::mem::replace(last, now);
    now.saturating_sub(last)
}

/// Directories at which tracefs may be mounted, in the order of search.
const MOUNTS: [&str; 2] = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];

/// Reason for which a tracepoint cannot be counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum TracepointError {
    /// There is no `events` folder where tracefs belongs.
    #[error("tracefs is not mounted at /sys/kernel/tracing")]
    NotMounted,
    /// The folder or the file may not be read, by its path.
    #[error("{} may not be read; remount tracefs with a gid that may", .0.display())]
    NotPermitted(PathBuf),
    /// This kernel does not have the tracepoint.
    #[error("this kernel has no tracepoint {0}")]
    Unknown(String),
}

/// Finds the event that counts a tracepoint; `system` and `name` are those in tracefs.
///
/// # Errors
/// When tracefs is not mounted or not readable, or does not have it.
pub fn tracepoint(root: &Path, system: &str, name: &str) -> Result<PerfEventSpec, TracepointError> {
    let events = events_folder(root)?;
    let path = events.join(system).join(name).join("id");
    let unknown = || TracepointError::Unknown(format!("{system}:{name}"));
    let text = std::fs::read_to_string(&path).map_err(|e| match e.kind() {
        ErrorKind::PermissionDenied => TracepointError::NotPermitted(path.clone()),
        _ => unknown(),
    })?;
    let id: u64 = text.trim().parse().map_err(|_| unknown())?;
    Ok(PerfEventSpec {
        kind: bindings::PERF_TYPE_TRACEPOINT,
        config: id,
        config1: 0,
        config2: 0,
        user_only: false,
        filter: None,
    })
}

fn events_folder(root: &Path) -> Result<PathBuf, TracepointError> {
    for mount in MOUNTS {
        let folder = root.join(mount).join("events");
        match std::fs::metadata(&folder) {
            Ok(_) => return Ok(folder),
            Err(e) if e.kind() == ErrorKind::PermissionDenied => {
                return Err(TracepointError::NotPermitted(folder));
            }
            Err(_) => {}
        }
    }
    Err(TracepointError::NotMounted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_that_never_ran_is_lost() {
        let delta = |enabled_ns, running_ns| GroupDelta {
            counts: vec![],
            enabled_ns,
            running_ns,
        };
        assert!(delta(5, 0).is_lost());
        assert!(!delta(5, 1).is_lost());
        assert!(!delta(0, 0).is_lost());
    }

    #[test]
    fn an_empty_group_is_refused() {
        let opened = CounterGroup::open(&[], PerfTarget::Thread { tid: 0 });
        assert_eq!(opened.err(), Some(PerfError::NoSuchEvent));
    }
}

#[cfg(test)]
mod tracepoint_tests {
    use super::*;

    #[test]
    fn the_id_is_read_below_the_root() {
        let root = tempfile::tempdir().unwrap();
        let futex = |root: &Path| tracepoint(root, "syscalls", "sys_exit_futex");
        assert_eq!(futex(root.path()), Err(TracepointError::NotMounted));
        let folder = root
            .path()
            .join(MOUNTS[1])
            .join("events/syscalls/sys_exit_futex");
        std::fs::create_dir_all(folder.parent().unwrap()).unwrap();
        let unknown = TracepointError::Unknown("syscalls:sys_exit_futex".to_owned());
        assert_eq!(futex(root.path()), Err(unknown.clone()));
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("id"), "521\n").unwrap();
        assert_eq!(futex(root.path()).unwrap().config, 521);
        std::fs::write(folder.join("id"), "many\n").unwrap();
        assert_eq!(futex(root.path()), Err(unknown));
    }
}
