//! The fixed point over all shared structures, and the rates that follow from it.
//!
//! If the iteration does not settle, its last state is brought within every capacity: its parts are
//! of different iterations, so together they may claim more than a core or a memory has. Each
//! thread that takes part in an overload is slowed down by its size; that lightens every other load
//! as well, so one pass is enough.

use super::buffers::Pressure;
use super::caches::{CacheStream, divide};
use super::claims::RESOURCES;
use super::claims::ResourceShares;
use super::dispatch::LossShares;
use super::layout::{CacheUser, SharedCache, SharedStructures};
use super::pipeline::CycleTerms;
use super::stations::{Visitor, wait};
use super::thread_setting::{KnownPhases, ThreadSetting};
use super::twins::RepresentativeThreads;
use super::types::{
    CpiStack, InstructionActivity, LockQueue, RunningThread, Solution, ThreadRates,
};
use crate::chip::{Chip, KIB};
use crate::program::CURVE_KIB;
use guess::{CorePace, Guess};
use shares::LinesInFlight;
use std::sync::Arc;

mod guess;
mod predictors;
mod shares;

/// Relative change of every rate below which the iteration has converged.
const TOLERANCE: f64 = 1e-6;
/// Change below which a core rests until the others have come as far.
const SETTLED: f64 = 0.5 * TOLERANCE;
const MOST_ITERATIONS: u32 = 1000;
/// Iteration from which no error is extrapolated.
const PLAIN_FROM: u32 = MOST_ITERATIONS / 2;
/// Share of the new value in each step, at first.
const STEP: f64 = 0.9;
/// Iterations after which the step is halved where the change has hardly fallen: the set
/// oscillates. A change that falls slowly is no oscillation, and smaller steps would slow it down.
const PATIENCE: u32 = 20;
/// Share of the change that is left after so many iterations where it has hardly fallen.
const HARDLY: f64 = 0.9;
/// Steps are not made smaller than this; from there on more of them help, not smaller ones.
const SMALLEST_STEP: f64 = 0.05;

/// Solves sets of running threads on one chip.
#[derive(Clone, Debug)]
pub struct Solver {
    chip: Arc<Chip>,
}

impl Solver {
    /// A solver for a chip.
    pub fn new(chip: Arc<Chip>) -> Self {
        Self { chip }
    }

    /// The chip.
    pub fn chip(&self) -> &Chip {
        &self.chip
    }

