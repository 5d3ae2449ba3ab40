//! The operating system: its model, and the queues of CPUs that only it changes.

use super::calendar::{NEVER, PS_PER_MS, after, to_signed};
use super::draw::{Purpose, RandomStream};
use super::logical::LogicalMap;
use super::pu::PuState;
use super::relearn::relearn;
use super::simulated_program::{EngineError, SimulationSettings};
use super::thread::{SimulatedThread, TIMER_PS, ThreadStatus};
use crate::chip::Chip;
use crate::os::{self, OsModel, OsTopology, OsView, PlacementReason};

/// The scheduler, the CPUs that it sees, and where on the chip those are.
pub(crate) struct SimulatedKernel {
    os: Box<dyn OsModel>,
    shape: OsTopology,
    map: LogicalMap,
    pus: Vec<PuState>,
    slice_ps: u64,
    /// True if a thread has come to a CPU or left it since the last tick was set.
    loads_changed: bool,
}

/// The operating system's view; a function of the parts, so that its model can be borrowed mutably
/// at the same time.
fn view<'a>(
    shape: &'a OsTopology,
    pus: &'a [PuState],
    threads: &'a [SimulatedThread],
    now_ps: u64,
) -> OsView<'a> {
    OsView {
        shape,
        pus,
        threads,
        homes: &[],
        now_ps,
        hot_ps: 0,
    }
}

/// Instant of a CPU's timer interrupts in their period, ps: those of all CPUs are spread over half
/// of it (Linux, kernel/time/tick-sched.c, `tick_setup_sched_timer`: 2.6.21 to 2.6.34 always, later
/// kernels with `skew_tick=1`).
fn tick_offset(pu: usize, pus: usize) -> u64 {
    TIMER_PS / 2 / pus as u64 * pu as u64
}

