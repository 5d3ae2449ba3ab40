//! Threads of a program that wait for each other: steps, locks, calls of the kernel, teams.
//!
//! *Steps.* A thread that has done its part spins for `spin_us`, then leaves its CPU (a futex
//! wait). When the last arrives, spinning threads continue at once; sleeping ones are woken by its
//! call of the kernel, from which both return.
//!
//! *Locks* whose acquisitions are events ([`super::lock`]). A thread that reaches an acquisition
//! takes the lock if it is free and holds it for as many instructions as were drawn; else it queues
//! for it, spins for `spin_us`, then sleeps. At the end of its critical section the holder hands
//! the lock to the first in the queue, which has it from then on, awake or not: first come, first
//! served. Waking it is a call of the kernel. A holder that is preempted, moved or blocked in input
//! and output keeps the lock. No critical section reaches beyond a barrier: one that the end of a
//! thread's part would cut ends there. So no thread that holds a lock waits for anything, some
//! thread can always continue, and when a program starts again its locks are free.
//!
//! *Calls.* A thread that is about to sleep, for its siblings or in input and output, spends
//! `call_cycles` in the kernel on its CPU before it leaves it. If its wait ends meanwhile, it is
//! switched out and in again at the end of its call, so that a longer call never spares it a
//! switch. A thread that wakes sleepers spends `wake_cycles` in the kernel for each of them, and
//! they can run from the call's beginning on. A thread that is taken off its CPU in a call to sleep
//! sleeps at once. If calls cost nothing, there are no instants between waking up and the work that
//! follows.
//!
//! *Teams.* A program that divides its work, and is no pipeline, gives what is left of its step to
//! the first n threads at once, as a loop that is scheduled dynamically does; the others wait for
//! the end of the step, and have no part in the following ones. A serial section is finished first.
//! A thread that is blocked, or waits for a lock or holds one, keeps what it has until the step
//! ends.

use super::Engine;
use super::calendar::after;
use super::lock::LockState;
use super::thread::{SimulatedThread, ThreadStatus};
use crate::os::PlacementReason;

/// Costs of kernel calls, cycles.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CallCosts {
    call_cycles: f64,
    wake_cycles: f64,
}

impl CallCosts {
    pub(crate) fn new(os: &crate::machine::OsCosts) -> Self {
        Self {
            call_cycles: os.call_cycles,
            wake_cycles: os.wake_cycles,
        }
    }

    fn are_none(self) -> bool {
        self.call_cycles == 0.0 && self.wake_cycles == 0.0
    }

    /// Returns the cost of a wait together with the call that ends it, cycles: among equals each
    /// thread makes as many of the one as of the other.
    pub(crate) fn wait_cycles(self) -> f64 {
        self.call_cycles + self.wake_cycles
    }
}

impl Engine {
    pub(crate) fn arrive(&mut self, t: usize) {
        self.release_lock(t);
        let p = self.threads[t].program;
        if self.threads[t].work.again {
            self.programs[p].begin_again(&mut self.threads[t], t);
            return;
        }
        let program = &mut self.programs[p];
        program.arrived += 1;
        if program.arrived == program.members.len() {
            let woken = self.begin_next_step(p);
            self.pay_for_waking(t, woken);
        } else if self.programs.repeats(p) {
            self.programs[p].begin_again(&mut self.threads[t], t);
        } else {
            let program = &mut self.programs[p];
            program.waited.set(self.calendar.now(), program.arrived);
            self.wait(t);
        }
    }

    pub(crate) fn wait(&mut self, t: usize) {
        let spin_s = self.programs[self.threads[t].program].spin_s;
        if spin_s > 0.0 {
            let thread = &mut self.threads[t];
            thread.status = ThreadStatus::Spinning(after(self.calendar.now(), spin_s));
            thread.halt(self.calendar.now());
            self.note_stop(t);
            self.calendar.note_activity();
        } else {
            self.call_to_sleep(t, None);
        }
    }

