//! Data of threads in the caches that they leave and come to.
//!
//! Caches replace the line that was used longest ago. While a thread is away its lines grow older
//! and what others bring in takes their place: after they have brought in `b` bytes, of `d` that
//! the thread left in a cache of `S` bytes, in which the running threads hold `h`, at least `max(d
//! − b, min(d, S − h − b))` are there. What running threads hold is not older than the thread's
//! lines, so it does not go first; if they bring in nothing, nothing goes at all.
//!
//! Bytes that a thread brings in are those of its misses, counted when its turn on a CPU ends.
//!
//! Registers and pipeline cost a fixed time without progress. Everything else is additional misses
//! of the caches there: of what the thread lacks, as it runs ([`super::warming`]).

use super::counts::LEVELS;
use super::kernel::SimulatedKernel;
use super::thread::SimulatedThread;
use super::thread_caches::{CacheId, CacheRemnant, Inflow, cache_at, capacity};
use super::warming::InitialContents;
use crate::chip::{Chip, PuPlace};
use std::sync::Arc;

/// The threads, CPUs and traffic that cache contents depend on.
pub(crate) struct CacheContents<'a> {
    pub(crate) chip: &'a Chip,
    pub(crate) inflow: &'a Inflow,
    pub(crate) threads: &'a [SimulatedThread],
    pub(crate) kernel: &'a SimulatedKernel,
}

impl CacheContents<'_> {
    /// Returns what thread `t` holds when its turn on a CPU ends.
    pub(crate) fn contents_left(&self, t: usize, pu: usize) -> [Option<CacheRemnant>; LEVELS] {
        let held = self.resident_bytes(t);
        let instructions = self.threads[t].counters.instructions();
        let level = |level| {
            let cache = cache_at(self.chip, pu, level)?;
            Some(CacheRemnant {
                cache,
                bytes: held[level],
                inflow: self.inflow_until_now(cache),
                instructions,
            })
        };
        [level(0), level(1), level(2)]
    }

    /// Bytes that thread `t` finds of its own in the caches of a CPU.
    pub(crate) fn bytes_found(&self, t: usize, pu: usize) -> [f64; LEVELS] {
        [0, 1, 2].map(|level| self.bytes_found_in(t, pu, level).unwrap_or(0.0))
    }

    /// Share of what a sibling of thread `t` holds at each level of caches at a CPU, 0 to 1: all if
    /// one is there now, else what is left of the last ones' turns.
    pub(crate) fn siblings(&self, t: usize, pu: usize) -> [f64; LEVELS] {
        let is_sibling =
            |&other: &usize| other != t && self.threads[other].program == self.threads[t].program;
        [0, 1, 2].map(|level| {
            let cache = cache_at(self.chip, pu, level);
            if self.running_in(cache).any(|other| is_sibling(&other)) {
                return 1.0;
            }
            let siblings = (0..self.threads.len()).filter(is_sibling);
            let kept = siblings.filter_map(|other| {
                let left = self.threads[other].caches.remnants.remnant(cache?)?.bytes;
                let found = self.bytes_found_in(other, pu, level)?;
                (left > 0.0).then(|| found / left)
            });
            kept.fold(0.0, f64::max)
        })
    }

    fn bytes_found_in(&self, t: usize, pu: usize, level: usize) -> Option<f64> {
        let cache = cache_at(self.chip, pu, level)?;
        let left = self.threads[t].caches.remnants.remnant(cache)?;
        let brought = (self.inflow_until_now(cache) - left.inflow).max(0.0);
        let held = self.others_in(t, Some(cache));
        let held: f64 = held.map(|other| self.resident_bytes(other)[level]).sum();
        let room = capacity(self.chip, self.chip.places()[pu], level) - held - brought;
        Some((left.bytes - brought).max(room).clamp(0.0, left.bytes))
    }

    fn resident_bytes(&self, t: usize) -> [f64; LEVELS] {
        self.threads[t].held_bytes(f64::from(self.chip.spec().memory.line_bytes))
    }

    fn others_in(&self, t: usize, cache: Option<CacheId>) -> impl Iterator<Item = usize> {
        self.running_in(cache).filter(move |&other| other != t)
    }

    fn running_in(&self, cache: Option<CacheId>) -> impl Iterator<Item = usize> {
        let inside = move |pu| {
            cache.is_some_and(|cache| cache_at(self.chip, pu, cache.level) == Some(cache))
        };
        let occupied = self.kernel.occupied_pus();
        occupied.filter(move |(pu, _)| inside(*pu)).map(|(_, t)| t)
    }

    /// Returns the bytes brought into a cache, turns in progress included.
    fn inflow_until_now(&self, cache: CacheId) -> f64 {
        let going = self.running_in(Some(cache));
        let going: f64 = going
            .map(|t| bytes_brought(self.chip, &self.threads[t])[cache.level])
            .sum();
        self.inflow.inflow_bytes(cache) + going
    }
}

