//! Threads that are nudged time and again, each held by a descriptor.
//!
//! A nudge asks before and after whether a tid is still the thread that was meant. A pidfd of the
//! thread (`PIDFD_THREAD`, since Linux 6.9) answers that by one system call, where opening and reading
//! its line of `stat` takes several and a parse: it is readable from the moment when the thread is
//! dead, and another thread that is given the tid does not appear in it. Leaders, which may become
//! another program under the same tid, and all threads on older kernels, are held by their open
//! `stat`.

use super::host::Host;
use crate::proc::{Stat, read_open, thread_dir};
use consort_core::ThreadId;
use nix::libc;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

/// `PIDFD_THREAD` of `pidfd_open(2)`.
const THREAD: PidfdFlags = PidfdFlags::from_bits_retain(libc::O_EXCL as u32);

/// Knowledge of a thread that is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct There {
    /// Changes with another program; none where the thread cannot become one under its tid.
    pub(crate) start_stack: Option<u64>,
}

/// Threads that are held, up to a number.
#[derive(Debug, Default)]
pub(crate) struct Grips {
    held: BTreeMap<ThreadId, Grip>,
    most: usize,
}

#[derive(Debug)]
enum Grip {
    Pidfd(OwnedFd),
    Stat(File),
}

impl Grips {
    /// Holds up to so many threads from now on, by one descriptor each.
    pub(crate) fn hold(&mut self, most: usize) {
        self.most = most;
        self.held.clear();
    }

    /// A thread, if it is the same and alive. It is held from the first question on where there is
    /// room; others are looked up each time.
    pub(crate) fn look(&mut self, host: &Host, thread: ThreadId) -> Option<There> {
        if let Some(grip) = self.held.get(&thread) {
            return grip.look(thread);
        }
        if self.held.len() >= self.most {
            return host.same(thread).map(|stat| There::of(&stat));
        }
        let grip = Grip::of(host, thread);
        let there = host.same(thread).map(|stat| There::of(&stat))?;
        // The thread that was found last, and no earlier one, is what the descriptor is of.
        let held = grip.filter(|grip| grip.look(thread).is_some());
        self.held.extend(held.map(|grip| (thread, grip)));
        Some(there)
    }

    /// Lets go of a thread.
    pub(crate) fn forget(&mut self, thread: ThreadId) {
        self.held.remove(&thread);
    }
}

impl There {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            start_stack: Some(stat.start_stack),
        }
    }
}

impl Grip {
    fn of(host: &Host, thread: ThreadId) -> Option<Self> {
        let pidfd = (thread.tid != thread.pid).then(|| pidfd(thread.tid));
        if let Some(pidfd) = pidfd.flatten() {
            return Some(Self::Pidfd(pidfd));
        }
        let path = thread_dir(host.root(), thread.pid, thread.tid).join("stat");
        File::open(path).ok().map(Self::Stat)
    }

    fn look(&self, thread: ThreadId) -> Option<There> {
        match self {
            Self::Pidfd(pidfd) => is_alive(pidfd).then_some(There { start_stack: None }),
            Self::Stat(file) => {
                let stat = read_open(file)?;
                let same = stat.start_ticks == thread.start_ticks && stat.is_alive();
                same.then(|| There::of(&stat))
            }
        }
    }
}

fn pidfd(tid: u32) -> Option<OwnedFd> {
    let tid = Pid::from_raw(tid.try_into().ok()?)?;
    pidfd_open(tid, THREAD).ok()
}

/// Returns true unless a pidfd tells of an end; what cannot be asked counts as ended.
fn is_alive(pidfd: &OwnedFd) -> bool {
    let mut fds = [PollFd::new(pidfd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO) == Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::channel;

    fn holding(most: usize) -> Grips {
        let mut grips = Grips::default();
        grips.hold(most);
        grips
    }

    /// A thread of this process, and what ends it.
    fn thread() -> (ThreadId, impl FnOnce()) {
        let (tell, told) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw().cast_unsigned())
                .unwrap();
            let _ = ended.recv();
        });
        let id = Host::real().identify(std::process::id(), told.recv().unwrap());
        let finish = move || {
            drop(end);
            thread.join().unwrap();
        };
        (id.unwrap(), finish)
    }

    fn is_there(grips: &mut Grips, thread: ThreadId) -> bool {
        grips.look(&Host::real(), thread).is_some()
    }

    #[test]
    fn a_thread_is_there_until_it_ends_whether_it_is_held_or_not() {
        for most in [0, 1] {
            let (id, finish) = thread();
            let mut grips = holding(most);
            assert!(is_there(&mut grips, id) && is_there(&mut grips, id));
            assert_eq!(grips.held.len(), most);
            finish();
            // The kernel lets a joined thread go a moment after it has woken who waits for it.
            while Host::real().same(id).is_some() {
                std::thread::yield_now();
            }
            assert!(!is_there(&mut grips, id));
        }
    }

    #[test]
    fn a_process_is_there_until_it_ends_and_tells_which_program_it_is() {
        let mut child = Command::new("sleep").arg("300").spawn().unwrap();
        let id = Host::real().identify(child.id(), child.id()).unwrap();
        // It has no stack yet while the kernel still makes it the other program.
        while Host::real()
            .same(id)
            .is_some_and(|stat| stat.start_stack == 0)
        {
            std::thread::yield_now();
        }
        let mut grips = holding(1);
        let first = grips.look(&Host::real(), id).unwrap();
        assert_eq!(grips.look(&Host::real(), id), Some(first));
        assert_eq!(
            first.start_stack,
            Host::real().same(id).map(|s| s.start_stack)
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_there(&mut grips, id));
    }

    #[test]
    fn another_start_is_another_thread_and_is_not_held() {
        let (mut id, finish) = thread();
        id.start_ticks += 1;
        let mut grips = holding(1);
        assert!(!is_there(&mut grips, id));
        assert!(grips.held.is_empty());
        finish();
    }

    #[test]
    fn there_is_room_for_so_many_and_for_others_again_when_one_is_let_go() {
        let ((first, end_first), (second, end_second)) = (thread(), thread());
        let mut grips = holding(1);
        assert!(is_there(&mut grips, first) && is_there(&mut grips, second));
        assert!(grips.held.contains_key(&first) && grips.held.len() == 1);
        grips.forget(first);
        assert!(is_there(&mut grips, second));
        assert!(grips.held.contains_key(&second));
        end_first();
        end_second();
    }
}