    /// Begins a program's next step or run, or ends the program. Returns the number of threads
    /// woken.
    pub(crate) fn begin_next_step(&mut self, p: usize) -> usize {
        loop {
            let program = &mut self.programs[p];
            program.arrived = 0;
            program.waited.set(self.calendar.now(), 0);
            if program
                .steps
                .begin_next(&mut program.draw, &mut program.work)
            {
                break;
            }
            if program.processes_left > 0 {
                program.processes_left -= 1;
                for t in program.members.clone() {
                    self.sleep(t, ThreadStatus::Unborn);
                    // A new process has not been anywhere.
                    self.threads[t].queue.pu = None;
                }
                continue;
            }
            program.complete(&self.threads, self.calendar.now());
            if let Some(observer) = &mut self.observer {
                let id = self.threads[program.members.start].id.program();
                observer.note_completion(id, self.calendar.now());
            }
            program.position = program.position.map(|_| 0.0);
            if self.programs.runs_once() {
                for t in self.programs[p].members.clone() {
                    self.sleep(t, ThreadStatus::Finished);
                }
                self.calendar.set_done(self.programs.are_done());
                return 0;
            }
            self.programs[p].end_repeats(&mut self.threads, self.calendar.now());
            self.calendar.set_done(self.programs.are_done());
        }
        let mut woken = 0;
        let (position, passed) = self.pass_step(p);
        for (rank, t) in self.programs[p].members.clone().enumerate() {
            let work = self.programs[p].work[rank];
            self.threads[t].work.step_left = work;
            if work > 0.0 {
                if let Some(position) = position {
                    self.join_program(t, position, passed / work);
                }
                woken += usize::from(self.release(t));
            } else {
                self.stand_by(p, t);
            }
        }
        woken
    }

    /// Moves a program's position to the end of its step. Returns the position at the beginning,
    /// and the instructions of its phases that pass.
    fn pass_step(&mut self, p: usize) -> (Option<f64>, f64) {
        let program = &mut self.programs[p];
        let passed = program.phase_instr * program.work.iter().sum::<f64>();
        let begin = program.position;
        if let Some(position) = &mut program.position {
            let cycle = self.threads[program.members.start].work.cycle;
            *position = (*position + passed) % self.phases.pass_instr(cycle);
        }
        (begin, passed)
    }

    /// Puts a thread where its program is in its phases. All threads pass through them together,
    /// whatever the part of each, and the first one through those of its serial sections.
    fn join_program(&mut self, t: usize, position: f64, pace: f64) {
        let thread = &mut self.threads[t];
        thread.halt(self.calendar.now());
        thread.work.pace = pace;
        let (phase, left) = self.phases.phase_at(thread.work.cycle, position);
        self.enter_phase(t, phase, left / pace);
    }

    /// Lets a thread without work in this step wait.
    fn stand_by(&mut self, p: usize, t: usize) {
        let program = &mut self.programs[p];
        program.arrived += 1;
        program.waited.set(self.calendar.now(), program.arrived);
        match self.threads[t].status {
            ThreadStatus::Running => self.wait(t),
            ThreadStatus::Unborn => self.threads[t].status = ThreadStatus::Waiting,
            // A thread that repeats its part.
            ThreadStatus::Ready | ThreadStatus::Paused | ThreadStatus::Io(_) => {
                self.sleep(t, ThreadStatus::Waiting);
            }
            ThreadStatus::Calling(_, Some(_)) => self.sleep(t, ThreadStatus::Waiting),
            ThreadStatus::Spinning(_)
            | ThreadStatus::Calling(_, None)
            | ThreadStatus::Waiting
            | ThreadStatus::Finished => {}
        }
    }

    /// Lets a thread that waited for its siblings continue. Returns true if it had to be woken,
    /// which costs the waking thread a kernel call as well.
    pub(crate) fn release(&mut self, t: usize) -> bool {
        let slept = matches!(
            self.threads[t].status,
            ThreadStatus::Waiting | ThreadStatus::Calling(_, None)
        );
        match self.threads[t].status {
            ThreadStatus::Spinning(_) => {
                self.threads[t].status = ThreadStatus::Running;
                self.threads[t].counters.recent.end_spin();
                self.threads[t].set_deadline(self.calendar.now());
                self.calendar.void_rates();
                self.calendar.note_activity();
            }
            ThreadStatus::Waiting => {
                self.threads[t].counters.recent.futex_returns += 1;
                self.place(t, PlacementReason::Wake);
            }
            ThreadStatus::Calling(until, None) => self.interrupt_call(t, until),
            ThreadStatus::Unborn => self.place(t, PlacementReason::Start),
            ThreadStatus::Running => self.threads[t].set_deadline(self.calendar.now()),
            ThreadStatus::Ready
            | ThreadStatus::Calling(_, Some(_))
            | ThreadStatus::Io(_)
            | ThreadStatus::Paused
            | ThreadStatus::Finished => {}
        }
        slept
    }

    pub(crate) fn reach_lock(&mut self, t: usize) {
        match self.threads[t].work.locks.place {
            LockState::Inside(_) => self.release_lock(t),
            LockState::Outside | LockState::Waiting(_) => self.acquire_lock(t),
        }
    }

