//! Threads that are nudged time and again, each held by its open file `stat`.
//!
//! A nudge looks before and after whether a tid is still the thread that was meant, and before on
//! which PU it is. Reading the open file answers both by one system call, where opening it takes
//! several. It belongs to the thread that it was opened for: once that is gone, reading fails,
//! although another thread may have its tid.

use super::host::Host;
use crate::proc::{ProcError, Stat, read_open, thread_dir};
use consort_core::{PuId, ThreadId};
use std::collections::BTreeMap;
use std::fs::File;

/// Facts about a thread that is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveThreadStat {
    /// Bottom of its stack, which changes with another program.
    pub(crate) start_stack: u64,
    /// The PU that it runs on, waits for, or ran on last.
    pub(crate) pu: PuId,
}

/// Threads that are held, up to a number.
#[derive(Debug, Default)]
pub(crate) struct StatFileCache {
    held: BTreeMap<ThreadId, File>,
    most: usize,
}

impl StatFileCache {
    /// Holds up to so many threads from now on, by one descriptor each.
    pub(crate) fn set_capacity(&mut self, most: usize) {
        self.most = most;
        self.held.clear();
    }

    /// A thread, if it is the same and alive. It is held from the first look on if there is room;
    /// others are looked up each time.
    ///
    /// # Errors
    /// If it cannot be looked up, as when descriptors are short.
    pub(crate) fn read_thread(
        &mut self,
        host: &Host,
        thread: ThreadId,
    ) -> Result<Option<LiveThreadStat>, ProcError> {
        if !self.held.contains_key(&thread) && self.held.len() < self.most {
            let path = thread_dir(host.root(), thread.pid, thread.tid).join("stat");
            self.held
                .extend(File::open(path).ok().map(|file| (thread, file)));
        }
        let Some(file) = self.held.get(&thread) else {
            return Ok(host
                .stat_if_same(thread)?
                .map(|stat| LiveThreadStat::from_stat(&stat)));
        };
        let stat = read_open(file);
        let same = stat.filter(|s| s.start_ticks == thread.start_ticks && s.is_alive());
        if same.is_none() {
            self.held.remove(&thread);
            // A reading may fail for another reason than its end.
            return Ok(host
                .stat_if_same(thread)?
                .map(|stat| LiveThreadStat::from_stat(&stat)));
        }
        Ok(same.map(|stat| LiveThreadStat::from_stat(&stat)))
    }

    /// Lets go of a thread.
    pub(crate) fn forget(&mut self, thread: ThreadId) {
        self.held.remove(&thread);
    }
}

impl LiveThreadStat {
    pub(crate) fn from_stat(stat: &Stat) -> Self {
        Self {
            start_stack: stat.start_stack,
            pu: stat.last_pu,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::channel;

    fn holding(most: usize) -> StatFileCache {
        let mut grips = StatFileCache::default();
        grips.set_capacity(most);
        grips
    }

    /// A thread of this process, and what ends it.
    fn thread() -> (ThreadId, impl FnOnce()) {
        let (tell, reported) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(nix::unistd::gettid().as_raw().cast_unsigned())
                .unwrap();
            let _ = ended.recv();
        });
        let id = Host::real().identify(std::process::id(), reported.recv().unwrap());
        let finish = move || {
            drop(end);
            thread.join().unwrap();
        };
        (id.unwrap(), finish)
    }

    fn is_there(grips: &mut StatFileCache, thread: ThreadId) -> bool {
        grips.read_thread(&Host::real(), thread).unwrap().is_some()
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
            while !Host::real().is_gone(id) {
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
            .stat_if_same(id)
            .unwrap()
            .is_some_and(|stat| stat.start_stack == 0)
        {
            std::thread::yield_now();
        }
        let mut grips = holding(1);
        let first = grips.read_thread(&Host::real(), id).unwrap().unwrap();
        let now = Host::real().stat_if_same(id).unwrap();
        assert_eq!(Some(first.start_stack), now.map(|stat| stat.start_stack));
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
