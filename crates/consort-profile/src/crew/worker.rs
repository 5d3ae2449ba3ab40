//! A thread that works through messages in their order.

use std::any::Any;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{JoinHandle, spawn};

use nix::sys::signal::{SigSet, SigmaskHow};

/// Messages that wait at most; who sends more waits until one is taken.
const WAITING: usize = 16;

/// A thread that ends with its worker, when it has done all that was sent.
#[derive(Debug)]
pub(super) struct Worker<M> {
    /// None where the thread is to end.
    messages: Option<SyncSender<M>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Send + 'static> Worker<M> {
    /// A worker that does something with each message.
    pub(super) fn start(does: impl FnMut(M) + Send + 'static) -> Self {
        let (messages, inbox) = sync_channel(WAITING);
        let thread = deaf(move || inbox.into_iter().for_each(does));
        Self {
            messages: Some(messages),
            thread: Some(thread),
        }
    }

    /// Sends a message; gives false where the thread has failed.
    pub(super) fn send(&self, message: M) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.send(message).is_ok())
    }
}

impl<M> Worker<M> {
    /// Waits for the thread's end; gives what it failed with, if it did.
    pub(super) fn end(&mut self) -> Option<Box<dyn Any + Send>> {
        self.messages = None;
        self.thread.take()?.join().err()
    }
}

impl<M> Drop for Worker<M> {
    fn drop(&mut self) {
        let _ = self.end();
    }
}

/// A thread that hears no signals: they are for those who asked for them.
fn deaf(does: impl FnOnce() + Send + 'static) -> JoinHandle<()> {
    let heard = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = spawn(does);
    if let Ok(heard) = heard {
        let _ = heard.thread_set_mask();
    }
    thread
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    #[test]
    fn messages_are_done_in_their_order_and_all_of_them() {
        let (done, told) = channel();
        let mut worker = Worker::start(move |n: u32| done.send(n).unwrap());
        assert!((0..10_000).all(|n| worker.send(n)));
        assert!(worker.end().is_none());
        assert!(told.into_iter().eq(0..10_000));
    }

    #[test]
    fn few_messages_wait() {
        let sent = Arc::new(AtomicUsize::new(0));
        let (seen, mut done) = (sent.clone(), 0);
        let check = move |()| {
            done += 1;
            // One more is being sent.
            assert!(seen.load(Ordering::SeqCst) <= done + WAITING + 1);
        };
        let mut worker = Worker::start(check);
        for _ in 0..1000 {
            sent.fetch_add(1, Ordering::SeqCst);
            assert!(worker.send(()));
        }
        assert!(worker.end().is_none());
    }

    #[test]
    fn a_failure_is_told() {
        let mut worker = Worker::start(|n: u32| assert!(n < 3, "three"));
        while worker.send(3) {}
        let cause = worker.end().unwrap();
        assert_eq!(cause.downcast_ref::<&str>(), Some(&"three"));
    }
}