    fn acquire_lock(&mut self, t: usize) {
        let p = self.threads[t].program;
        let number = self.threads[t].work.locks.draw_lock();
        let lock = &mut self.programs[p].locks[number];
        if lock.holder.is_none() {
            lock.holder = Some(t);
            self.threads[t].work.locks.enter();
        } else {
            lock.queue.push_back(t);
            lock.waited.set(self.calendar.now(), lock.queue.len());
            self.wait(t);
        }
    }

    /// Releases the lock that a thread holds, if any, and hands it to the first waiter.
    pub(crate) fn release_lock(&mut self, t: usize) {
        let p = self.threads[t].program;
        let Some(number) = self.threads[t].work.locks.leave() else {
            return;
        };
        let lock = &mut self.programs[p].locks[number];
        lock.holder = lock.queue.pop_front();
        lock.waited.set(self.calendar.now(), lock.queue.len());
        if let Some(next) = lock.holder {
            self.threads[next].work.locks.enter();
            let woken = usize::from(self.release(next));
            self.pay_for_waking(t, woken);
        }
    }

    /// Lets a thread call the kernel to sleep: for its siblings, or for `blocked_s` in input and
    /// output.
    pub(crate) fn call_to_sleep(&mut self, t: usize, blocked_s: Option<f64>) {
        let thread = &mut self.threads[t];
        if matches!(thread.status, ThreadStatus::Spinning(_)) {
            thread.counters.recent.end_spin();
        }
        let until = self.calendar.now() + thread.clock.cycles_ps(self.calls.call_cycles);
        let io_until = blocked_s.map(|s| after(until, s));
        if self.calls.are_none() {
            self.sleep(t, io_until.map_or(ThreadStatus::Waiting, ThreadStatus::Io));
            return;
        }
        thread.halt(self.calendar.now());
        thread.status = ThreadStatus::Calling(until, io_until);
        self.note_stop(t);
        self.calendar.note_activity();
    }

    /// Lets a thread that spins or is calling the kernel to sleep do so at once. Returns true if it
    /// did.
    pub(crate) fn sleep_at_once(&mut self, t: usize) -> bool {
        let asleep = self.threads[t].sleep_status();
        if let Some(status) = asleep {
            self.sleep(t, status);
        }
        asleep.is_some()
    }

    /// Ends the wait of a thread that is still calling the kernel to sleep: the call returns at its
    /// end, at the cost of a switch.
    pub(crate) fn interrupt_call(&mut self, t: usize, until: u64) {
        let thread = &mut self.threads[t];
        let switch_ps = thread.clock.cycles_ps(self.chip.spec().os.switch_cycles);
        thread.status = ThreadStatus::Running;
        thread.counters.recent.futex_returns += 1;
        thread.clock.kernel_until = None;
        thread.clock.debt_until = self.calendar.now();
        thread.stay_in_kernel(
            self.calendar.now(),
            until.saturating_sub(self.calendar.now()) + switch_ps,
        );
        self.calendar.void_rates();
        self.calendar.note_activity();
    }

    /// Charges a thread for the call by which it has woken so many siblings.
    pub(crate) fn pay_for_waking(&mut self, t: usize, woken: usize) {
        if woken == 0 {
            return;
        }
        let thread = &mut self.threads[t];
        let ps = woken as u64 * thread.clock.cycles_ps(self.calls.wake_cycles);
        thread.counters.recent.futex_returns += 1;
        match &mut thread.status {
            ThreadStatus::Running if ps > 0 => {
                thread.stay_in_kernel(self.calendar.now(), ps);
                self.calendar.note_activity();
                return;
            }
            // It has no work in the next step: it wakes the others, then waits.
            ThreadStatus::Calling(until, _) | ThreadStatus::Spinning(until) => *until += ps,
            _ => {}
        }
        thread.counters.recent.user_returns += 1;
    }

    /// Lets `n` threads of a program share its work, at least one and at most all. Programs that
    /// are not malleable keep the threads that they have.
    pub(crate) fn set_team(&mut self, p: usize, n: usize) {
        let program = &mut self.programs[p];
        let serial = program.steps.is_serial();
        if program.steps.resize(n) && program.begun && !serial {
            self.share_out(p);
        }
        let progress = self.programs[p].steps.progress;
        for t in self.programs[p].members.clone() {
            let now = self.calendar.now();
            let thread = &mut self.threads[t];
            thread.halt(now);
            thread.clock.progress = progress;
            thread.set_deadline(now);
        }
        self.calendar.void_rates();
    }

