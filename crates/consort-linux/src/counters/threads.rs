//! The groups of many threads: attached a few at a time, read once per interval.
//!
//! # Purpose
//!
//! `perf_event_open` is dear (146 us for five events, up to 1.5 ms on a busy
//! host), so that threads wait in a queue and each interval opens a bounded
//! number of events. When file descriptors run out, threads stay in the queue, one notice says so,
//! and they are tried again after others have gone.
//!
//! # Pitfalls
//!
//! A thread that is not attached yet has no counts: its sample comes from the next poorer tier.

use crate::perf::{CounterGroup, GroupDelta, PerfError, PerfEventSpec, PerfTarget};
use consort_core::ThreadId;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use thiserror::Error;

/// A notice to the user, given once.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Notice {
    /// No more threads can be attached for now.
    #[error(
        "out of file descriptors with {attached} threads counted and {waiting} waiting; raise the limit on open files"
    )]
    FdsExhausted {
        /// Number of threads with open groups.
        attached: usize,
        /// Number of threads in the queue.
        waiting: usize,
    },
    /// The kernel refuses the events on a thread.
    #[error("counting refused: {0}")]
    Refused(PerfError),
    /// Groups are open but never on the counters, which something else holds.
    #[error(
        "another program holds the hardware counters; counting by the next tier until they are free"
    )]
    Lost,
    /// Groups count again after [`Notice::Lost`].
    #[error("the hardware counters are free again")]
    Back,
}

/// The same groups on many threads.
#[derive(Debug)]
pub struct ThreadGroups {
    layout: Vec<Vec<PerfEventSpec>>,
    opens_per_interval: usize,
    fd_budget: usize,
    attached: BTreeMap<ThreadId, Vec<CounterGroup>>,
    queue: VecDeque<ThreadId>,
    waiting: BTreeSet<ThreadId>,
    exhausted: bool,
    exhaustion_told: bool,
    refused: Option<PerfError>,
    lost: bool,
}

impl ThreadGroups {
    /// Groups of these events for every thread that will be wanted, at most `opens_per_interval`
    /// events opened by each [`ThreadGroups::attach_queued`] (always at least one thread).
    pub fn new(layout: Vec<Vec<PerfEventSpec>>, opens_per_interval: usize) -> Self {
        Self {
            layout,
            opens_per_interval,
            fd_budget: usize::MAX,
            attached: BTreeMap::new(),
            queue: VecDeque::new(),
            waiting: BTreeSet::new(),
            exhausted: false,
            exhaustion_told: false,
            refused: None,
            lost: false,
        }
    }

    /// The same with at most `fd_budget` descriptors: a process that takes the last one could open
    /// no other file.
    pub fn with_fd_budget(self, fd_budget: usize) -> Self {
        Self { fd_budget, ..self }
    }

    /// Counts these events from now on: threads that are attached wait to be attached anew.
    pub fn change_layout(&mut self, layout: Vec<Vec<PerfEventSpec>>) {
        self.layout = layout;
        for id in std::mem::take(&mut self.attached).into_keys() {
            self.enqueue_thread(id);
        }
    }

    /// Puts a thread into the queue, unless it is known.
    pub fn enqueue_thread(&mut self, id: ThreadId) {
        if !self.attached.contains_key(&id) && self.waiting.insert(id) {
            self.queue.push_back(id);
        }
    }

    /// Closes a thread's groups, so that threads that wait for descriptors can be tried again.
    pub fn forget(&mut self, id: ThreadId) {
        // Its place in the queue is skipped when its turn comes.
        self.waiting.remove(&id);
        if self.attached.remove(&id).is_some() {
            self.exhausted = false;
        }
    }

    /// Closes all groups and empties the queue; returns the threads.
    pub fn detach_all(&mut self) -> BTreeSet<ThreadId> {
        self.queue.clear();
        self.exhausted = false;
        let mut released = std::mem::take(&mut self.waiting);
        released.extend(std::mem::take(&mut self.attached).into_keys());
        released
    }

    /// Number of threads with open groups.
    pub fn attached_count(&self) -> usize {
        self.attached.len()
    }

