//! Nudges: the mask of a thread is narrowed and widened again at once, which moves it and leaves no
//! trace.
//!
//! Narrowing makes the kernel move a thread that is on a CPU outside of the mask, or that waits
//! for one, before the call returns (`sched_setaffinity(2)`; `affine_move_task` in
//! `kernel/sched/core.c`). Widening moves no thread: it stays where the scheduler keeps it.
//! A thread that sleeps is not moved by either.
//!
//! Call it on the CPU of the thread ([`CallerPlacement`]): then there are two system
//! calls between the moment when a program can see the narrow mask and the moment when it no longer
//! can, and nothing that waits.

use super::affinity::{self, Mask, MaskWords, OriginalMask};
use super::checked_write::restore_inherited_mask;
use super::host::{AllowedPusCache, Host};
use crate::proc::{ProcError, Stat, read_open, thread_dir};
use consort_core::{PuId, PuSet, ThreadId};
use nix::errno::Errno;
use nix::libc;
use nix::time::{ClockId, clock_gettime};
use nix::unistd::gettid;
use std::collections::BTreeMap;
use std::fs::File;
use std::time::{Duration, Instant};

/// Time for narrowing beyond which the mask is read before it is widened. In less time no thread can
/// have started on another CPU and written a mask of its own there.
const AT_ONCE: Duration = Duration::from_micros(20);

/// Outcome of one nudge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NudgeOutcome {
    /// The mask was narrowed and widened.
    Done {
        /// The mask that the thread has now.
        now: PuSet,
        /// The thread after the nudge.
        there: LiveThreadStat,
        /// Upper bound of the time for which the mask was narrow.
        narrow: Duration,
    },
    /// The thread had another mask than the one seen last. Nothing was written.
    Overtaken,
    /// The thread has exited, or has become its process's leader by `exec`; in the second case it
    /// may have been narrowed before.
    Gone,
    /// Another program has written this mask meanwhile; it was left as it is.
    Changed(PuSet),
    /// The kernel refused to narrow the mask.
    Refused(Errno),
    /// The mask is narrowed, and the kernel refused to widen it.
    Stuck(Errno),
}

/// A nudge that is prepared, so that little time passes between the last look and the writes.
#[derive(Debug)]
pub(crate) struct Nudge {
    thread: ThreadId,
    /// The CPUs to move to; the thread's cpuset allows them.
    pub(crate) pus: PuSet,
    /// The mask that the thread had when it was last looked at.
    seen: PuSet,
    narrow: MaskWords,
    wide: MaskWords,
}

impl Nudge {
    pub(crate) fn new(thread: ThreadId, pus: PuSet, seen: PuSet, original: &Mask) -> Self {
        Self {
            thread,
            narrow: MaskWords::from_mask(&Mask::Only(pus.clone())),
            wide: MaskWords::from_mask(original),
            pus,
            seen,
        }
    }

    /// Moves the thread, which was just seen alive as `before`, and gives it its original mask.
    /// `there` returns `None` once the tid is another thread's.
    pub(crate) fn move_thread(
        &self,
        host: &Host,
        before: LiveThreadStat,
        there: impl FnOnce() -> Result<Option<LiveThreadStat>, ProcError>,
    ) -> NudgeOutcome {
        let (thread, pus) = (self.thread, &self.pus);
        match affinity::get(thread.tid) {
            // A mask that another program has set since the last look must not be overwritten.
            Ok(now) if now == self.seen => {}
            Ok(_) => return NudgeOutcome::Overtaken,
            Err(Errno::ESRCH) => return NudgeOutcome::Gone,
            Err(errno) => return NudgeOutcome::Refused(errno),
        }
        let start = Instant::now();
        match affinity::set_words(thread.tid, &self.narrow) {
            Err(Errno::ESRCH) => return NudgeOutcome::Gone,
            Err(errno) => return NudgeOutcome::Refused(errno),
            Ok(()) => {}
        }
        if start.elapsed() > AT_ONCE
            && let Ok(now) = affinity::get(thread.tid)
            && !is_ours(host, thread, &now, pus)
        {
            return NudgeOutcome::Changed(now);
        }
        let widened = match affinity::set_words(thread.tid, &self.wide) {
            // The cpuset has lost all CPUs of the original mask meanwhile.
            Err(Errno::EINVAL) => affinity::set(thread.tid, &Mask::Open),
            other => other,
        };
        let narrow = start.elapsed();
        // One that cannot be looked up for the moment was there a moment ago.
        let Some(there) = there().unwrap_or(Some(before)) else {
            if widened.is_ok() {
                restore_inherited_mask(host, thread.tid);
            }
            return NudgeOutcome::Gone;
        };
        match widened.and_then(|()| affinity::get(thread.tid)) {
            Ok(now) => NudgeOutcome::Done { now, there, narrow },
            Err(Errno::ESRCH) => NudgeOutcome::Gone,
            Err(errno) => NudgeOutcome::Stuck(errno),
        }
    }
}

