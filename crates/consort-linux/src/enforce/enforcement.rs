//! The choice, for each thread of a plan, of a nudge, a pin or neither.

use super::adherence::{AdherenceTally, CorePairs, ThreadPlace};
use super::starters::{QUIET, Starters};
use super::windows::{NudgeBudget, NudgeWindows, WindowCounts};
use super::{EnactChoice, EnactorKind};
use crate::enact::ThreadWish;
use crate::perf::record::PerfRecord;
use crate::sampling::RecordBatch;
use consort_core::{Placement, Plan, PuId, PuSet, ThreadId, Topology};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::{Duration, Instant};

/// Most threads that are looked at in one round between two plans; they take a fifth of a
/// millisecond.
const CHASED: usize = 64;

/// Position of a thread, and the facts about its process that decide on pinning.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadPosition {
    /// The CPU that the thread runs on, waits for, or ran on last.
    pub(crate) pu: PuId,
    /// True if the thread runs on `pu` or waits for it; only then does a nudge move it.
    pub(crate) runnable: bool,
    /// Time since the start of the thread's process.
    pub(crate) process_age: Duration,
    /// True if the thread is the first of a process that has others.
    pub(crate) leads_others: bool,
}

/// Places of all threads of the current plan, and the means that hold them there.
#[derive(Debug)]
pub(crate) struct Enforcement {
    choice: EnactChoice,
    budget: NudgeBudget,
    windows: NudgeWindows,
    starters: Starters,
    places: BTreeMap<ThreadId, ThreadPlace>,
    /// Threads with places by kernel thread id, by which samples name them.
    by_tid: BTreeMap<u32, ThreadId>,
    pinned: BTreeSet<ThreadId>,
    /// Threads that were out of place, or asleep, when they were last looked at.
    strays: BTreeSet<ThreadId>,
    /// The last stray that was looked at between plans.
    chased: Option<ThreadId>,
    pairs: CorePairs,
    /// Running time, ns, and share of it in place, 0 to 1, of each thread over the interval that
    /// ends.
    settled: BTreeMap<ThreadId, (f64, f64)>,
    /// Adherence of all threads with places over the run.
    pub(crate) adherence: AdherenceTally,
    /// Adherence of all pairs over the run; a lower bound.
    pub(crate) pair_adherence: AdherenceTally,
    /// Number of nudges that were put off by a bound.
    put_off: u64,
}

impl Enforcement {
    /// An enforcement without places, with the enactors that the user allows.
    pub(crate) fn new(choice: EnactChoice) -> Self {
        Self {
            choice,
            budget: NudgeBudget::new(Instant::now()),
            windows: NudgeWindows::default(),
            starters: Starters::default(),
            places: BTreeMap::new(),
            by_tid: BTreeMap::new(),
            pinned: BTreeSet::new(),
            strays: BTreeSet::new(),
            chased: None,
            pairs: CorePairs::default(),
            settled: BTreeMap::new(),
            adherence: AdherenceTally::default(),
            pair_adherence: AdherenceTally::default(),
            put_off: 0,
        }
    }

    /// Changes the enactors that may be used from now on.
    pub(crate) fn choose(&mut self, choice: EnactChoice) {
        self.choice = choice;
    }

    /// The enactor that is used first.
    pub(crate) fn kind(&self) -> EnactorKind {
        self.choice.first()
    }

    /// Threads that are pinned.
    pub(crate) fn pinned_threads(&self) -> &BTreeSet<ThreadId> {
        &self.pinned
    }

    /// Gives every thread of a plan its place; returns the threads whose place differs from the one
    /// before.
    pub(crate) fn assign(&mut self, plan: &Plan, topology: &Topology) -> BTreeSet<ThreadId> {
        let mut changed = BTreeSet::new();
        for (&id, placement) in &plan.placements {
            let differs = match placement {
                Placement::Unrestricted => self.places.remove(&id).is_some(),
                Placement::Restricted(pus) => self.place(id, pus),
            };
            if differs {
                changed.insert(id);
            }
        }
        self.by_tid = self.places.keys().map(|id| (id.tid, *id)).collect();
        let places = self.places.iter().map(|(&id, place)| (id, &place.pus));
        self.pairs = CorePairs::from_places(topology, places);
        changed
    }

