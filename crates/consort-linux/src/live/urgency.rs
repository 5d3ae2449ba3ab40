//! Urgency of Consort's own thread, which must be on time although threads fill every CPU.
//!
//! A fair scheduler lets a thread that wakes up wait for its share: with 16 busy threads on 2 CPUs,
//! turns came after 60 ms instead of 4 ms, with 1,000 threads after 6 s instead of 0.5 s (Linux
//! 6.18). And between the two writes of a nudge no other thread should run, because it could see
//! the narrow mask. So Consort's own thread takes the first of these that it is allowed to take:
//!
//! | urgency | allowed for |
//! |---|---|
//! | the lowest real-time priority (`sched(7)`, "SCHED_FIFO") | root, CAP_SYS_NICE, RLIMIT_RTPRIO |
//! | the highest weight (nice -20) and a short slice | RLIMIT_NICE |
//! | a short slice, 0.3 ms: it preempts those with longer ones, and has no greater share (`sched_attr::sched_runtime` of fair threads, since Linux 6.12) | everybody |
//!
//! The time for which real-time priority can keep others waiting is bounded by the pace, as turns
//! take at most a fifth of one CPU, and by the kernel, which keeps a twentieth of each second for
//! others. If that is switched off (`kernel.sched_rt_runtime_us` is -1) real-time priority is
//! not taken. It is given up before waiting for others: for the command's end, and for restoration.
//!
//! Pitfall: it must be taken after the command was launched, and with `SCHED_FLAG_RESET_ON_FORK`,
//! so that no child inherits it.

use nix::errno::Errno;
use nix::libc;
use std::path::Path;

/// `SCHED_FLAG_RESET_ON_FORK` of `sched_setattr(2)`.
const RESET_ON_FORK: u64 = 1;
/// The lowest priority: any other real-time thread goes first.
const PRIORITY: u32 = 1;
/// A slice shorter than the kernel's usual one on any host (0.7 ms on one CPU, more on others), ns.
/// In the shortest one that the kernel gives, 0.1 ms, a nudge may not fit.
const SLICE_NS: u64 = 300_000;

/// The urgency of the calling thread, from when it is taken until it is given up or dropped.
#[derive(Debug)]
pub(super) struct Urgency {
    before: Option<libc::sched_attr>,
}

impl Urgency {
    /// Takes as much as the caller may.
    pub(super) fn raise() -> Self {
        let before = attributes().ok();
        // Without the kernel's bound, a bug in Consort could hold a CPU for ever.
        let bounded = is_bounded(Path::new("/"));
        let ways = attribute_choices().into_iter().skip(usize::from(!bounded));
        let taken = ways.into_iter().find(|way| set(way).is_ok());
        // Not an error: the report shows how late quanta were.
        if taken.is_none() {
            tracing::debug!("consort runs with the urgency that it was started with");
        }
        Self {
            before: before.filter(|_| taken.is_some()),
        }
    }

    /// Goes back to the urgency that the thread was started with.
    pub(super) fn give_up(&mut self) {
        if let Some(before) = self.before.take()
            && let Err(errno) = set(&before)
        {
            tracing::warn!(%errno, "consort keeps its real-time priority");
        }
    }
}

impl Drop for Urgency {
    fn drop(&mut self) {
        self.give_up();
    }
}

/// Attributes to try, best first.
fn attribute_choices() -> [libc::sched_attr; 3] {
    let fair = |nice| libc::sched_attr {
        sched_nice: nice,
        sched_runtime: SLICE_NS,
        ..empty()
    };
    let real_time = libc::sched_attr {
        sched_policy: libc::SCHED_FIFO.cast_unsigned(),
        sched_priority: PRIORITY,
        ..empty()
    };
    let own = attributes().map_or(0, |own| own.sched_nice);
    [real_time, fair(-20), fair(own)]
}

/// Returns true if the kernel keeps some time from real-time threads. If the setting cannot be read,
/// its default is assumed.
fn is_bounded(root: &Path) -> bool {
    let reported = std::fs::read_to_string(root.join("proc/sys/kernel/sched_rt_runtime_us"));
    reported.map_or(true, |text| text.trim() != "-1")
}

fn empty() -> libc::sched_attr {
    libc::sched_attr {
        size: SIZE,
        sched_policy: libc::SCHED_OTHER.cast_unsigned(),
        sched_flags: RESET_ON_FORK,
        sched_nice: 0,
        sched_priority: 0,
        sched_runtime: 0,
        sched_deadline: 0,
        sched_period: 0,
    }
}

const SIZE: u32 = size_of::<libc::sched_attr>() as u32;

fn attributes() -> Result<libc::sched_attr, Errno> {
    let mut attributes = empty();
    // SAFETY: the kernel writes at most SIZE bytes through a pointer that is valid for the call; 0
    // is the calling thread.
    let answer =
        unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut attributes, SIZE, 0u32) };
    Errno::result(answer).map(|_| attributes)
}

fn set(attributes: &libc::sched_attr) -> Result<(), Errno> {
    // SAFETY: the kernel reads the attributes through a pointer that is valid for the call; 0 is
    // the calling thread.
    let answer = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const *attributes, 0u32) };
    Errno::result(answer).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_this_thread() -> (u32, i32, u32) {
        let own = attributes().unwrap();
        (own.sched_policy, own.sched_nice, own.sched_priority)
    }

    #[test]
    fn bound_on_real_time_threads_is_read() {
        let root = tempfile::tempdir().unwrap();
        let kernel = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&kernel).unwrap();
        assert!(is_bounded(root.path()));
        for (text, bounded) in [("950000\n", true), ("-1\n", false)] {
            std::fs::write(kernel.join("sched_rt_runtime_us"), text).unwrap();
            assert_eq!(is_bounded(root.path()), bounded);
        }
    }

    #[test]
    fn urgency_is_given_up_and_not_inherited() {
        let checked = std::thread::spawn(|| {
            let before = of_this_thread();
            let mut urgency = Urgency::raise();
            let taken = of_this_thread();
            let child = std::thread::spawn(of_this_thread).join().unwrap();
            urgency.give_up();
            assert_eq!(of_this_thread(), before);
            (taken, child)
        });
        let (taken, (policy, nice, _)) = checked.join().unwrap();
        assert!(policy == libc::SCHED_OTHER.cast_unsigned() && nice >= 0);
        if nix::unistd::geteuid().is_root() {
            let fifo = libc::SCHED_FIFO.cast_unsigned();
            assert_eq!(taken.0 == fifo, is_bounded(Path::new("/")));
        }
    }
}