impl SimulatedKernel {
    pub(crate) fn new(chip: &Chip, settings: &SimulationSettings) -> Result<Self, EngineError> {
        let n = chip.places().len();
        Ok(Self {
            os: os::build(
                &settings.os,
                RandomStream::new(settings.seed, Purpose::Os, 0, 0),
                settings.seed,
            )?,
            shape: match settings.logical_cores {
                true => OsTopology::from_logical_cores(chip),
                false => OsTopology::from_chip(chip),
            },
            map: LogicalMap::identity(n),
            pus: (0..n).map(|pu| PuState::new(tick_offset(pu, n))).collect(),
            slice_ps: after(0, chip.spec().os.slice_ms * 1e-3).max(1),
            loads_changed: false,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.pus.len()
    }

    /// First timer interrupt of a CPU, ps.
    pub(crate) fn first_tick(&self, pu: usize) -> u64 {
        TIMER_PS + tick_offset(pu, self.pus.len())
    }

    pub(crate) fn physical_pu(&self, pu: usize) -> usize {
        self.map.physical_pu(pu)
    }

    pub(crate) fn set_map(&mut self, map: LogicalMap) {
        self.map = map;
    }

    pub(crate) fn current_thread(&self, pu: usize) -> Option<usize> {
        self.pus[pu].current
    }

    /// The CPUs of the chip that are in use, and the threads on them, in the order of the operating
    /// system's CPUs.
    pub(crate) fn occupied_pus(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let on = |(pu, state): (usize, &PuState)| Some((self.map.physical_pu(pu), state.current?));
        self.pus.iter().enumerate().filter_map(on)
    }

    /// The same in the order of the chip's CPUs.
    pub(crate) fn occupied_pus_in_order(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let on = |pu| Some((pu, self.pus[self.map.logical_pu(pu)].current?));
        (0..self.len()).filter_map(on)
    }

    pub(crate) fn shares_core(&self, chip: &Chip, thread: &SimulatedThread) -> bool {
        let core = |pu: usize| chip.places()[self.map.physical_pu(pu)].core;
        let Some(own) = thread.queue.pu else {
            return false;
        };
        let mut others = (0..self.len()).filter(|&pu| pu != own && core(pu) == core(own));
        others.any(|pu| self.pus[pu].current.is_some())
    }

    pub(crate) fn next_event(&self) -> u64 {
        self.pus.iter().map(|pu| pu.slice_end).fold(NEVER, u64::min)
    }

    pub(crate) fn expired_thread(&self, pu: usize, now: u64) -> Option<usize> {
        let state = &self.pus[pu];
        state.current.filter(|_| state.slice_end <= now)
    }

    /// Returns the start of the slice of a thread that is on a CPU, ps, if others wait there.
    pub(crate) fn slice_since(&self, t: usize, pu: usize) -> Option<u64> {
        let pu = &self.pus[pu];
        (pu.current == Some(t) && !pu.queue.is_empty()).then_some(pu.slice_since)
    }

    /// Lets the next thread of a free CPU continue the slice that began at an instant, ps.
    pub(crate) fn carry_slice(&mut self, pu: usize, since: u64) {
        if self.pus[pu].current.is_none() {
            self.pus[pu].carried = Some(since);
        }
    }

    pub(crate) fn has_queued(&self) -> bool {
        self.pus.iter().any(|pu| !pu.queue.is_empty())
    }

    pub(crate) fn choose(
        &mut self,
        threads: &[SimulatedThread],
        t: usize,
        why: PlacementReason,
    ) -> usize {
        self.os
            .choose_pu(&view(&self.shape, &self.pus, threads, 0), t, why)
    }

    pub(crate) fn pull_thread(
        &mut self,
        threads: &[SimulatedThread],
        (pu, now): (usize, u64),
    ) -> Option<usize> {
        self.os
            .pull_thread(&view(&self.shape, &self.pus, threads, now), pu)
    }

    pub(crate) fn balance_move(
        &mut self,
        threads: &[SimulatedThread],
        ms: u64,
    ) -> Option<(usize, usize)> {
        self.os
            .balance_move(&view(&self.shape, &self.pus, threads, ms * PS_PER_MS), ms)
    }

    /// The next instant after `ms` at which it evens out load, ps; never while there is nothing to
    /// even out.
    pub(crate) fn next_tick(&self, threads: &[SimulatedThread], ms: u64) -> u64 {
        let view = view(&self.shape, &self.pus, threads, ms * PS_PER_MS);
        let next = self.os.next_balance_ms(&view, ms);
        next.map_or(NEVER, |ms| ms * PS_PER_MS)
    }

    /// True once after the number of runnable threads of a CPU has changed, however often it did.
    pub(crate) fn take_load_change(&mut self) -> bool {
        std::mem::take(&mut self.loads_changed)
    }

    pub(crate) fn deal_threads(&mut self, threads: &[SimulatedThread]) -> Vec<(usize, usize)> {
        let deal = self
            .os
            .deal_threads(&view(&self.shape, &self.pus, threads, 0));
        let moved = |(t, pu): &(usize, usize)| threads[*t].queue.pu != Some(*pu);
        deal.into_iter().filter(moved).collect()
    }

    pub(crate) fn put(
        &mut self,
        threads: &mut [SimulatedThread],
        t: usize,
        (pu, why): (usize, PlacementReason),
        now: u64,
    ) {
        let from = threads[t].queue.pu.filter(|&from| from != pu);
        for at in from.into_iter().chain([pu]) {
            self.pus[at].note_least(threads, now);
        }
        let thread = &mut threads[t];
        let least = self.pus[pu].least_ps;
        if let Some(from) = from {
            thread.queue.vruntime_ps += least - self.pus[from].least_ps;
        }
        let bonus = match why {
            PlacementReason::Start => 0,
            PlacementReason::Wake | PlacementReason::Moved => to_signed(self.slice_ps),
        };
        thread.queue.vruntime_ps = thread.queue.vruntime_ps.max(least - bonus);
        thread.counters.recent.migrations += u64::from(from.is_some());
        thread.queue.pu = Some(pu);
        thread.status = ThreadStatus::Ready;
        self.loads_changed = true;
        self.pus[pu].queue.push_back(t);
        self.pus[pu].arm(self.slice_ps, now);
    }

    /// Lets a woken thread preempt the current one if fairness requires it.
    pub(crate) fn preempt(&mut self, threads: &[SimulatedThread], t: usize, pu: usize, now: u64) {
        self.pus[pu].preempt(threads, t, (now, self.slice_ps));
    }

    pub(crate) fn take_next(&mut self, threads: &[SimulatedThread], pu: usize) -> Option<usize> {
        let pu = &mut self.pus[pu];
        let next = pu.current.is_none().then(|| pu.take_next(threads));
        next.flatten()
    }

    pub(crate) fn begin(&mut self, pu: usize, (t, thread): (usize, &SimulatedThread), now: u64) {
        self.pus[pu].begin(t, thread.counters.branches(), now);
        self.pus[pu].arm(self.slice_ps, now);
    }

    pub(crate) fn charge(&mut self, threads: &mut [SimulatedThread], pu: usize, now: u64) {
        self.pus[pu].charge(threads, now);
    }

    pub(crate) fn remove(
        &mut self,
        chip: &Chip,
        (t, thread): (usize, &mut SimulatedThread),
        now: u64,
    ) {
        let Some(pu) = thread.queue.pu.map(|pu| &mut self.pus[pu]) else {
            return;
        };
        self.loads_changed = true;
        if pu.current == Some(t) {
            relearn(thread, chip, pu.branches, &mut pu.overwritten);
            if pu.since < now {
                thread.queue.ran_until = now;
            }
            pu.current = None;
            pu.idle_since = now;
            pu.last = Some(t);
        } else {
            pu.queue.retain(|&queued| queued != t);
        }
        pu.arm(self.slice_ps, now);
    }
}