    /// Notes that the plan was carried out at `now_ns` (`CLOCK_MONOTONIC`): from now on threads are
    /// expected in their places.
    pub(crate) fn note_plan_applied(&mut self, now_ns: u64) {
        let places = self.places.values_mut();
        places.for_each(|place| place.note_arrival(now_ns));
        self.note_time_passed(now_ns);
    }

    /// Notes that the threads with places have had them until `now_ns` (`CLOCK_MONOTONIC`).
    pub(crate) fn note_time_passed(&mut self, now_ns: u64) {
        self.windows.note_time_passed(self.places.len(), now_ns);
    }

    /// Takes in the nudges that were made just now, each with its window.
    pub(crate) fn add_nudge_windows(&mut self, windows: &[(ThreadId, Duration)]) {
        let now = Instant::now();
        for &(id, narrow) in windows {
            self.windows.add(id, narrow, now);
        }
    }

    /// Counts of nudges over the run.
    pub(crate) fn windows(&self) -> WindowCounts {
        self.windows.counts(self.put_off)
    }

    fn place(&mut self, id: ThreadId, pus: &PuSet) -> bool {
        match self.places.get_mut(&id) {
            Some(place) if place.pus == *pus => false,
            Some(place) => {
                place.change(pus.clone());
                true
            }
            None => {
                self.places.insert(id, ThreadPlace::new(pus.clone()));
                true
            }
        }
    }

    /// Mask that a thread is to have now: narrow where it is pinned, narrowed and widened again
    /// where it is nudged, otherwise unrestricted. `suffers` returns true if a pin would keep the
    /// thread's process from something that it may do.
    pub(crate) fn choose_wish(
        &mut self,
        id: ThreadId,
        at: Option<ThreadPosition>,
        now: Instant,
        suffers: impl FnOnce() -> bool,
    ) -> ThreadWish {
        let Some(place) = self.places.get(&id) else {
            self.pinned.remove(&id);
            self.strays.remove(&id);
            return ThreadWish::Unrestricted;
        };
        // A pinned thread that moves is set free for a quantum, and the next look finds a mask that it
        // sets then.
        let moves_on = self.pinned.contains(&id) && place.is_new();
        if !moves_on
            && self.may_pin(id, place, at, now)
            && (self.choice != EnactChoice::Auto || !suffers())
        {
            let pus = place.pus.clone();
            self.pinned.insert(id);
            self.strays.remove(&id);
            return ThreadWish::Only(pus);
        }
        self.pinned.remove(&id);
        let correction = self.choose_nudge(id, at, now);
        correction.unwrap_or(ThreadWish::Unrestricted)
    }

    /// The nudge that a thread needs now, if any.
    pub(crate) fn choose_nudge(
        &mut self,
        id: ThreadId,
        at: Option<ThreadPosition>,
        now: Instant,
    ) -> Option<ThreadWish> {
        if self.choice == EnactChoice::Only(EnactorKind::Ext) {
            return None;
        }
        let pus = &self.places.get(&id)?.pus;
        let is_in_place = at.is_some_and(|at| pus.contains(at.pu));
        let can_move = at.is_some_and(|at| at.runnable);
        if can_move && is_in_place {
            self.strays.remove(&id);
            return None;
        }
        let pus = pus.clone();
        self.strays.insert(id);
        if !can_move || is_in_place {
            return None;
        }
        if self.windows.may_narrow(id, now) && self.budget.take_nudge(now) {
            return Some(ThreadWish::Nudge(pus));
        }
        self.put_off += 1;
        Some(ThreadWish::Unrestricted)
    }