    /// Use of the fullest resource of each thread's core, 1 if it is full: dispatch slots, turns of
    /// fetch, ports that its threads share.
    pub fn core_use(&self, running: &[RunningThread<'_>], solution: &Solution) -> Vec<f64> {
        let sharing = SharedStructures::new(&self.chip, &mut KnownPhases::default(), running);
        let mut rates = vec![ThreadRates::default(); sharing.settings.len()];
        for (&at, thread) in sharing.twins.of.iter().zip(&solution.threads) {
            rates[at] = *thread;
        }
        sharing.twins.spread(&core_loads(&sharing, &rates))
    }

    /// The rates of all running threads.
    ///
    /// The order of `running` decides nothing but the order of the answer. A thread alone runs at
    /// its ST rate. If the iteration does not settle, `converged` is false and the last state is
    /// given, which still respects every capacity.
    pub fn solve(&self, running: &[RunningThread<'_>]) -> Solution {
        self.solve_with(&mut KnownPhases::default(), running)
    }

    /// The same, with what is known of the phases from sets before.
    pub(crate) fn solve_with(
        &self,
        known: &mut KnownPhases,
        running: &[RunningThread<'_>],
    ) -> Solution {
        let sharing = SharedStructures::new(&self.chip, known, running);
        let mut state = SolverState::new(&sharing);
        let (residual, iterations) = state.iterate(&sharing);
        let mut solution = state.solution(&sharing, &self.chip, residual, iterations);
        if !solution.converged {
            restrain(&self.chip, &sharing, &mut solution);
        }
        solution.threads = sharing.twins.spread(&solution.threads);
        solution
    }
}

/// The iteration's state.
struct SolverState<'a> {
    guess: Vec<Guess>,
    next: Vec<Guess>,
    /// Pace of each core.
    paces: Vec<CorePace>,
    /// True for each thread that rests: nothing changes on its core any more, as far as is known.
    rests: Vec<bool>,
    held: Vec<ResourceShares>,
    terms: Vec<CycleTerms>,
    /// Instructions per cycle while active.
    rate: Vec<f64>,
    /// Cycles per instruction that co-runners take of dispatch and that cost nothing.
    absorbed: Vec<f64>,
    /// Queue that each thread's acquisitions of locks meet.
    locks: Vec<LockQueue>,
    /// Time per instruction without queueing and locks, s.
    unqueued_s: Vec<f64>,
    /// Wait at each station, s.
    waits: Vec<f64>,
    /// Eviction age of each cache, s, once known.
    ages: Vec<Option<f64>>,
    /// Streams into each cache.
    streams: Vec<Vec<CacheStream<'a>>>,
    /// Memory for what each stream of a cache holds.
    bytes: Vec<f64>,
    /// Memory for the visitors of a station.
    visitors: Vec<Visitor>,
    /// Memory for the pressures on a window.
    pressures: Vec<Pressure>,
    /// Memory for the lines that the threads of a core have on their way.
    flights: Vec<LinesInFlight>,
}

impl<'a> SolverState<'a> {
    fn new(sharing: &SharedStructures<'a>) -> Self {
        let n = sharing.settings.len();
        let mut state = Self {
            guess: vec![Guess::default(); n],
            next: vec![Guess::default(); n],
            paces: vec![CorePace::default(); sharing.cores.len()],
            rests: vec![false; n],
            held: sharing.settings.iter().map(initial_shares).collect(),
            terms: vec![CycleTerms::default(); n],
            rate: vec![0.0; n],
            absorbed: vec![0.0; n],
            locks: vec![LockQueue::default(); n],
            unqueued_s: vec![0.0; n],
            waits: vec![0.0; sharing.stations.len()],
            ages: vec![None; sharing.caches.len()],
            streams: streams(sharing),
            bytes: Vec::new(),
            visitors: Vec::new(),
            pressures: Vec::new(),
            flights: Vec::new(),
        };
        state.set_first_guess(sharing);
        state
    }

    /// Begins with every thread as if it were alone on the chip.
    fn set_first_guess(&mut self, sharing: &SharedStructures<'_>) {
        for cache in &sharing.caches {
            for user in &cache.users {
                let lines = sharing.settings[user.thread].misses.lines(user.code);
                let bytes = cache.bytes / lines.space;
                self.set_held_bytes((cache.level, cache.part), user.thread, user.code, bytes);
            }
        }
        for (i, setting) in sharing.settings.iter().enumerate() {
            let terms = setting.terms(&self.held[i]);
            let cpi = terms.active + terms.stall;
            self.guess[i] = Guess {
                time_s: cpi / setting.hz,
                active: terms.active / cpi,
                waits: terms.memory / cpi,
                prefetching: self.held[i].prefetching,
                in_flight: terms.in_flight,
                window_need: terms.window_need,
                ready_age: terms.ready_age,
                backed_up: terms.backed_up,
                ..Guess::default()
            };
            self.terms[i] = terms;
            self.rate[i] = 1.0 / terms.active;
        }
    }

    /// Notes what a thread holds, in bytes of its curve; longer lines than the curve's take more
    /// bytes of the cache. Levels that a chip lacks hold nothing; misses fall with the largest
    /// level below.
    fn set_held_bytes(&mut self, (level, part): (usize, usize), i: usize, code: bool, bytes: f64) {
        let held = &mut self.held[i];
        if code && level == 0 {
            held.code_l1i[part] = bytes;
        } else if code {
            held.code[level] = bytes;
        } else {
            held.data[level] = bytes;
        }
    }

    /// Iterates until nothing changes any more, or for too long. The largest change of a rate in
    /// the last pass, in which no core rested, and the number of iterations.
    fn iterate(&mut self, sharing: &SharedStructures<'_>) -> (f64, u32) {
        let (mut residual, mut before) = (f64::INFINITY, f64::INFINITY);
        let mut step = STEP;
        for iterations in 1..=MOST_ITERATIONS {
            if iterations == PLAIN_FROM {
                self.paces
                    .iter_mut()
                    .for_each(|pace| pace.extrapolates = false);
            }
            let is_whole = self.wake(iterations == MOST_ITERATIONS);
            self.update(sharing);
            residual = self.step(step, sharing);
            if is_whole && residual <= TOLERANCE {
                return (residual, iterations);
            }
            if iterations.is_multiple_of(PATIENCE) {
                if residual > HARDLY * before {
                    step = (0.5 * step).max(SMALLEST_STEP);
                }
                before = residual;
            }
        }
        (residual, MOST_ITERATIONS)
    }

    /// Wakes all cores once all rest, to see whether they disturb each other, or if `now`; true if
    /// none rests.
    fn wake(&mut self, now: bool) -> bool {
        if now || self.rests.iter().all(|&rests| rests) {
            self.rests.fill(false);
        }
        !self.rests.contains(&true)
    }

    /// One pass over every shared structure that has a user on a core that does not rest.
    fn update(&mut self, sharing: &SharedStructures<'_>) {
        for (at, cache) in sharing.caches.iter().enumerate() {
            if cache.users.iter().any(|user| !self.rests[user.thread]) {
                self.divide_cache(at, cache, sharing);
            }
        }
        predictors::share_predictors(self, sharing);
        self.divide_windows(sharing);
        self.queue_for_units(sharing);
        self.share_dividers(sharing);
        self.divide_miss_queues(sharing);
        for (i, setting) in sharing.settings.iter().enumerate() {
            if !self.rests[i] {
                self.held[i].pace = 1.0 / self.rate[i];
                self.terms[i] = setting.terms(&self.held[i]);
            }
        }
        self.dispatch(sharing);
        self.queue_for_stations(sharing);
        self.update_guess(sharing);
        self.queue_for_locks(sharing);
    }

    fn divide_cache(&mut self, at: usize, cache: &SharedCache, sharing: &SharedStructures<'_>) {
        for (user, stream) in cache.users.iter().zip(&mut self.streams[at]) {
            let demand = sharing.settings[user.thread].demand;
            let speed = 1.0 / self.guess[user.thread].time_s;
            stream.speed = if user.code {
                speed
            } else {
                speed * demand.intensity
            };
        }
        let mut held = core::mem::take(&mut self.bytes);
        let streams = &mut self.streams[at];
        divide(cache.bytes, streams, &mut self.ages[at], &mut held);
        for (user, &bytes) in cache.users.iter().zip(&held) {
            let lines = sharing.settings[user.thread].misses.lines(user.code);
            // A thread that is charged for a part of what it holds could otherwise hold more than
            // there is, if the siblings that pay the rest are slower.
            let most = if user.charge < 1.0 {
                cache.bytes / lines.space
            } else {
                f64::INFINITY
            };
            self.set_held_bytes(
                (cache.level, cache.part),
                user.thread,
                user.code,
                bytes.min(most),
            );
        }
        self.bytes = held;
    }

    fn queue_for_stations(&mut self, sharing: &SharedStructures<'_>) {
        for (at, shared) in sharing.stations.iter().enumerate() {
            let mut visitors = core::mem::take(&mut self.visitors);
            visitors.clear();
            let each = shared.visitors.iter();
            visitors.extend(each.map(|&i| self.visitor(sharing, at, i)));
            self.waits[at] = wait(&shared.station, &visitors);
            self.visitors = visitors;
        }
    }

    fn visitor(&self, sharing: &SharedStructures<'_>, at: usize, i: usize) -> Visitor {
        let others = self.queue_s(sharing, i) - self.waits[at] * self.terms[i].felt_lines;
        let misses = &self.terms[i].misses;
        let shared = &sharing.stations[at];
        let read = (misses.lines - misses.written) * shared.slots_per_read;
        let between = if shared.carries_llc {
            misses.data[2] - misses.data[3]
        } else {
            0.0
        };
        Visitor {
            time_s: self.unqueued_s[i] + self.guess[i].lock_s + others.max(0.0),
            lines: (read + misses.written + between) * sharing.twins.times[i],
            felt: self.terms[i].felt_lines,
        }
    }

    /// Time per instruction that a thread waits at stations, s.
    fn queue_s(&self, sharing: &SharedStructures<'_>, i: usize) -> f64 {
        let waits = sharing.visits[i].iter().map(|&at| self.waits[at]);
        waits.map(|wait| wait * self.terms[i].felt_lines).sum()
    }

    /// Time that a line of a thread waits at stations, s.
    fn line_wait_s(&self, sharing: &SharedStructures<'_>, i: usize) -> f64 {
        sharing.visits[i].iter().map(|&at| self.waits[at]).sum()
    }

    fn update_guess(&mut self, sharing: &SharedStructures<'_>) {
        for (i, setting) in sharing.settings.iter().enumerate() {
            if self.rests[i] {
                continue;
            }
            let queue = self.queue_s(sharing, i);
            let lock_s = self.guess[i].lock_s;
            let time_s = self.unqueued_s[i] + queue + lock_s;
            let terms = &self.terms[i];
            let memory = terms.memory / setting.hz + queue;
            let cycles = setting.hz * time_s;
            let active = 1.0 / (self.rate[i] * cycles);
            let resolving = terms.resolving - self.absorbed[i];
            let wrong_path = resolving.min(terms.wrong_path) / cycles;
            let wrong_path = wrong_path.min(1.0 - active).max(0.0);
            let refills = (terms.branch - terms.resolving) / cycles;
            // A wrong path fills the window until it is full, and then stays there.
            let filled = (resolving - 0.5 * wrong_path * cycles).max(0.0);
            let filled =
                (filled / (setting.hz * (time_s - memory)).max(f64::MIN_POSITIVE)).min(1.0);
            let rest = setting.window.alone - terms.in_flight;
            self.next[i] = Guess {
                time_s,
                active,
                waits: memory / time_s,
                wrong_path,
                refills: refills.min(1.0 - active - wrong_path).max(0.0),
                lock_s,
                strangers: self.held[i].strangers,
                prefetching: self.held[i].prefetching,
                in_flight: terms.in_flight + filled * rest.max(0.0),
                window_need: terms.window_need,
                ready_age: terms.ready_age,
                backed_up: terms.backed_up,
            };
        }
    }

    /// Moves the guess towards the new one; the largest relative change of a rate.
    fn step(&mut self, share: f64, sharing: &SharedStructures<'_>) -> f64 {
        let mut residual: f64 = 0.0;
        for (members, pace) in sharing.cores.iter().zip(&mut self.paces) {
            if self.rests[members[0]] {
                continue;
            }
            let changes = members.iter().map(|&i| self.guess[i].change(&self.next[i]));
            let share = pace.next_share(share, changes);
            residual = residual.max(pace.largest);
            for &i in members {
                self.guess[i].approach(&self.next[i], share);
                self.rests[i] = pace.largest <= SETTLED;
            }
        }
        residual
    }
}

/// The streams into each cache, at no speed yet.
fn streams<'a>(sharing: &SharedStructures<'a>) -> Vec<Vec<CacheStream<'a>>> {
    let stream = |user: &CacheUser| {
        let setting = &sharing.settings[user.thread];
        CacheStream {
            curve: if user.code {
                setting.misses.code_curve
            } else {
                setting.misses.data_curve
            },
            speed: 0.0,
            charge: user.charge * user.times * setting.misses.lines(user.code).space,
            step: 0,
        }
    };
    let caches = sharing.caches.iter();
    caches
        .map(|cache| cache.users.iter().map(stream).collect())
        .collect()
}