    /// Number of threads in the queue.
    pub fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    /// Attaches threads from the queue within the budget. Call once per interval.
    pub fn attach_queued(&mut self) -> Vec<Notice> {
        let per_thread = self.layout.iter().map(Vec::len).sum::<usize>().max(1);
        let mut threads = (self.opens_per_interval / per_thread).max(1);
        let mut notices = Vec::new();
        while threads > 0 && !self.exhausted {
            let Some(id) = self.queue.pop_front() else {
                break;
            };
            if self.waiting.remove(&id) {
                notices.extend(self.attach(id));
                threads -= 1;
            }
        }
        notices
    }

    fn attach(&mut self, id: ThreadId) -> Option<Notice> {
        let per_thread: usize = self.layout.iter().map(Vec::len).sum();
        if (self.attached.len() + 1) * per_thread > self.fd_budget {
            return self.note_exhaustion(id);
        }
        let target = PerfTarget::Thread { tid: id.tid };
        let open = |specs: &Vec<PerfEventSpec>| CounterGroup::open(specs, target);
        match self.layout.iter().map(open).collect::<Result<_, _>>() {
            Ok(groups) => {
                self.attached.insert(id, groups);
                None
            }
            Err(PerfError::Gone) => None,
            Err(PerfError::NoFds) => self.note_exhaustion(id),
            Err(error) => {
                // Only when the error changes: the kernel mostly refuses all threads alike.
                let known = self.refused.replace(error) == Some(error);
                (!known).then_some(Notice::Refused(error))
            }
        }
    }

    /// Puts a thread back into the queue until others have gone; the notice is given once.
    fn note_exhaustion(&mut self, id: ThreadId) -> Option<Notice> {
        self.waiting.insert(id);
        self.queue.push_front(id);
        self.exhausted = true;
        let known = std::mem::replace(&mut self.exhaustion_told, true);
        (!known).then_some(Notice::FdsExhausted {
            attached: self.attached.len(),
            waiting: self.waiting.len(),
        })
    }

    /// Reads the counts of a thread's groups since the last read, in the order of the layout;
    /// `None` for threads that are not attached or whose groups cannot be read.
    pub fn read(&mut self, id: ThreadId) -> Option<Vec<GroupDelta>> {
        let groups = self.attached.get_mut(&id)?;
        let read = groups.iter_mut().map(CounterGroup::read);
        read.collect::<Result<_, _>>().ok()
    }

    /// Returns a notice when all threads that ran were off the counters, and when that is over. Call with the
    /// deltas of one interval's reads.
    pub fn note_losses<'a>(
        &mut self,
        deltas: impl IntoIterator<Item = &'a GroupDelta>,
    ) -> Option<Notice> {
        let mut ran = deltas.into_iter().filter(|d| d.enabled_ns > 0).peekable();
        ran.peek()?;
        let lost = ran.all(GroupDelta::is_lost);
        let changed = lost != self.lost;
        self.lost = lost;
        let notice = if lost { Notice::Lost } else { Notice::Back };
        changed.then_some(notice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn delta(enabled_ns: u64, running_ns: u64) -> GroupDelta {
        GroupDelta {
            counts: vec![],
            enabled_ns,
            running_ns,
        }
    }

    #[test]
    fn descriptor_budget_is_kept_and_reported_once() {
        let events = vec![
            PerfEventSpec::software(1, true),
            PerfEventSpec::software(2, true),
        ];
        let mut set = ThreadGroups::new(vec![events], 64).with_fd_budget(1);
        let thread = |tid| ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        };
        set.enqueue_thread(thread(1));
        set.enqueue_thread(thread(2));
        let reported = Notice::FdsExhausted {
            attached: 0,
            waiting: 2,
        };
        assert_eq!(set.attach_queued(), [reported]);
        set.forget(thread(1));
        assert_eq!(set.attach_queued(), []);
    }

    #[test]
    fn loss_and_return_are_reported_once() {
        let mut set = ThreadGroups::new(Vec::new(), 1);
        assert_eq!(set.note_losses(&[delta(5, 5)]), None);
        assert_eq!(
            set.note_losses(&[delta(5, 0), delta(0, 0)]),
            Some(Notice::Lost)
        );
        assert_eq!(set.note_losses(&[delta(5, 0)]), None);
        assert_eq!(set.note_losses(&[delta(0, 0)]), None);
        assert_eq!(set.note_losses(&[delta(5, 1)]), Some(Notice::Back));
    }
}