    /// The next threads that may be out of place: at most [`CHASED`] of them, each in its turn.
    pub(crate) fn next_strays(&mut self) -> Vec<ThreadId> {
        let after = self.chased.map_or(Bound::Unbounded, Bound::Excluded);
        let rest = self.strays.range((after, Bound::Unbounded));
        let next: Vec<ThreadId> = rest.take(CHASED).copied().collect();
        self.chased = next.last().copied().filter(|_| next.len() == CHASED);
        next
    }

    fn may_pin(
        &self,
        id: ThreadId,
        place: &ThreadPlace,
        at: Option<ThreadPosition>,
        now: Instant,
    ) -> bool {
        match self.choice {
            EnactChoice::Only(EnactorKind::Pin) => self.starters.starts_none(id, now),
            EnactChoice::Only(_) => false,
            EnactChoice::Auto => {
                let drifts = self.pinned.contains(&id) || place.drifts();
                // The mask of a process, as `sched_getaffinity` and `taskset -p` show it, is that of its first thread.
                let fits = |at: ThreadPosition| at.process_age >= QUIET && !at.leads_others;
                drifts && at.is_some_and(fits) && self.starters.is_worker(id, now)
            }
        }
    }

    /// Takes records in: the CPUs that threads with places ran on, and the threads that started
    /// others or became another program. Returns those among the latter that were pinned and must
    /// be set free at once.
    pub(crate) fn apply_records(
        &mut self,
        batch: &RecordBatch,
        id_of: impl Fn(u32) -> Option<ThreadId>,
        now: Instant,
    ) -> Vec<ThreadId> {
        let mut freed = Vec::new();
        for record in &batch.records {
            match record {
                PerfRecord::Sample { stamp, .. } => {
                    self.add_sample(stamp.tid, PuId(stamp.pu), stamp.time_ns);
                }
                PerfRecord::Fork(task) => {
                    freed.extend(id_of(task.parent_tid).and_then(|id| self.note_clone(id, now)));
                }
                PerfRecord::Comm { tid, exec, .. } if *exec => {
                    freed.extend(id_of(*tid).and_then(|id| self.note_exec(id, now)));
                }
                _ => {}
            }
        }
        freed
    }

    /// Notes that a thread has cloned or forked; returns it if it was pinned and must be set free.
    pub(crate) fn note_clone(&mut self, id: ThreadId, now: Instant) -> Option<ThreadId> {
        let was_pinned = self.pinned.remove(&id);
        self.starters.note_clone(id, was_pinned, now);
        was_pinned.then_some(id)
    }

    /// Notes that a thread has set its own mask: the next plan frees all of its process.
    pub(crate) fn note_own_mask(&mut self, id: ThreadId) {
        self.starters.note_own_mask(id.pid);
    }

    /// Notes that a thread has become another program; returns it if it was pinned and must be set
    /// free, which it stays where the user wants pins.
    fn note_exec(&mut self, id: ThreadId, now: Instant) -> Option<ThreadId> {
        self.starters.note_exec(id, now);
        let may_stay = self.choice == EnactChoice::Only(EnactorKind::Pin);
        (!may_stay && self.pinned.remove(&id)).then_some(id)
    }

    fn add_sample(&mut self, tid: u32, pu: PuId, time_ns: u64) {
        let id = self.by_tid.get(&tid);
        if let Some(place) = id.and_then(|id| self.places.get_mut(id)) {
            place.add_sample(pu, time_ns);
        }
    }

    /// Ends an interval of one thread that ran for `cpu_ns`; returns the time that it spent in
    /// place, ns. `None` for a thread without a place, or one that did not run or was not seen on any
    /// CPU.
    pub(crate) fn end_interval(
        &mut self,
        id: ThreadId,
        cpu_ns: f64,
        last_pu: Option<PuId>,
    ) -> Option<f64> {
        let place = self.places.get_mut(&id)?;
        let share = place.end_interval(last_pu).filter(|_| cpu_ns > 0.0)?;
        if !self.pinned.contains(&id) {
            place.remember(share);
        }
        self.adherence.add(cpu_ns, share);
        self.settled.insert(id, (cpu_ns, share));
        Some(cpu_ns * share)
    }

