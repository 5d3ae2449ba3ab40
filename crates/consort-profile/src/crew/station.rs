//! Meters of one group, of all threads of a program.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use consort_ops::Op;

use super::worker::Worker;
use crate::measure::Group;

/// Work on the meters of one thread of the program.
#[derive(Debug)]
pub(super) enum Work<G: Group> {
    /// They take parts of operations.
    Parts(Arc<Vec<G::Part>>),
    /// They take operations whose values are followed.
    Ops(Arc<Vec<Op>>),
    /// They count what follows, or only warm caches and predictors by it.
    Count(bool),
    /// They tell their counts.
    Tell(SyncSender<G::Counts>),
    /// The thread has ended, and they go.
    End,
}

/// Meters by thread of the program.
#[derive(Debug)]
struct Meters<G: Group> {
    /// None any more where the thread has ended.
    threads: Vec<Option<Box<G>>>,
    link: G::Link,
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
            Work::Parts(parts) => parts.iter().for_each(|part| meters.part(*part)),
            Work::Ops(ops) => meters.ops(&ops, &mut self.link),
            Work::Count(counts) => meters.count(counts),
            // Who asked may have gone.
            Work::Tell(to) => drop(to.send(meters.counts())),
            Work::End => self.threads[thread] = None,
        }
    }
}

/// Place where the meters of a group are: here, or in a thread apart.
#[derive(Debug)]
pub(super) struct Station<G: Group>(Place<G>);

#[derive(Debug)]
enum Place<G: Group> {
    Here(Meters<G>),
    Apart(Worker<(usize, Work<G>)>),
}

impl<G: Group> Station<G> {
    /// Meters of no thread yet with a link to others, in a thread apart if that is wanted and the
    /// system has one.
    pub(super) fn new(is_apart: bool, link: G::Link) -> Self {
        let threads = Vec::new();
        let meters = Meters { threads, link };
        if !is_apart {
            return Self(Place::Here(meters));
        }
        let take = |meters: &mut Meters<G>, (thread, work)| meters.work(thread, work);
        let worker = Worker::start(meters, take);
        Self(worker.map_or_else(Place::Here, Place::Apart))
    }

    /// Has work done, now or behind what was sent before.
    pub(super) fn send(&mut self, thread: usize, work: Work<G>) {
        let is_done = match &mut self.0 {
            Place::Here(meters) => {
                meters.work(thread, work);
                true
            }
            Place::Apart(worker) => worker.send((thread, work)),
        };
        if !is_done {
            self.fail();
        }
    }

    /// Asks for the counts of `thread`, which has not ended.
    pub(super) fn ask(&mut self, thread: usize) -> Receiver<G::Counts> {
        let (to, from) = sync_channel(1);
        self.send(thread, Work::Tell(to));
        from
    }

    /// Waits for what was asked for.
    pub(super) fn hear(&mut self, from: &Receiver<G::Counts>) -> G::Counts {
        match from.recv() {
            Ok(counts) => counts,
            Err(_) => self.fail(),
        }
    }

    /// Fails as the meters did.
    fn fail(&mut self) -> ! {
        let cause = match &mut self.0 {
            Place::Here(_) => None,
            Place::Apart(worker) => worker.end(),
        };
        resume_unwind(cause.unwrap_or_else(|| Box::new("meters are gone")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Counts operations, and fails at a part.
    #[derive(Debug, Default)]
    struct Fragile(usize);

    impl Group for Fragile {
        type Part = u8;
        type Counts = usize;
        type Link = ();

        fn count(&mut self, _: bool) {}

        fn part(&mut self, part: u8) {
            assert_eq!(part, 0, "a part of {part}");
        }

        fn ops(&mut self, ops: &[Op], (): &mut ()) {
            self.0 += ops.len();
        }

        fn counts(&self) -> usize {
            self.0
        }
    }

    fn counted(station: &mut Station<Fragile>, thread: usize) -> usize {
        let from = station.ask(thread);
        station.hear(&from)
    }

    #[test]
    fn threads_of_a_program_have_meters_of_their_own() {
        for is_apart in [false, true] {
            let mut station = Station::<Fragile>::new(is_apart, ());
            let ops = Arc::new(vec![Op::new(consort_ops::Kind::Load, 0); 3]);
            for thread in [0, 1, 1] {
                station.send(thread, Work::Ops(ops.clone()));
            }
            station.send(0, Work::End);
            station.send(0, Work::Ops(ops.clone()));
            assert_eq!(counted(&mut station, 1), 6);
        }
    }

    #[test]
    #[should_panic(expected = "a part of 7")]
    fn an_error_apart_ends_who_asks() {
        let mut station = Station::<Fragile>::new(true, ());
        station.send(0, Work::Parts(Arc::new(vec![7])));
        counted(&mut station, 0);
    }

    #[test]
    #[should_panic(expected = "a part of 7")]
    fn an_error_apart_ends_who_sends_more() {
        let mut station = Station::<Fragile>::new(true, ());
        loop {
            station.send(0, Work::Parts(Arc::new(vec![7])));
        }
    }
}
