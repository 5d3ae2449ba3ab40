//! Meters of one group, for all threads of a program.

use std::any::Any;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use consort_ops::Op;
use nix::sys::signal::{SigSet, SigmaskHow};

use crate::measure::MeterGroup;

/// Task for the meters of one thread of the program.
#[derive(Debug)]
pub(super) enum MeterTask<G: MeterGroup> {
    /// Takes parts of operations.
    Parts(Arc<Vec<G::Part>>),
    /// Takes operations whose values are followed.
    Ops(Arc<Vec<Op>>),
    /// Counts what follows, or only warms caches and predictors.
    Count(bool),
    /// Sends the counts so far.
    SendCounts(SyncSender<G::Counts>),
    /// Drops the meters, because the thread has ended.
    End,
}

#[derive(Debug)]
struct ThreadMeters<G: MeterGroup> {
    /// `None` if the thread has ended.
    threads: Vec<Option<Box<G>>>,
    link: G::Link,
}

impl<G: MeterGroup> ThreadMeters<G> {
    fn run_task(&mut self, thread: usize, work: MeterTask<G>) {
        while self.threads.len() <= thread {
            self.threads.push(Some(Box::default()));
        }
        let Some(meters) = &mut self.threads[thread] else {
            return;
        };
        match work {
            MeterTask::Parts(parts) => parts.iter().for_each(|part| meters.add_part(*part)),
            MeterTask::Ops(ops) => meters.add_ops(&ops, &mut self.link),
            MeterTask::Count(counts) => meters.set_counting(counts),
            // The receiver may have been dropped.
            MeterTask::SendCounts(to) => drop(to.send(meters.counts())),
            MeterTask::End => self.threads[thread] = None,
        }
    }
}

/// Meters of a group, in this thread or in one of their own.
#[derive(Debug)]
pub(super) struct MeterRunner<G: MeterGroup>(MeterLocation<G>);

#[derive(Debug)]
enum MeterLocation<G: MeterGroup> {
    Here(ThreadMeters<G>),
    Apart(MessageWorker<(usize, MeterTask<G>)>),
}

impl<G: MeterGroup> MeterRunner<G> {
    /// Meters of no thread yet, with a link to other groups; in a thread of their own if `is_apart`
    /// and if the system has one.
    pub(super) fn new(is_apart: bool, link: G::Link) -> Self {
        let threads = Vec::new();
        let meters = ThreadMeters { threads, link };
        if !is_apart {
            return Self(MeterLocation::Here(meters));
        }
        let take = |meters: &mut ThreadMeters<G>, (thread, work)| meters.run_task(thread, work);
        let worker = MessageWorker::start(meters, take);
        Self(worker.map_or_else(MeterLocation::Here, MeterLocation::Apart))
    }

    /// Runs a task now, or queues it behind earlier ones.
    pub(super) fn send(&mut self, thread: usize, work: MeterTask<G>) {
        let is_done = match &mut self.0 {
            MeterLocation::Here(meters) => {
                meters.run_task(thread, work);
                true
            }
            MeterLocation::Apart(worker) => worker.send((thread, work)),
        };
        if !is_done {
            self.resume_panic();
        }
    }

    /// Requests the counts of `thread`, which has not ended.
    pub(super) fn request_counts(&mut self, thread: usize) -> Receiver<G::Counts> {
        let (to, from) = sync_channel(1);
        self.send(thread, MeterTask::SendCounts(to));
        from
    }

    /// Waits for requested counts.
    pub(super) fn receive_counts(&mut self, from: &Receiver<G::Counts>) -> G::Counts {
        match from.recv() {
            Ok(counts) => counts,
            Err(_) => self.resume_panic(),
        }
    }

    /// Panics as the meters did.
    fn resume_panic(&mut self) -> ! {
        let cause = match &mut self.0 {
            MeterLocation::Here(_) => None,
            MeterLocation::Apart(worker) => worker.end(),
        };
        resume_unwind(cause.unwrap_or_else(|| Box::new("meters are gone")))
    }
}

/// Messages that wait at most; a sender waits until there is room. Workers are fast and slow by
/// turns, and the queue keeps the others busy meanwhile.
const WAITING: usize = 192;