    /// Ends an interval of all pairs, after each of their threads.
    pub(crate) fn end_pairs_interval(&mut self) {
        let settled = std::mem::take(&mut self.settled);
        let of = |id| settled.get(&id).copied();
        self.pairs.add_interval(of, &mut self.pair_adherence);
    }

    /// Forgets a thread that has exited or was let go.
    pub(crate) fn forget(&mut self, id: ThreadId) {
        self.places.remove(&id);
        self.pinned.remove(&id);
        self.strays.remove(&id);
        self.starters.forget(id);
        self.windows.forget(id);
    }
}

#[cfg(test)]
mod tests {
    use super::super::adherence::MEMORY;
    use super::*;

    const THREAD: ThreadId = ThreadId {
        pid: 7,
        tid: 8,
        start_ticks: 1,
    };

    fn enforcement(choice: EnactChoice, pus: &str) -> Enforcement {
        let mut enforcement = Enforcement::new(choice);
        let placement = Placement::Restricted(pus.parse().unwrap());
        let plan = Plan {
            placements: BTreeMap::from([(THREAD, placement)]),
            ..Plan::default()
        };
        let topology = Topology::uniform(2, 2).unwrap();
        let changed = enforcement.assign(&plan, &topology);
        assert!(changed.contains(&THREAD));
        enforcement.note_plan_applied(0);
        assert!(enforcement.assign(&plan, &topology).is_empty());
        enforcement
    }

    fn at(pu: u32, runnable: bool, age: Duration) -> Option<ThreadPosition> {
        Some(ThreadPosition {
            pu: PuId(pu),
            runnable,
            process_age: age,
            leads_others: false,
        })
    }

    fn ordered(
        enforcement: &mut Enforcement,
        at: Option<ThreadPosition>,
        now: Instant,
    ) -> ThreadWish {
        enforcement.choose_wish(THREAD, at, now, || false)
    }

    /// Lets the thread run out of place for a number of intervals.
    fn astray(enforcement: &mut Enforcement, intervals: usize) {
        for _ in 0..intervals {
            assert_eq!(
                enforcement.end_interval(THREAD, 10.0, Some(PuId(3))),
                Some(0.0)
            );
        }
    }

    fn is_pin(wanted: &ThreadWish) -> bool {
        matches!(wanted, ThreadWish::Only(_))
    }

    #[test]
    fn only_runnable_threads_elsewhere_are_nudged() {
        let mut enforcement = enforcement(EnactChoice::Auto, "0-1");
        let now = Instant::now();
        let mut order = |pu, runnable| ordered(&mut enforcement, at(pu, runnable, QUIET), now);
        assert_eq!(order(2, true), ThreadWish::Nudge("0-1".parse().unwrap()));
        assert_eq!(order(1, true), ThreadWish::Unrestricted);
        assert_eq!(order(2, false), ThreadWish::Unrestricted);
    }

    #[test]
    fn drifting_worker_is_pinned_until_it_clones() {
        let mut enforcement = enforcement(EnactChoice::Auto, "0-1");
        let now = Instant::now();
        astray(&mut enforcement, MEMORY);
        assert!(!is_pin(&ordered(
            &mut enforcement,
            at(2, true, QUIET / 2),
            now
        )));
        assert!(is_pin(&ordered(&mut enforcement, at(2, true, QUIET), now)));
        assert!(is_pin(&ordered(&mut enforcement, at(0, false, QUIET), now)));
        assert_eq!(enforcement.note_clone(THREAD, now), Some(THREAD));
        let later = now + 3 * QUIET;
        astray(&mut enforcement, MEMORY);
        assert!(!is_pin(&ordered(
            &mut enforcement,
            at(2, true, QUIET),
            later
        )));
    }