/// Code that fits the smallest cache has no stream beyond the L1: it is simply there.
fn initial_shares(setting: &ThreadSetting<'_>) -> ResourceShares {
    let fits = setting.misses.code_curve.is_flat_zero();
    let small = if fits { CURVE_KIB[0] * KIB } else { 0.0 };
    ResourceShares {
        code: [0.0, small, small, small],
        window: setting.window.alone,
        issue: f64::INFINITY,
        misses: f64::from(setting.core.outstanding_misses),
        queues: [f64::INFINITY; 2],
        prefetching: 1.0,
        ..ResourceShares::default()
    }
}

#[cfg(test)]
mod tests;

impl SolverState<'_> {
    pub(super) fn solution(
        &self,
        sharing: &SharedStructures<'_>,
        chip: &Chip,
        residual: f64,
        iterations: u32,
    ) -> Solution {
        let losses = self.losses(sharing).into_iter().enumerate();
        let threads = losses.map(|(i, lost)| self.thread_rates(sharing, i, lost));
        let utilisation = |at: usize| sharing.stations[at].station.utilisation(self.waits[at]);
        let nodes = chip.domains().nodes;
        let packages = chip.domains().packages;
        Solution {
            threads: threads.collect(),
            converged: residual <= TOLERANCE,
            residual: if residual.is_finite() { residual } else { 0.0 },
            iterations,
            memory_utilisation: (0..nodes).map(utilisation).collect(),
            interconnect_utilisation: (nodes..nodes + packages).map(utilisation).collect(),
        }
    }

    fn thread_rates(
        &self,
        sharing: &SharedStructures<'_>,
        i: usize,
        lost: LossShares,
    ) -> ThreadRates {
        let setting = &sharing.settings[i];
        let (terms, held, next) = (&self.terms[i], &self.held[i], &self.next[i]);
        let stack = CpiStack {
            base: terms.base,
            units: terms.units,
            fetch: terms.fetch,
            branch: terms.branch,
            l2: terms.l2,
            llc: terms.llc,
            memory: terms.memory,
            queue: self.queue_s(sharing, i) * setting.hz,
            tlb: terms.tlb,
            window: terms.window,
            dispatch: 1.0 / self.rate[i] - terms.active - self.absorbed[i],
            lock: next.lock_s * setting.hz,
        };
        let cpi = stack.total();
        let held_bytes = |level: usize| held.data[level] * setting.misses.data_lines.space;
        ThreadRates {
            ips: setting.hz / cpi,
            cpi,
            stack,
            flow: InstructionActivity {
                lost_fetch_cycles: stack.dispatch * lost.fetch,
                lost_port_cycles: stack.dispatch * lost.ports,
                ..instruction_activity(
                    setting,
                    terms,
                    cpi,
                    held.window,
                    self.line_wait_s(sharing, i) * setting.hz,
                )
            },
            window: held.window,
            mlp: terms.mlp,
            l1d_bytes: held_bytes(0),
            l2_bytes: held_bytes(1),
            llc_bytes: held_bytes(2),
            lock: self.locks[i],
        }
    }
}

