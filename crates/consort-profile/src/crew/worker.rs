//! A thread that works through messages in their order.

use std::any::Any;
use std::sync::mpsc::{SyncSender, channel, sync_channel};
use std::thread::{Builder, JoinHandle};

use nix::sys::signal::{SigSet, SigmaskHow};

/// Messages that wait at most; who sends more waits until one is taken. Workers are fast and slow by
/// turns, and what waits here is what keeps the others busy meanwhile.
const WAITING: usize = 192;

/// A thread that ends with its worker, when it has done all that was sent.
#[derive(Debug)]
pub(super) struct MessageWorker<M> {
    /// None where the thread is to end.
    messages: Option<SyncSender<M>>,
    thread: Option<JoinHandle<()>>,
}

impl<M: Send + 'static> MessageWorker<M> {
    /// A worker that takes each message into a state; gives the state back where the system has no
    /// thread for it.
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

    /// Sends a message; gives false where the thread has failed.
    pub(super) fn send(&self, message: M) -> bool {
        let messages = self.messages.as_ref();
        messages.is_some_and(|messages| messages.send(message).is_ok())
    }
}

impl<M> MessageWorker<M> {
    /// Waits for the thread's end; gives what it failed with, if it did.
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

/// A thread that hears no signals: they are for those who asked for them.
fn spawn_with_signals_blocked(does: impl FnOnce() + Send + 'static) -> Option<JoinHandle<()>> {
    let heard = SigSet::all().thread_swap_mask(SigmaskHow::SIG_SETMASK);
    let thread = Builder::new().spawn(does);
    if let Ok(heard) = heard {
        let _ = heard.thread_set_mask();
    }
    thread.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn messages_are_done_in_their_order_and_all_of_them() {
        let (done, told) = channel();
        let mut worker = MessageWorker::start(done, |done, n: u32| done.send(n).unwrap()).unwrap();
        assert!((0..10_000).all(|n| worker.send(n)));
        assert!(worker.end().is_none());
        assert!(told.into_iter().eq(0..10_000));
    }

    #[test]
    fn few_messages_wait() {
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
    fn a_failure_is_told() {
        let mut worker = MessageWorker::start((), |(), n: u32| assert!(n < 3, "three")).unwrap();
        while worker.send(3) {}
        let cause = worker.end().unwrap();
        assert_eq!(cause.downcast_ref::<&str>(), Some(&"three"));
    }
}