/// Bytes that a thread has brought into each level of caches since its turn began.
fn bytes_brought(chip: &Chip, thread: &SimulatedThread) -> [f64; LEVELS] {
    let line = f64::from(chip.spec().memory.line_bytes);
    let now = thread.counters.lines_brought();
    [0, 1, 2].map(|level| (now[level] - thread.caches.turn_lines[level]) * line)
}

/// Cycles to exchange the registers of two logical cores (Markovic, UPC 2015).
const SWAP_CYCLES: f64 = 1000.0;

/// Share of what was left in a cache whose lack is negligible.
const SAME: f64 = 1e-3;

/// Moves of threads among caches.
pub(crate) struct Moves {
    chip: Arc<Chip>,
    /// Bytes brought into each cache.
    inflow: Inflow,
    /// True if moves cost nothing.
    are_free: bool,
}

impl Moves {
    /// Empty caches.
    pub(crate) fn new(chip: &Arc<Chip>, are_free: bool) -> Self {
        Self {
            chip: Arc::clone(chip),
            inflow: Inflow::new(chip),
            are_free,
        }
    }

    fn caches<'a>(
        &'a self,
        kernel: &'a SimulatedKernel,
        threads: &'a [SimulatedThread],
    ) -> CacheContents<'a> {
        CacheContents {
            chip: &self.chip,
            inflow: &self.inflow,
            threads,
            kernel,
        }
    }

    /// Notes what a thread leaves in the caches of a physical CPU; it must still be there.
    pub(crate) fn leave_caches(
        &mut self,
        kernel: &SimulatedKernel,
        threads: &mut [SimulatedThread],
        t: usize,
        physical: usize,
    ) {
        let left = self.caches(kernel, threads).contents_left(t, physical);
        let thread = &mut threads[t];
        let brought = bytes_brought(&self.chip, thread);
        self.inflow.add_turn(&self.chip, physical, brought);
        thread.caches.turn_lines = thread.counters.lines_brought();
        thread.caches.leave_behind(left);
    }

    /// Lets a thread come to the caches of a physical CPU. Returns true if it lacks anything there;
    /// its first place is warm.
    pub(crate) fn enter_caches(
        &self,
        kernel: &SimulatedKernel,
        threads: &mut [SimulatedThread],
        t: usize,
        physical: usize,
    ) -> bool {
        let from = threads[t].caches.warm_at;
        let moves = from.is_some_and(|from| from != physical);
        let arrived = match from {
            Some(from) if !(moves && self.are_free) => {
                self.find_contents(&self.caches(kernel, threads), t, (from, physical))
            }
            _ => None,
        };
        let thread = &mut threads[t];
        thread.caches.turn_lines = thread.counters.lines_brought();
        thread.caches.warm_at = Some(physical);
        match arrived {
            Some(arrived) => thread.caches.warming.arrive(arrived),
            None => thread.caches.warming.end(),
        }
        arrived.is_some()
    }

    /// Contents that a thread finds at a place; `None` if it lacks nothing.
    fn find_contents(
        &self,
        caches: &CacheContents<'_>,
        t: usize,
        (from, to): (usize, usize),
    ) -> Option<InitialContents> {
        let thread = &caches.threads[t];
        let found = caches.bytes_found(t, to);
        let left = thread.caches.left_bytes(&self.chip, to);
        let is_there =
            |level: usize| left[level].is_none_or(|left| found[level] >= left * (1.0 - SAME));
        if thread.caches.was_warm && from == to && (0..LEVELS).all(is_there) {
            return None;
        }
        let share = thread.demand.shared_data;
        // Looks at every thread, and this happens at every switch.
        let siblings = match share > 0.0 {
            true => caches.siblings(t, to).map(|there| share * there),
            false => [0.0; LEVELS],
        };
        let ran = thread.counters.instructions();
        let away = [0, 1, 2].map(|level| {
            let cache = cache_at(&self.chip, to, level);
            let left = cache.and_then(|cache| thread.caches.remnants.remnant(cache));
            left.map_or(0.0, |left| ran - left.instructions)
        });
        let home = thread.demand.home_node;
        let places = self.chip.places();
        let elsewhere_s = other_domain_latency_s(&self.chip, home, places[from], places[to]);
        Some(InitialContents {
            found,
            siblings,
            held: thread.caches.held,
            away,
            elsewhere_s,
        })
    }

    pub(crate) fn swap_s(&self, physical: usize) -> f64 {
        if self.are_free {
            return 0.0;
        }
        let place = self.chip.places()[physical];
        let cycles = SWAP_CYCLES + self.chip.core_spec(place).pipeline_depth_cycles;
        cycles / self.chip.frequency_hz(place)
    }
}

/// Latency of the caches that a thread comes from, s, if another LLC domain of its package keeps
/// what it held and is nearer than memory.
fn other_domain_latency_s(chip: &Chip, home: usize, from: PuPlace, to: PuPlace) -> Option<f64> {
    let remote_ns = chip.spec().llc.remote_latency_ns?;
    let is_nearer = remote_ns < chip.memory_latency_ns(to, home);
    (from.llc != to.llc && from.package == to.package && is_nearer).then_some(remote_ns * 1e-9)
}

