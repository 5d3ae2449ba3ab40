//! Meters of one group, of all threads of a program.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use consort_ops::Op;

use super::worker::MessageWorker;
use crate::measure::MeterGroup;

/// Work on the meters of one thread of the program.
#[derive(Debug)]
pub(super) enum MeterTask<G: MeterGroup> {
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
struct ThreadMeters<G: MeterGroup> {
    /// None any more where the thread has ended.
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
            // Who asked may have gone.
            MeterTask::Tell(to) => drop(to.send(meters.counts())),
            MeterTask::End => self.threads[thread] = None,
        }
    }
}

/// Place where the meters of a group are: here, or in a thread apart.
#[derive(Debug)]
pub(super) struct MeterRunner<G: MeterGroup>(MeterLocation<G>);

#[derive(Debug)]
enum MeterLocation<G: MeterGroup> {
    Here(ThreadMeters<G>),
    Apart(MessageWorker<(usize, MeterTask<G>)>),
}

impl<G: MeterGroup> MeterRunner<G> {
    /// Meters of no thread yet with a link to others, in a thread apart if that is wanted and the
    /// system has one.
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

    /// Has work done, now or behind what was sent before.
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

    /// Asks for the counts of `thread`, which has not ended.
    pub(super) fn request_counts(&mut self, thread: usize) -> Receiver<G::Counts> {
        let (to, from) = sync_channel(1);
        self.send(thread, MeterTask::Tell(to));
        from
    }

    /// Waits for what was asked for.
    pub(super) fn receive_counts(&mut self, from: &Receiver<G::Counts>) -> G::Counts {
        match from.recv() {
            Ok(counts) => counts,
            Err(_) => self.resume_panic(),
        }
    }

    /// Fails as the meters did.
    fn resume_panic(&mut self) -> ! {
        let cause = match &mut self.0 {
            MeterLocation::Here(_) => None,
            MeterLocation::Apart(worker) => worker.end(),
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

        fn counts(&self) -> usize {
            self.0
        }
    }

    fn counted(station: &mut MeterRunner<Fragile>, thread: usize) -> usize {
        let from = station.request_counts(thread);
        station.receive_counts(&from)
    }

    #[test]
    fn threads_of_a_program_have_meters_of_their_own() {
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
    fn an_error_apart_ends_who_asks() {
        let mut station = MeterRunner::<Fragile>::new(true, ());
        station.send(0, MeterTask::Parts(Arc::new(vec![7])));
        counted(&mut station, 0);
    }

    #[test]
    #[should_panic(expected = "a part of 7")]
    fn an_error_apart_ends_who_sends_more() {
        let mut station = MeterRunner::<Fragile>::new(true, ());
        loop {
            station.send(0, MeterTask::Parts(Arc::new(vec![7])));
        }
    }
}
