//! Coming to a place and leaving it: what that costs a thread, and what stays behind.
//!
//! Registers and pipeline cost a fixed time without progress. Everything else is additional misses
//! of the caches there: of what the thread lacks ([`super::content`]), as it runs
//! ([`super::warming`]).

use super::cache_remnants::{Inflow, LEVELS};
use super::content::CacheContents;
use super::kernel::SimulatedKernel;
use super::thread::SimulatedThread;
use super::warming::InitialContents;
use crate::chip::{Chip, PuPlace};
use std::sync::Arc;

/// Cycles to exchange the registers of two logical cores (Markovic, UPC 2015).
const SWAP_CYCLES: f64 = 1000.0;

/// Share of what was left in a cache of which the lack is none.
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

    /// Notes what a thread leaves in the caches of a physical PU, on which it still is.
    pub(crate) fn leave_caches(
        &mut self,
        kernel: &SimulatedKernel,
        threads: &mut [SimulatedThread],
        t: usize,
        physical: usize,
    ) {
        let left = self.caches(kernel, threads).contents_left(t, physical);
        let thread = &mut threads[t];
        let brought = thread.bytes_brought(&self.chip);
        self.inflow.add_turn(&self.chip, physical, brought);
        thread.turn_lines = thread.lines_brought();
        thread.leave_behind(left);
    }

    /// Lets a thread come to the caches of a physical PU; whether it lacks anything there. Its
    /// first place is warm.
    pub(crate) fn enter_caches(
        &self,
        kernel: &SimulatedKernel,
        threads: &mut [SimulatedThread],
        t: usize,
        physical: usize,
    ) -> bool {
        let from = threads[t].warm_at;
        let moves = from.is_some_and(|from| from != physical);
        let arrived = match from {
            Some(from) if !(moves && self.are_free) => {
                self.find_contents(&self.caches(kernel, threads), t, (from, physical))
            }
            _ => None,
        };
        let thread = &mut threads[t];
        thread.turn_lines = thread.lines_brought();
        thread.warm_at = Some(physical);
        match arrived {
            Some(arrived) => thread.warming.arrive(arrived),
            None => thread.warming.end(),
        }
        arrived.is_some()
    }

    /// Returns what a thread finds at a place; none where it lacks nothing.
    fn find_contents(
        &self,
        caches: &CacheContents<'_>,
        t: usize,
        (from, to): (usize, usize),
    ) -> Option<InitialContents> {
        let thread = &caches.threads[t];
        let found = caches.bytes_found(t, to);
        let left = thread.left_bytes(&self.chip, to);
        let is_there =
            |level: usize| left[level].is_none_or(|left| found[level] >= left * (1.0 - SAME));
        if thread.was_warm && from == to && (0..LEVELS).all(is_there) {
            return None;
        }
        let share = thread.demand.shared_data;
        let siblings = caches
            .siblings(t, to)
            .map(|there| if there { share } else { 0.0 });
        let home = thread.demand.home_node;
        let places = self.chip.places();
        let elsewhere_s = other_domain_latency_s(&self.chip, home, places[from], places[to]);
        Some(InitialContents {
            found,
            siblings,
            elsewhere_s,
        })
    }

    /// Time that a logical core needs to come to a physical PU, s.
    pub(crate) fn swap_s(&self, physical: usize) -> f64 {
        if self.are_free {
            return 0.0;
        }
        let place = self.chip.places()[physical];
        let cycles = SWAP_CYCLES + self.chip.core_spec(place).pipeline_depth_cycles;
        cycles / self.chip.frequency_hz(place)
    }
}

/// Latency of the caches that a thread comes from, where another LLC domain of its package keeps
/// what it held, s.
fn other_domain_latency_s(chip: &Chip, home: usize, from: PuPlace, to: PuPlace) -> Option<f64> {
    let remote_ns = chip.spec().llc.remote_latency_ns?;
    let is_nearer = remote_ns < chip.memory_latency_ns(to, home);
    (from.llc != to.llc && from.package == to.package && is_nearer).then_some(remote_ns * 1e-9)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{engine, instances, program};
    use super::super::{Engine, RunMode};
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

    /// A thread on PU 0 visits PU 2 of the next core for 1 ms and comes back after so long; lines
    /// that it misses in its L2 during the 1 ms after its return. `other` runs on PU 0 meanwhile.
    fn missed_after(away_ms: u64, other: &ProgramSpec) -> f64 {
        let mut work = instances(&keeping(), 1, 1, 10.0);
        work.extend(instances(other, 1, 1, 10.0));
        let mut e = engine("pinned", RunMode::Once, &work, 1);
        let missed = |e: &Engine| e.threads()[0].total().flow.llc_accesses;
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
    fn the_longer_away_and_the_more_strangers_bring_in_the_less_is_found() {
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

    #[test]
    fn a_move_costs_time_as_instructions_miss_and_no_time_without_progress() {
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
            e.threads()[0].total()
        };
        let (stayed, moved) = (run(false), run(true));
        assert!(moved.instructions < stayed.instructions);
        assert!(moved.flow.llc_accesses > stayed.flow.llc_accesses + 1000.0);
        assert!(moved.energy_j / moved.instructions > stayed.energy_j / stayed.instructions);
        // A switch, and nothing else.
        assert!(moved.overhead_s - stayed.overhead_s < 5e-6);
    }
}