#[cfg(test)]
mod tests {
    use crate::engine::testing::{engine, instances, program, program_with};
    use crate::engine::{Engine, RunMode};
    use crate::program::ProgramSpec;

    const MS: u64 = 1_000_000_000;

    /// Keeps 128 KiB and hardly misses when it has them.
    fn keeping() -> ProgramSpec {
        let mut spec = program();
        spec.phases[0].data_mpki = (0..14).map(|i| if i < 4 { 40.0 } else { 0.05 }).collect();
        spec
    }

    fn streaming() -> ProgramSpec {
        let mut spec = program();
        spec.phases[0].data_mpki = vec![30.0; 14];
        spec
    }

    /// A thread on CPU 0 visits CPU 2 of the next core for 1 ms and comes back after so long; lines
    /// that it misses in its L2 during the 1 ms after its return. `other` runs on CPU 0 meanwhile.
    fn missed_after(away_ms: u64, other: &ProgramSpec) -> f64 {
        let mut work = instances(&keeping(), 1, 1, 10.0);
        work.extend(instances(other, 1, 1, 10.0));
        let mut e = engine("pinned", RunMode::Once, &work, 1);
        let missed = |e: &Engine| e.threads()[0].counters.total().flow.llc_accesses;
        let place = |e: &mut Engine, pus: [u32; 2]| {
            for (t, pu) in pus.into_iter().enumerate() {
                e.restrict(t, [consort_core::PuId(pu)].into_iter().collect());
            }
            e.enforce_masks();
        };
        place(&mut e, [0, 2]);
        e.run_until(20 * MS);
        place(&mut e, [2, 0]);
        e.run_until((20 + away_ms) * MS);
        place(&mut e, [0, 2]);
        let before = missed(&e);
        e.run_until((21 + away_ms) * MS);
        missed(&e) - before
    }

    #[test]
    fn contents_shrink_with_absence_and_inflow() {
        let lines = 128.0 * 1024.0 / 64.0;
        let [quiet, short, long] = [
            missed_after(5, &program()),
            missed_after(1, &streaming()),
            missed_after(20, &streaming()),
        ];
        assert!(quiet < 0.25 * lines, "{quiet}");
        assert!(quiet < short && short <= long, "{quiet} {short} {long}");
        assert!((0.5 * lines..1.5 * lines).contains(&long), "{long}");
    }

    /// Two siblings and a stranger in turns on one CPU: the second sibling finds in the L1D what
    /// both use.
    #[test]
    fn siblings_in_turns_reuse_shared_lines() {
        let missed = |shared: f64| {
            let mut spec = program_with(&format!(
                "[threads]\ndefault = 2\nmax = 2\nshared_data = {shared:?}"
            ));
            spec.phases[0].data_mpki = (0..14).map(|i| if i < 2 { 40.0 } else { 0.05 }).collect();
            let mut work = instances(&spec, 1, 2, 10.0);
            work.extend(instances(&streaming(), 1, 1, 10.0));
            let mut e = engine("pinned", RunMode::Once, &work, 1);
            (0..3).for_each(|t| e.restrict(t, consort_core::PuId(0).into()));
            e.enforce_masks();
            e.run_until(400 * MS);
            let siblings = e.threads()[..2].iter().map(|t| t.counters.total());
            let totals: Vec<_> = siblings.collect();
            let instructions: f64 = totals.iter().map(|c| c.instructions).sum();
            let misses: f64 = totals.iter().map(|c| c.flow.l1d_misses).sum();
            assert!(totals.iter().all(|c| c.context_switches > 10));
            1000.0 * misses / instructions
        };
        let [none, half, all] = [0.0, 0.5, 1.0].map(missed);
        // Half of what it holds are the lines that it uses again.
        assert!(all <= half && half < none, "{all} {half} {none}");
    }

    #[test]
    fn move_costs_misses_and_no_idle_time() {
        let run = |moves: bool| {
            let mut e = engine(
                "pinned",
                RunMode::Once,
                &instances(&keeping(), 1, 1, 10.0),
                1,
            );
            e.run_until(10 * MS);
            if moves {
                e.restrict(0, [consort_core::PuId(4)].into_iter().collect());
                e.enforce_masks();
            }
            e.run_until(20 * MS);
            e.threads()[0].counters.total()
        };
        let (stayed, moved) = (run(false), run(true));
        assert!(moved.instructions < stayed.instructions);
        assert!(moved.flow.llc_accesses > stayed.flow.llc_accesses + 1000.0);
        assert!(moved.energy_j / moved.instructions > stayed.energy_j / stayed.instructions);
        // A switch, and nothing else.
        assert!(moved.overhead_s - stayed.overhead_s < 5e-6);
    }
}
