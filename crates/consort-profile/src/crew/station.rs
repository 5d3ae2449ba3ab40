//! Meters of one group, of all threads of a program, and what waits for them.

use std::mem::take;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use consort_ops::Op;

use super::worker::Worker;
use crate::measure::Group;

/// Bytes of operations, or of parts of them, that are sent at a time.
const BATCH_BYTES: usize = 1 << 17;

/// Work on the meters of one thread of the program.
#[derive(Debug)]
enum Work<G: Group> {
    Parts(Vec<G::Part>),
    Ops(Vec<Op>),
    Count(bool),
    Tell(SyncSender<G::Counts>),
    End,
}

/// Meters by thread of the program.
#[derive(Debug)]
struct Meters<G: Group> {
    /// None any more where the thread has ended.
    threads: Vec<Option<Box<G>>>,
    /// Takes batches that are done, to be filled again.
    empty: Sender<Vec<G::Part>>,
}

impl<G: Group> Meters<G> {
    fn work(&mut self, thread: usize, work: Work<G>) {
        while self.threads.len() <= thread {
            self.threads.push(Some(Box::default()));
        }
        let Some(meters) = &mut self.threads[thread] else {
            return;
        };
        match work {
            Work::Parts(mut parts) => {
                parts.drain(..).for_each(|part| meters.part(part));
                // Nobody fills any more, perhaps.
                let _ = self.empty.send(parts);
            }
            Work::Ops(ops) => ops.iter().for_each(|op| meters.op(op)),
            Work::Count(counts) => meters.count(counts),
            // Who asked may have gone.
            Work::Tell(to) => drop(to.send(meters.counts())),
            Work::End => self.threads[thread] = None,
        }
    }
}

/// Place where the meters are.
#[derive(Debug)]
enum Place<G: Group> {
    Here(Meters<G>),
    Apart(Worker<(usize, Work<G>)>),
}

impl<G: Group> Place<G> {
    fn new(is_apart: bool, empty: Sender<Vec<G::Part>>) -> Self {
        let meters = |empty| Meters {
            threads: Vec::new(),
            empty,
        };
        let mut apart = meters(empty.clone());
        let work = move |(thread, work)| apart.work(thread, work);
        let worker = is_apart.then(|| Worker::start(work)).flatten();
        worker.map_or_else(|| Self::Here(meters(empty)), Self::Apart)
    }

    fn send(&mut self, thread: usize, work: Work<G>) {
        let is_done = match self {
            Self::Here(meters) => {
                meters.work(thread, work);
                true
            }
            Self::Apart(worker) => worker.send((thread, work)),
        };
        if !is_done {
            self.fail();
        }
    }

    /// Fails as the meters did.
    fn fail(&mut self) -> ! {
        let cause = match self {
            Self::Here(_) => None,
            Self::Apart(worker) => worker.end(),
        };
        resume_unwind(cause.unwrap_or_else(|| Box::new("meters are gone")))
    }
}

/// Meters of one group with what waits for them, which is of one thread and one sort at a time: the
/// other sort has no room.
#[derive(Debug)]
pub(super) struct Station<G: Group> {
    place: Place<G>,
    thread: usize,
    parts: Vec<G::Part>,
    ops: Vec<Op>,
    /// Gives batches of parts that can be filled again.
    empty: Receiver<Vec<G::Part>>,
}

impl<G: Group> Station<G> {
    /// Meters of no thread yet, in a thread apart if that is wanted and there is one.
    pub(super) fn new(is_apart: bool) -> Self {
        let (done, empty) = channel();
        Self {
            place: Place::new(is_apart, done),
            thread: 0,
            parts: Vec::new(),
            ops: Vec::new(),
            empty,
        }
    }

    /// Takes a part of an operation of `thread`.
    #[inline]
    pub(super) fn part(&mut self, thread: usize, part: G::Part) {
        if thread != self.thread || self.parts.len() == self.parts.capacity() {
            self.turn_to(thread);
            self.parts = self.empty.try_recv().unwrap_or_else(|_| room());
        }
        self.parts.push(part);
    }

    /// Takes an operation of `thread`.
    #[inline]
    pub(super) fn op(&mut self, thread: usize, op: &Op) {
        if thread != self.thread || self.ops.len() == self.ops.capacity() {
            self.turn_to(thread);
            self.ops = room();
        }
        self.ops.push(*op);
    }

    /// Has what follows of `thread` count, or only warm caches and predictors.
    pub(super) fn count(&mut self, thread: usize, counts: bool) {
        self.turn_to(thread);
        self.place.send(thread, Work::Count(counts));
    }

    /// Takes the meters away from a thread that has ended.
    pub(super) fn end(&mut self, thread: usize) {
        self.turn_to(thread);
        self.place.send(thread, Work::End);
    }

    /// Asks for the counts so far of `thread`, which has not ended.
    pub(super) fn ask(&mut self, thread: usize) -> Receiver<G::Counts> {
        self.turn_to(thread);
        let (to, from) = sync_channel(1);
        self.place.send(thread, Work::Tell(to));
        from
    }

    /// Waits for what was asked for.
    pub(super) fn hear(&mut self, from: &Receiver<G::Counts>) -> G::Counts {
        match from.recv() {
            Ok(counts) => counts,
            Err(_) => self.place.fail(),
        }
    }

    /// Sends what waits, and takes what comes for another thread.
    fn turn_to(&mut self, thread: usize) {
        let (parts, ops) = (take(&mut self.parts), take(&mut self.ops));
        if !parts.is_empty() {
            self.place.send(self.thread, Work::Parts(parts));
        }
        if !ops.is_empty() {
            self.place.send(self.thread, Work::Ops(ops));
        }
        self.thread = thread;
    }
}

/// Room for a batch.
fn room<T>() -> Vec<T> {
    Vec::with_capacity(BATCH_BYTES / size_of::<T>())
}