/// `line_wait`: cycles that a line waits at stations.
fn instruction_activity(
    setting: &ThreadSetting<'_>,
    terms: &CycleTerms,
    cpi: f64,
    window: f64,
    line_wait: f64,
) -> InstructionActivity {
    let misses = &terms.misses;
    let data_lines = misses.demand + misses.prefetched;
    let mix = &setting.demand.phase.spec.mix;
    let of_llc = f64::from(u8::from(setting.latencies.has_llc));
    // A fetch group that misses the L1I looks in the L2 as data does.
    debug_assert!(!setting.window.is_shared || terms.in_flight > 0.0);
    InstructionActivity {
        l1d_accesses: mix.load + mix.store,
        l1d_misses: misses.data[0],
        l1i_misses: misses.code[0],
        l2_misses: misses.demand_l2,
        llc_accesses: of_llc * (misses.data[1] + misses.code[1]),
        llc_code_accesses: of_llc * misses.code[1],
        llc_misses: misses.demand,
        prefetched_lines: misses.prefetched,
        code_lines: misses.code[3],
        written_lines: misses.written,
        memory_lines: misses.lines,
        outstanding_cycles: data_lines * (setting.latencies.memory + line_wait),
        branch_misses: misses.branch,
        tlb_misses: misses.tlb,
        tlb_walk_cycles: misses.tlb * setting.core.tlb.walk_cycles,
        fpu_busy_cycles: setting.fpu_busy_cycles(cpi, terms, window),
        fp_cycles: setting.fp_cycles(),
        groups: setting.needs.dispatch_turns,
        use_distance: setting.in_order.use_distance,
        in_order_cycles: setting.in_order.counted_cycles,
        ..InstructionActivity::default()
    }
}