    fn share_out(&mut self, p: usize) {
        let free = |thread: &SimulatedThread| {
            !matches!(
                thread.status,
                ThreadStatus::Calling(_, Some(_)) | ThreadStatus::Io(_) | ThreadStatus::Finished
            ) && thread.work.locks.place == LockState::Outside
                && !thread.work.again
        };
        let members = self.programs[p].members.clone();
        let mut left = 0.0;
        for t in members
            .clone()
            .filter(|&t| free(&self.threads[t]))
            .collect::<Vec<_>>()
        {
            let thread = &mut self.threads[t];
            thread.halt(self.calendar.now());
            left += thread.work.step_left;
        }
        let team = self.programs[p].steps.team();
        let takers = members.clone().take(team);
        let takers = takers.filter(|&t| free(&self.threads[t])).count();
        // What no thread can take stays where it is until the step ends.
        if left <= 0.0 || takers == 0 {
            return;
        }
        let each = left / takers as f64;
        for (rank, t) in members.enumerate() {
            if free(&self.threads[t]) {
                let work = if rank < team { each } else { 0.0 };
                self.assign_work(p, t, work);
            }
        }
    }

    fn assign_work(&mut self, p: usize, t: usize, work: f64) {
        let thread = &mut self.threads[t].work;
        let before = std::mem::replace(&mut thread.step_left, work);
        let had = before > 0.0;
        // It still passes through the phases of the rest of its step.
        if had && work > 0.0 && self.programs[p].position.is_some() {
            thread.set_pace(thread.pace * before / work);
        }
        match (had, work > 0.0) {
            (false, true) => {
                self.programs[p].arrived -= 1;
                self.release(t);
            }
            (true, false) => {
                self.programs[p].arrived += 1;
                match self.threads[t].status {
                    ThreadStatus::Running => self.wait(t),
                    ThreadStatus::Ready | ThreadStatus::Paused => {
                        self.sleep(t, ThreadStatus::Waiting);
                    }
                    _ => {}
                }
            }
            _ => self.threads[t].set_deadline(self.calendar.now()),
        }
        let arrived = self.programs[p].arrived;
        self.programs[p].waited.set(self.calendar.now(), arrived);
    }
}

#[cfg(test)]
mod tests {
    use crate::engine::RunMode;
    use crate::engine::calendar::{PS_PER_MS, seconds};
    use crate::engine::testing::{engine, instances, program_with};
    use proptest::prelude::*;

    const PLAIN: &str = "[threads]\ndefault = 4\nmax = 8\nspin_us = 5.0";
    const BARRIERS: &str = "[threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\nserial_share = 0.05\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }";
    const LOCKS: &str = "[io]\nper_ginstr = 500.0\nblocked_us = 40.0\n\
        [threads]\ndefault = 4\nmax = 8\nspin_us = 5.0\n\
        barrier = { spacing_minstr = 0.5, imbalance = 0.2 }\n\
        lock = { per_minstr = 5.0, hold_instr = 20000.0, count = 1 }";

    /// Seconds that four threads take when `team` of them share the work from the beginning.
    fn time(spec: &str, team: usize) -> f64 {
        let work = instances(&program_with(spec), 1, 4, 0.1);
        let mut engine = engine("linux", RunMode::Once, &work, 1);
        engine.set_team(0, team);
        engine.run_until(100_000 * PS_PER_MS);
        assert!(engine.is_done());
        seconds(engine.now_ps())
    }

    #[test]
    fn smaller_team_takes_proportionally_longer() {
        let even = BARRIERS.replace("imbalance = 0.2", "imbalance = 0.0");
        for (spec, serial) in [(PLAIN, 0.0), (&even, 0.05)] {
            let amdahl = |n: usize| serial + (1.0 - serial) / n as f64;
            let four = time(spec, 4);
            for team in 1..4 {
                let (ratio, expected) = (time(spec, team) / four, amdahl(team) / amdahl(4));
                assert!((ratio / expected - 1.0).abs() < 0.02, "{team}: {ratio}");
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn teams_and_pauses_keep_total_work(
            turns in prop::collection::vec((1u64..400, 1usize..7, any::<bool>()), 1..60),
            threads in 2u32..7,
            spec in prop::sample::select(vec![PLAIN, BARRIERS, LOCKS]),
        ) {
            let work = instances(&program_with(spec), 1, threads, 0.02);
            let mut engine = engine("linux", RunMode::Once, &work, 1);
            let mut now = 0;
            for (us, team, paused) in turns {
                engine.set_team(0, team);
                engine.set_paused(0, paused);
                now += us * PS_PER_MS / 1000;
                engine.run_until(now);
            }
            engine.set_paused(0, false);
            engine.run_until(now + 10_000 * PS_PER_MS);
            prop_assert!(engine.is_done());
            let done = engine.results()[0].instructions;
            prop_assert!((done / 0.02e9 - 1.0).abs() < 1e-9, "{}", done);
        }
    }
}