/// Returns true if the mask read after narrowing goes back to the one written: the kernel may have
/// cut it by a cpuset that has just shrunk, or given the whole cpuset where nothing was left.
fn is_ours(host: &Host, thread: ThreadId, now: &PuSet, pus: &PuSet) -> bool {
    // Without a look at the cpuset nothing speaks for another's choice.
    let is_allowed = |allowed: PuSet| *now == allowed;
    let allowed = || AllowedPusCache::new(host).read_pus(host, thread.pid, thread.tid);
    now.is_subset(pus) || allowed().map_or(true, is_allowed)
}

// A program sees a narrow mask for as long as Consort takes from one write to the next. Two things
// made that long. To move a thread that *runs* on another CPU, the kernel lets the writer sleep
// until that CPU has stopped the thread, and the writer then waits for its turn. And a writer that
// has used up its slice is preempted at the next tick, or by the next thread that wakes up.
//
// On the CPU of its target, Consort's thread has displaced it. A thread that waits is moved by the
// writer itself, without sleeping, to a CPU on which it cannot displace the writer. A fair thread
// that has just been chosen also has its slice before it: so it sleeps for a moment first, unless it
// has real-time priority.
//
// The calling thread must get its own mask back before it starts a process or another thread, because
// these would inherit the narrow one.

/// CPU time after which a fair thread no longer counts as just chosen: half of its slice. The kernel
/// finds that a slice is over within the first write of a nudge, and then preempts the writer
/// before the second.
const FRESH: Duration = Duration::from_micros(150);

/// Position of the calling thread.
#[derive(Debug, Default)]
pub(crate) struct CallerPlacement {
    /// The thread's own mask, when it was last read.
    own: Option<OriginalMask>,
    /// The CPU that the thread is restricted to; `None` while it has its own mask.
    at: Option<PuId>,
    /// The thread's CPU time when it was last chosen after a sleep; `None` if it need not sleep.
    chosen: Option<Duration>,
}

impl CallerPlacement {
    /// Moves the calling thread to a CPU. It stays where it is if its cpuset lacks that CPU.
    pub(crate) fn move_to_pu(&mut self, host: &Host, pu: PuId) {
        let tid = gettid().as_raw().cast_unsigned();
        if self.at.is_none() {
            let Ok(now) = affinity::get(tid) else { return };
            if self.own.as_ref().is_none_or(|own| own.pus != now) {
                let allowed = AllowedPusCache::new(host).read_pus(host, std::process::id(), tid);
                // Without its cpuset, it is not known what mask to go back to.
                let Ok(allowed) = allowed else { return };
                self.own = Some(OriginalMask::new(now, &allowed));
            }
            self.chosen = (!has_real_time_priority()).then_some(Duration::ZERO);
        }
        let is_there = self.at == Some(pu);
        // Refused if the cpuset lacks that CPU. Then the nudge only takes longer.
        let moved = is_there || affinity::set(tid, &Mask::Only(PuSet::from(pu))).is_ok();
        if moved {
            self.at = Some(pu);
        }
        if self.chosen.is_some() && (!is_there || !self.has_fresh_slice()) {
            // However short, a sleep makes the scheduler choose this thread anew, with its whole
            // slice.
            std::thread::sleep(Duration::from_nanos(1));
            self.chosen = Some(cpu_time());
        }
    }

    /// Returns true if the calling thread has most of its slice before it.
    pub(crate) fn has_fresh_slice(&self) -> bool {
        self.chosen
            .is_none_or(|chosen| cpu_time().saturating_sub(chosen) <= FRESH)
    }

    /// Gives the calling thread its own mask back.
    pub(crate) fn restore_own_mask(&mut self) {
        let tid = gettid().as_raw().cast_unsigned();
        if self.at.take().is_some()
            && let Some(own) = &self.own
            && let Err(errno) =
                affinity::set(tid, &own.mask()).or_else(|_| affinity::set(tid, &Mask::Open))
        {
            tracing::warn!(%errno, "consort keeps running on the CPU of the last nudge");
        }
    }
}

fn has_real_time_priority() -> bool {
    // SAFETY: the call takes no pointers; 0 is the calling thread.
    let policy = unsafe { libc::sched_getscheduler(0) };
    matches!(
        policy & !libc::SCHED_RESET_ON_FORK,
        libc::SCHED_FIFO | libc::SCHED_RR
    )
}