/// Slows down threads that claim more than there is.
pub(super) fn restrain(chip: &Chip, sharing: &SharedStructures<'_>, solution: &mut Solution) {
    let cores = core_loads(sharing, &solution.threads);
    let nodes = node_loads(chip, &sharing.twins, &solution.threads);
    let threads = sharing.twins.running.iter().zip(&mut solution.threads);
    for ((running, rates), core) in threads.zip(cores) {
        let load = core.max(nodes[running.demand.home_node]);
        if load > 1.0 {
            rates.stack.dispatch += rates.cpi * (load - 1.0);
            rates.cpi *= load;
            rates.ips /= load;
        }
    }
    for used in &mut solution.memory_utilisation {
        *used = used.min(1.0);
    }
}

/// Use of the fullest resource of each thread's core, 1 when it is full.
pub(super) fn core_loads(sharing: &SharedStructures<'_>, rates: &[ThreadRates]) -> Vec<f64> {
    let mut loads = vec![0.0; rates.len()];
    for (members, supply) in sharing.cores.iter().zip(&sharing.supplies) {
        let mut used = [0.0; RESOURCES];
        for &i in members {
            let setting = &sharing.settings[i];
            let per_cycle = rates[i].ips / setting.hz;
            for (used, each) in used.iter_mut().zip(sharing.uses[i]) {
                *used += per_cycle * each;
            }
        }
        let shares = used.iter().zip(supply.resources);
        let fullest = shares.fold(0.0, |most: f64, (used, of)| most.max(used / of));
        for &i in members {
            loads[i] = fullest;
        }
    }
    loads
}

/// Use of each node's memory, 1 when it is full.
fn node_loads(chip: &Chip, twins: &RepresentativeThreads<'_>, rates: &[ThreadRates]) -> Vec<f64> {
    let memory = &chip.spec().memory;
    let capacity = memory.bandwidth_gb_s * 1e9 * f64::from(memory.controllers_per_node);
    let mut loads = vec![0.0; chip.domains().nodes];
    let each = twins.running.iter().zip(&twins.times).zip(rates);
    for ((running, times), rates) in each {
        let bytes = times * rates.ips * rates.flow.memory_lines * f64::from(memory.line_bytes);
        loads[running.demand.home_node] += bytes / capacity;
    }
    loads
}