    #[test]
    fn a_thread_that_starts_others_is_not_pinned() {
        let mut enforcement = enforcement(EnactChoice::Auto, "0-1");
        let now = Instant::now();
        enforcement.note_clone(THREAD, now);
        astray(&mut enforcement, MEMORY);
        assert!(!is_pin(&ordered(&mut enforcement, at(2, true, QUIET), now)));
        assert!(is_pin(&ordered(
            &mut enforcement,
            at(2, true, QUIET),
            now + QUIET
        )));
    }

    #[test]
    fn the_first_thread_of_several_is_not_pinned() {
        let mut enforcement = enforcement(EnactChoice::Auto, "0-1");
        astray(&mut enforcement, MEMORY);
        let mut leader = at(2, true, QUIET);
        leader.as_mut().unwrap().leads_others = true;
        assert!(!is_pin(&ordered(&mut enforcement, leader, Instant::now())));
    }

    #[test]
    fn enactor_choice_decides_on_pins() {
        let now = Instant::now();
        let mut nudges = enforcement(EnactChoice::Only(EnactorKind::Nudge), "0-1");
        astray(&mut nudges, MEMORY);
        assert!(!is_pin(&ordered(&mut nudges, at(2, true, QUIET), now)));
        let mut pins = enforcement(EnactChoice::Only(EnactorKind::Pin), "0-1");
        assert!(is_pin(&ordered(&mut pins, None, now)));
        assert!(pins.pinned_threads().contains(&THREAD));
    }

    #[test]
    fn the_bound_on_nudges_puts_some_off() {
        let mut enforcement = enforcement(EnactChoice::Auto, "0-1");
        let now = Instant::now();
        let orders = (0..5_000).map(|_| ordered(&mut enforcement, at(2, true, QUIET), now));
        let made = orders.filter(|w| matches!(w, ThreadWish::Nudge(_))).count();
        assert!(made <= 1_000 + 1, "{made}");
        assert_eq!(made as u64 + enforcement.put_off, 5_000);
    }

    #[test]
    fn harmed_process_is_pinned_only_on_request() {
        let now = Instant::now();
        let mut auto = enforcement(EnactChoice::Auto, "0-1");
        astray(&mut auto, MEMORY);
        let worker = at(2, true, QUIET);
        assert!(!is_pin(&auto.choose_wish(THREAD, worker, now, || true)));
        assert!(is_pin(&auto.choose_wish(THREAD, worker, now, || false)));
        assert!(!is_pin(&auto.choose_wish(THREAD, worker, now, || true)));
        let mut pins = enforcement(EnactChoice::Only(EnactorKind::Pin), "0-1");
        assert!(is_pin(&pins.choose_wish(THREAD, worker, now, || true)));
    }

    #[test]
    fn pinned_thread_that_moves_is_free_for_a_quantum() {
        let now = Instant::now();
        let mut pins = enforcement(EnactChoice::Only(EnactorKind::Pin), "0-1");
        assert!(is_pin(&ordered(&mut pins, at(0, true, QUIET), now)));
        let plan = Plan {
            placements: BTreeMap::from([(THREAD, Placement::Restricted("2-3".parse().unwrap()))]),
            ..Plan::default()
        };
        pins.assign(&plan, &Topology::uniform(2, 2).unwrap());
        let moved = ordered(&mut pins, at(0, true, QUIET), now);
        assert_eq!(moved, ThreadWish::Nudge("2-3".parse().unwrap()));
        assert!(pins.pinned_threads().is_empty());
        pins.note_plan_applied(1);
        assert!(is_pin(&ordered(&mut pins, at(2, true, QUIET), now)));
    }

    #[test]
    fn pinned_thread_is_freed_when_its_process_sets_a_mask() {
        let now = Instant::now();
        let mut pins = enforcement(EnactChoice::Only(EnactorKind::Pin), "0-1");
        assert!(is_pin(&ordered(&mut pins, at(0, true, QUIET), now)));
        let chooser = ThreadId { tid: 9, ..THREAD };
        pins.note_own_mask(chooser);
        let freed = ordered(&mut pins, at(0, true, QUIET), now);
        assert_eq!(freed, ThreadWish::Unrestricted);
    }
}