fn cpu_time() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

// A nudge checks before and after its writes that the tid still belongs to the thread that was meant,
// and reads before on which CPU the thread is. One read of an open `stat` file shows both, while
// opening it takes several system calls. The open file belongs to the thread that it was opened
// for: once that is gone, reading fails, even if another thread has its tid.

/// Facts about a thread that is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LiveThreadStat {
    /// Bottom of its stack, which changes with another program.
    pub(crate) start_stack: u64,
    /// The CPU that it runs on, waits for, or ran on last.
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
        // No room, or the file could not be opened.
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

    #[test]
    fn caller_is_on_requested_cpu_until_restored() {
        let checked = std::thread::spawn(|| {
            let tid = gettid().as_raw().cast_unsigned();
            let before = affinity::get(tid).unwrap();
            let mut caller = CallerPlacement::default();
            for pu in before.iter() {
                caller.move_to_pu(&Host::real(), pu);
                assert_eq!(affinity::get(tid).unwrap(), PuSet::from(pu));
                assert_eq!(nix::sched::sched_getcpu().unwrap(), pu.0 as usize);
            }
            caller.restore_own_mask();
            assert_eq!(affinity::get(tid).unwrap(), before);
        });
        checked.join().unwrap();
    }

    #[test]
    fn cpu_outside_the_cpuset_leaves_the_mask_alone() {
        let checked = std::thread::spawn(|| {
            let tid = gettid().as_raw().cast_unsigned();
            let before = affinity::get(tid).unwrap();
            let mut caller = CallerPlacement::default();
            caller.move_to_pu(&Host::real(), PuId(4_000));
            assert_eq!(affinity::get(tid).unwrap(), before);
            caller.restore_own_mask();
            assert_eq!(affinity::get(tid).unwrap(), before);
        });
        checked.join().unwrap();
    }
}

#[cfg(test)]
mod stat_file_cache_tests {
    use super::*;
    use std::process::Command;
    use std::sync::mpsc::channel;

    fn holding(most: usize) -> StatFileCache {
        let mut stat_files = StatFileCache::default();
        stat_files.set_capacity(most);
        stat_files
    }

    /// A thread of this process, and what ends it.
    fn thread() -> (ThreadId, impl FnOnce()) {
        let (tell, reported) = channel();
        let (end, ended) = channel::<()>();
        let thread = std::thread::spawn(move || {
            tell.send(gettid().as_raw().cast_unsigned()).unwrap();
            let _ = ended.recv();
        });
        let id = Host::real().identify(std::process::id(), reported.recv().unwrap());
        let finish = move || {
            drop(end);
            thread.join().unwrap();
        };
        (id.unwrap(), finish)
    }

    fn is_there(stat_files: &mut StatFileCache, thread: ThreadId) -> bool {
        stat_files
            .read_thread(&Host::real(), thread)
            .unwrap()
            .is_some()
    }

    #[test]
    fn thread_is_found_until_it_ends() {
        for most in [0, 1] {
            let (id, finish) = thread();
            let mut stat_files = holding(most);
            assert!(is_there(&mut stat_files, id) && is_there(&mut stat_files, id));
            assert_eq!(stat_files.held.len(), most);
            finish();
            // The kernel lets a joined thread go a moment after it has woken who waits for it.
            while !Host::real().is_gone(id) {
                std::thread::yield_now();
            }
            assert!(!is_there(&mut stat_files, id));
        }
    }

    #[test]
    fn process_is_found_until_it_ends() {
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
        let mut stat_files = holding(1);
        let first = stat_files.read_thread(&Host::real(), id).unwrap().unwrap();
        let now = Host::real().stat_if_same(id).unwrap();
        assert_eq!(Some(first.start_stack), now.map(|stat| stat.start_stack));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_there(&mut stat_files, id));
    }

    #[test]
    fn another_start_is_another_thread() {
        let (mut id, finish) = thread();
        id.start_ticks += 1;
        let mut stat_files = holding(1);
        assert!(!is_there(&mut stat_files, id));
        assert!(stat_files.held.is_empty());
        finish();
    }

    #[test]
    fn forgotten_thread_makes_room_for_another() {
        let ((first, end_first), (second, end_second)) = (thread(), thread());
        let mut stat_files = holding(1);
        assert!(is_there(&mut stat_files, first) && is_there(&mut stat_files, second));
        assert!(stat_files.held.contains_key(&first) && stat_files.held.len() == 1);
        stat_files.forget(first);
        assert!(is_there(&mut stat_files, second));
        assert!(stat_files.held.contains_key(&second));
        end_first();
        end_second();
    }
}