/// A thread that ends when its worker is dropped, after all messages that were sent.
#[derive(Debug)]
pub(super) struct MessageWorker<M> {
    /// `None` if the thread is to end.
    messages: Option<SyncSender<M>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Send + 'static> MessageWorker<M> {
    /// A worker that applies each message to a state. Returns the state if the system has no thread
    /// for it.
    pub(super) fn start<S: Send + 'static>(
        state: S,
        take: impl Fn(&mut S, M) + Send + 'static,
    ) -> Result<Self, S> {
        let (give, given) = channel::<S>();
        let (messages, inbox) = sync_channel(WAITING);
        let thread = spawn_with_signals_blocked(move || {
            if let Ok(mut state) = given.recv() {
                inbox.into_iter().for_each(|new| take(&mut state, new));
            }
        });
        if thread.is_none() {
            return Err(state);
        }
        give.send(state).map_err(|unsent| unsent.0)?;
        Ok(Self {
            messages: Some(messages),
            thread,
        })
    }

    /// Sends a message. Returns false if the thread has failed.
    pub(super) fn send(&self, message: M) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.send(message).is_ok())
    }
}

impl<M> MessageWorker<M> {
    /// Waits for the thread's end. Returns the panic with which it failed, if it did.
    pub(super) fn end(&mut self) -> Option<Box<dyn Any + Send>> {
        self.messages = None;
        self.thread.take()?.join().err()
    }
}

impl<M> Drop for MessageWorker<M> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// Spawns a thread with all signals blocked, so that signals reach only the threads that wait for
/// them (`recorder/interrupts.rs`). A new thread inherits the mask of its parent.
fn spawn_with_signals_blocked(does: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let received = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = Builder::new().spawn(does);
    if let Ok(received) = received {
        let _ = received.thread_set_mask();
    }
    thread.ok()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    /// Counts operations, and fails at a part.
    #[derive(Debug, Default)]
    struct Fragile(usize);

    impl MeterGroup for Fragile {
        type Part = u8;
        type Counts = usize;
        type Link = ();

        fn set_counting(&mut self, _: bool) {}

        fn add_part(&mut self, part: u8) {
            assert_eq!(part, 0, "a part of {part}");
        }

        fn add_ops(&mut self, ops: &[Op], (): &mut ()) {
            self.0 += ops.len();
        }

        fn counts(&mut self) -> usize {
            self.0
        }
    }

    fn counted(station: &mut MeterRunner<Fragile>, thread: usize) -> usize {
        let from = station.request_counts(thread);
        station.receive_counts(&from)
    }

    #[test]
    fn each_thread_has_its_own_meters() {
        for is_apart in [false, true] {
            let mut station = MeterRunner::<Fragile>::new(is_apart, ());
            let ops = Arc::new(vec![Op::new(consort_ops::OpKind::Load, 0); 3]);
            for thread in [0, 1, 1] {
                station.send(thread, MeterTask::Ops(ops.clone()));
            }
            station.send(0, MeterTask::End);
            station.send(0, MeterTask::Ops(ops.clone()));
            assert_eq!(counted(&mut station, 1), 6);
        }
    }

    #[test]
    #[should_panic(expected = "a part of 7")]
    fn failure_in_worker_panics_on_request() {
        let mut station = MeterRunner::<Fragile>::new(true, ());
        station.send(0, MeterTask::Parts(Arc::new(vec![7])));
        counted(&mut station, 0);
    }

    #[test]
    #[should_panic(expected = "a part of 7")]
    fn failure_in_worker_panics_on_send() {
        let mut station = MeterRunner::<Fragile>::new(true, ());
        loop {
            station.send(0, MeterTask::Parts(Arc::new(vec![7])));
        }
    }

    #[test]
    fn all_messages_are_done_in_order() {
        let (done, reported) = channel();
        let mut worker = MessageWorker::start(done, |done, n: u32| done.send(n).unwrap()).unwrap();
        assert!((0..10_000).all(|n| worker.send(n)));
        assert!(worker.end().is_none());
        assert!(reported.into_iter().eq(0..10_000));
    }

    #[test]
    fn queue_of_messages_is_bounded() {
        let sent = Arc::new(AtomicUsize::new(0));
        let seen = sent.clone();
        let check = move |done: &mut usize, ()| {
            *done += 1;
            // One more is being sent.
            assert!(seen.load(Ordering::SeqCst) <= *done + WAITING + 1);
        };
        let mut worker = MessageWorker::start(0, check).unwrap();
        for _ in 0..1000 {
            sent.fetch_add(1, Ordering::SeqCst);
            assert!(worker.send(()));
        }
        assert!(worker.end().is_none());
    }

    #[test]
    fn failure_is_returned() {
        let mut worker = MessageWorker::start((), |(), n: u32| assert!(n < 3, "three")).unwrap();
        while worker.send(3) {}
        let cause = worker.end().unwrap();
        assert_eq!(cause.downcast_ref::<&str>(), Some(&"three"));
    }
}
