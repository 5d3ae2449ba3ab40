//! Number of threads over time, and the times at which the first thread works alone.

use std::collections::{BTreeMap, HashMap};

use super::barriers::{BarrierMeter, Barriers};
use super::futex::Futex;
use crate::recorder::{ProgramEvent, SystemCall, ThreadAction};

/// Number of the system call that makes a thread, on x86-64.
const CLONE: u64 = 56;
/// Flag of a call that makes a thread and not a process (clone(2), `CLONE_THREAD`).
const MAKES_THREAD: u64 = 0x1_0000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadActivity {
    Runs,
    /// Is in the kernel until something happens; waits on a word if that is known.
    Waits(Option<u64>),
    Ended,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ThreadTeam {
    states: BTreeMap<usize, ThreadActivity>,
    executed: BTreeMap<usize, u64>,
    /// Beginnings (true) and ends of threads, in order.
    lives: Vec<(usize, bool)>,
    /// Threads that were requested and have not begun.
    to_begin: u64,
    /// Threads inside a call that makes a thread (true) or a process.
    asks: HashMap<usize, bool>,
    /// Running threads except the first one.
    others: usize,
    alone_since: u64,
    alone: u64,
    barriers: BarrierMeter,
}

impl ThreadTeam {
    pub(crate) fn record_event(&mut self, event: &ProgramEvent) {
        let was_alone = self.others == 0 && self.to_begin == 0;
        self.executed.insert(event.thread, event.executed);
        match event.deed {
            ThreadAction::Began => self.begin_thread(event.thread),
            ThreadAction::Ended => self.end_thread(event.thread),
            ThreadAction::Called(call) => self.handle_call(event, &call),
            ThreadAction::Returned(result) => self.handle_return(event.thread, result),
        }
        if was_alone {
            self.alone += event.executed_by_first.saturating_sub(self.alone_since);
        }
        self.alone_since = event.executed_by_first;
    }

    fn set_state(&mut self, thread: usize, state: ThreadActivity) {
        let before = self.states.insert(thread, state);
        if thread != 0 {
            self.others += usize::from(state == ThreadActivity::Runs);
            self.others -= usize::from(before == Some(ThreadActivity::Runs));
        }
    }

    fn begin_thread(&mut self, thread: usize) {
        if thread != 0 {
            self.to_begin = self.to_begin.saturating_sub(1);
        }
        self.lives.push((thread, true));
        self.set_state(thread, ThreadActivity::Runs);
    }

    /// A program that fails to replace itself by another reports its end more than once.
    fn end_thread(&mut self, thread: usize) {
        if self.states.get(&thread) != Some(&ThreadActivity::Ended) {
            self.lives.push((thread, false));
            self.set_state(thread, ThreadActivity::Ended);
        }
    }

    fn handle_call(&mut self, event: &ProgramEvent, call: &SystemCall) {
        if call.number == CLONE {
            let makes_thread = call.arguments[0] & MAKES_THREAD != 0;
            self.to_begin += u64::from(makes_thread);
            self.asks.insert(event.thread, makes_thread);
            return;
        }
        self.barriers
            .handle_call(event.thread, call, event.executed);
        match Futex::from_call(call) {
            Some(Futex::Wake(word, count)) => self.wake_waiters(word, count),
            Some(Futex::Wait(word, _)) => {
                self.set_state(event.thread, ThreadActivity::Waits(Some(word)));
            }
            None => self.set_state(event.thread, ThreadActivity::Waits(None)),
        }
    }

    /// Lets the woken threads run at once, because the delay of the emulator is not the program's.
    fn wake_waiters(&mut self, word: u64, count: u64) {
        let waits =
            |(_, state): &(&usize, &ThreadActivity)| **state == ThreadActivity::Waits(Some(word));
        let most = usize::try_from(count).unwrap_or(usize::MAX);
        let waiting = self.states.iter().filter(waits).take(most);
        let waiting: Vec<usize> = waiting.map(|(thread, _)| *thread).collect();
        for thread in waiting {
            self.set_state(thread, ThreadActivity::Runs);
        }
    }

    fn handle_return(&mut self, thread: usize, result: i64) {
        self.barriers.handle_return(thread, result);
        if self.asks.remove(&thread) == Some(true) && result < 0 {
            self.to_begin = self.to_begin.saturating_sub(1);
        }
        if self.states.get(&thread) != Some(&ThreadActivity::Ended) {
            self.set_state(thread, ThreadActivity::Runs);
        }
    }

    /// Instructions that a thread executed, recorded or not; 0 if it is not known.
    pub(crate) fn instructions_executed(&self, thread: usize) -> u64 {
        self.executed.get(&thread).copied().unwrap_or(0)
    }

    /// Instructions of the first thread while no other thread could run.
    pub(crate) fn solo_instructions(&self) -> u64 {
        self.alone
    }

    pub(crate) fn threads(&self) -> impl Iterator<Item = usize> {
        self.states.keys().copied()
    }

    /// Most of some threads that lived at a time.
    pub(crate) fn most_at_once(&self, of: impl Fn(usize) -> bool) -> usize {
        let (mut now, mut most) = (0_usize, 0);
        for &(thread, began) in &self.lives {
            if of(thread) {
                now = if began { now + 1 } else { now - 1 };
                most = most.max(now);
            }
        }
        most
    }

    /// The barriers that roles met, each given by its threads and the number that lives at a time.
    pub(crate) fn barriers(&self, roles: &[(Vec<usize>, usize)]) -> Option<Barriers> {
        self.barriers.barriers(roles)
    }
}

#[cfg(test)]
mod tests {
    use super::super::futex::call;
    use super::*;

    fn happens(team: &mut ThreadTeam, thread: usize, deed: ThreadAction, by_first: u64) {
        team.record_event(&ProgramEvent {
            thread,
            deed,
            executed: by_first,
            executed_by_first: by_first,
        });
    }

    fn clone() -> ThreadAction {
        ThreadAction::Called(SystemCall {
            number: CLONE,
            arguments: [MAKES_THREAD | 0x100, 0, 0],
        })
    }

    #[test]
    fn first_thread_is_alone_before_and_after_others() {
        let mut team = ThreadTeam::default();
        happens(&mut team, 0, ThreadAction::Began, 0);
        happens(&mut team, 0, clone(), 1000);
        happens(&mut team, 0, ThreadAction::Returned(7), 1000);
        happens(&mut team, 1, ThreadAction::Began, 1500);
        happens(&mut team, 1, ThreadAction::Ended, 5000);
        happens(&mut team, 0, ThreadAction::Ended, 5500);
        assert_eq!(team.solo_instructions(), 1500);
        assert_eq!(team.most_at_once(|_| true), 2);
        assert_eq!(team.instructions_executed(0), 5500);
    }

    #[test]
    fn waiting_thread_leaves_first_alone_until_woken() {
        let mut team = ThreadTeam::default();
        happens(&mut team, 0, ThreadAction::Began, 0);
        happens(&mut team, 1, ThreadAction::Began, 0);
        happens(&mut team, 1, ThreadAction::Called(call(128, 8, 0)), 100);
        happens(&mut team, 0, ThreadAction::Called(call(129, 8, 1)), 400);
        happens(&mut team, 0, ThreadAction::Returned(1), 400);
        happens(&mut team, 1, ThreadAction::Returned(0), 600);
        happens(&mut team, 0, ThreadAction::Ended, 1000);
        assert_eq!(team.solo_instructions(), 300);
    }

    #[test]
    fn second_end_of_a_thread_is_ignored() {
        let mut team = ThreadTeam::default();
        happens(&mut team, 0, ThreadAction::Began, 0);
        happens(&mut team, 0, ThreadAction::Ended, 10);
        happens(&mut team, 0, ThreadAction::Ended, 20);
        assert_eq!(
            (team.most_at_once(|_| true), team.instructions_executed(0)),
            (1, 20)
        );
    }

    #[test]
    fn failed_clone_does_not_count_as_thread() {
        let mut team = ThreadTeam::default();
        happens(&mut team, 0, ThreadAction::Began, 0);
        happens(&mut team, 0, clone(), 10);
        happens(&mut team, 0, ThreadAction::Returned(-11), 10);
        happens(&mut team, 0, ThreadAction::Ended, 50);
        assert_eq!(team.solo_instructions(), 50);
    }
}
