//! One thread's cycles per instruction, given what it holds of every shared structure.
//!
//! Out of order (Eyerman, Eeckhout, Karkhanis, Smith, TOCS 2009, section 4):
//! dispatch at `min(width, a·w^b / l)` instructions per cycle, where `a·w^b` is
//! the parallelism in a window of w instructions and `l` their mean latency,
//! hits in L2 and LLC included; plus the time that nothing is dispatched:
//! mispredicted branches, instruction misses, page walks, and misses to memory,
//! of which MLP(w) overlap.
//!
//! In order: see [`super::in_order`].

use super::buffers::{own_window, window};
use super::caches::CacheSets;
use super::claims::{Front, overlapped_time};
use super::core_model::{CLASSES, FP};
use super::misses::Misses;
use super::thread_setting::{ResourceShares, ThreadSetting, WindowAlone};
use crate::machine::{PipelineSpec, PrefetchScope};
use crate::math::exp;

/// Cycles per instruction and what causes them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct CycleTerms {
    /// Active cycles: width and dependences.
    pub(crate) base: f64,
    /// Active cycles: units.
    pub(crate) units: f64,
    /// Hits in the L2; active cycles out of order, stalls in order.
    pub(crate) l2: f64,
    /// Hits in the LLC or another domain's; likewise.
    pub(crate) llc: f64,
    /// Active cycles: a window made smaller by co-runners.
    pub(crate) window: f64,
    /// Active cycles in all.
    pub(crate) active: f64,
    /// Active cycles of instructions that are dispatched into a full window.
    pub(crate) in_window: f64,
    /// Their share of all instructions, 0 to 1.
    pub(crate) full: f64,
    /// Stall: instruction fetch.
    pub(crate) fetch: f64,
    /// Stall: branches.
    pub(crate) branch: f64,
    /// Of these, cycles from the dispatch of mispredicted branches until they are resolved.
    pub(crate) resolving: f64,
    /// The same where dispatch is as wide as where it was measured.
    pub(crate) unhurried: f64,
    /// Of these, cycles in which instructions of a wrong path are dispatched: until the window is
    /// full of them.
    pub(crate) wrong_path: f64,
    /// Stall: memory, were it idle.
    pub(crate) memory: f64,
    /// Stall: page walks.
    pub(crate) tlb: f64,
    /// Stalls in all, without queueing and locks.
    pub(crate) stall: f64,
    /// Waits for a line that are felt, per instruction.
    pub(crate) felt_lines: f64,
    /// Overlap of long misses.
    pub(crate) mlp: f64,
    /// Overlap of page walks: long lines take neighbours together, not pages.
    pub(crate) walks: f64,
    /// Smallest window that sustains the dispatch rate, instructions; 0 where co-runners leave
    /// the window alone.
    pub(crate) window_need: f64,
    /// Misses per instruction.
    pub(crate) misses: Misses,
}

impl ThreadSetting<'_> {
    /// Works out what stays the same over all iterations.
    pub(crate) fn prepare(mut self) -> Self {
        self.limits = self.limits();
        self.latency = self.chain_latency();
        self.whole = self.parallelism(self.whole_window);
        let window = self.window_alone();
        self.alone = WindowAlone {
            window,
            own_window: own_window(&self.buffers),
            parallelism: self.parallelism(window),
            parallel_misses: self.parallel_misses(window),
        };
        self.tlb = self.tlb_misses();
        self.sets = CacheSets::from_ways(self.core.l1i.ways);
        self.resolving = self.branch_resolution();
        self.resolving.left_alone = self.wait_left(self.resolving.late);
        self.mispredicted = self.mispredictions(self.core.branch_predictor.size_kib);
        if self.core.pipeline == PipelineSpec::InOrder || self.counts_in_order {
            self.undisturbed = self.dependences(&[0.0; CLASSES], 1.0 / self.limits.ports);
        }
        self
    }

    /// Window when co-runners take nothing of shared buffers.
    fn window_alone(&self) -> f64 {
        match self.core.pipeline {
            PipelineSpec::InOrder => self.demand.phase.spec.ilp.use_distance,
            PipelineSpec::OutOfOrder => window(&self.buffers).min(self.whole_window),
        }
    }

    /// True if co-runners can clog this thread's window.
    pub(crate) fn shares_window(&self) -> bool {
        let shared = self.buffers.iter().any(|buffer| buffer.pool > 0.0);
        self.core.pipeline == PipelineSpec::OutOfOrder && shared
    }

    /// Cycles that operations of the longest chain wait where one of each class waits so long.
    fn unit_queueing(&self, waits: &[f64; CLASSES]) -> f64 {
        let [int, fp, load, ..] = waits;
        self.chain.plain * int + self.chain.fp * fp + self.chain.load * load
    }

    /// The thread's cycles per instruction.
    pub(crate) fn terms(&self, held: &ResourceShares) -> CycleTerms {
        let mut terms = CycleTerms {
            misses: self.misses(held),
            ..CycleTerms::default()
        };
        let parallel = if held.window == self.alone.window {
            self.alone.parallel_misses
        } else {
            self.parallel_misses(held.window)
        };
        terms.mlp = (parallel * self.data_lines.long).min(held.misses).max(1.0);
        terms.walks = parallel.min(held.misses).max(1.0);
        match self.core.pipeline {
            PipelineSpec::OutOfOrder => self.fill_out_of_order_terms(held, &mut terms),
            PipelineSpec::InOrder => self.fill_in_order_terms(held, &mut terms),
        }
        self.add_stalls(held.pace, &mut terms);
        terms
    }

    /// Parallelism of a window, instructions per cycle of mean latency 1.
    fn parallelism(&self, window: f64) -> f64 {
        self.demand.phase.spec.ilp.parallelism_at(window) / self.demand.intensity
    }

    fn fill_out_of_order_terms(&self, held: &ResourceShares, terms: &mut CycleTerms) {
        let whole = self.whole;
        let own = if held.window == self.whole_window {
            whole
        } else if held.window == self.alone.window {
            self.alone.parallelism
        } else {
            self.parallelism(held.window)
        };
        let l1 = self.latency;
        let queued = l1 + self.unit_queueing(&held.unit_wait);
        let on_chain = self.chain_load_share();
        let costs = self.measured_hits(&terms.misses, 1.0 / terms.mlp);
        let (l2, llc) = match costs {
            Some(_) => (0.0, 0.0),
            None => self.hits(&terms.misses, own / terms.mlp),
        };
        let latency_l2 = queued + l2 * on_chain;
        let latency = latency_l2 + llc * on_chain;
        let resolution =
            self.resolution(&terms.misses, queued + self.unit_queueing(&held.own_wait));
        terms.unhurried = terms.misses.branch * resolution;
        let limits = &self.limits;
        let shortest = 1.0 / limits.all;
        let filled = self.full_window_cycles(shortest, latency / own);
        // No more than slow dispatch costs, or a narrow thread would be faster than a wide one.
        let hurried = self.full_window_cycles(1.0 / limits.hurried, latency / own);
        let absorbed = self.absorbed_cycles_alone(terms.unhurried);
        terms.resolving = terms.unhurried - absorbed.min(filled - hurried);
        let resolution = terms.resolving / terms.misses.branch.max(f64::MIN_POSITIVE);
        let into_window = self.window_filling_cycles(held.window, resolution, own / latency);
        terms.wrong_path = terms.misses.branch * resolution.min(into_window);
        let refill = self.core.pipeline_depth_cycles - self.last_turn();
        terms.branch = terms.misses.branch * refill.max(0.0) + terms.resolving;
        let (l2_hits, llc_hits) = costs.unwrap_or_default();
        let filled = filled + l2_hits + llc_hits;
        let full = self.full_window_share(held.window, filled, terms);
        let beyond = |front: f64, all: f64, chain: f64| {
            front + full * (self.full_window_cycles(1.0 / all, chain) - front)
        };
        let alone = |all: f64| beyond(1.0 / all, all, l1 / whole);
        let active = |chain: f64| beyond(shortest, limits.all, chain);
        let computing = active(queued / own);
        terms.base = alone(limits.dispatch);
        let with_ports = alone(limits.ports);
        let with_fetch = active(l1 / whole);
        let with_window = active(l1 / own);
        terms.fetch = with_fetch - with_ports;
        terms.window = with_window - with_fetch;
        terms.units = with_ports - terms.base + computing - with_window;
        let with_l2 = active(latency_l2 / own);
        terms.l2 = with_l2 - computing;
        let dividing = self.divider_wait(held, l1 / whole);
        terms.units += dividing;
        terms.active = active(latency / own) + dividing;
        (terms.in_window, terms.full) = (filled, full);
        terms.llc = terms.active - dividing - with_l2;
        terms.l2 += full * l2_hits;
        terms.llc += full * llc_hits;
        terms.active += full * (l2_hits + llc_hits);
        if self.shares_window() {
            terms.window_need = self.window_need(latency);
        }
    }

    /// Cycles per instruction in a full window, given those of the core's limits and of the chain.
    fn full_window_cycles(&self, limits: f64, chain: f64) -> f64 {
        overlapped_time(limits, chain, self.demand.phase.spec.unevenness())
    }

    /// Share of the instructions that are dispatched into a full window, 0 to 1.
    ///
    /// Behind a mispredicted branch the window is empty, and dispatch goes on at the rate of width
    /// and fetch until it is full (Eyerman et al., TOCS 2009, section 3.1): with rates D of
    /// dispatch and d of what empties it, ports and the chain, after `w/(1 − d/D)` instructions. Branches are mispredicted at
    /// random distances. No more is saved by an empty window than emptying it costs. With `cycles`
    /// per instruction, in which both limits have their part, it begins at 0 without a jump.
    fn full_window_share(&self, window: f64, cycles: f64, terms: &CycleTerms) -> f64 {
        let excess = cycles * self.limits.all - 1.0;
        if excess <= 0.0 || terms.misses.branch <= 0.0 {
            return 1.0;
        }
        let filling = window * (1.0 + 1.0 / excess);
        let cost = terms.branch * self.limits.all;
        exp(-(filling * terms.misses.branch).min(cost / excess))
    }

    /// Cycles per instruction that hits in L2 and LLC add to the latency of the mean instruction.
    ///
    /// A hit adds its latency less the L1's, but no more than `overlap` of its latency: loads that
    /// overlap like misses to memory are on no chain. Without the bound a bigger cache could hurt.
    pub(super) fn hits(&self, misses: &Misses, overlap: f64) -> (f64, f64) {
        let l1 = self.core.l1d.latency_cycles;
        let cost = |cycles: f64| (cycles - l1).min(cycles * overlap).max(0.0);
        let in_l2 = match &self.core.l2 {
            Some(_) => misses.data[0] - misses.data[1],
            None => 0.0,
        };
        let exposed = misses.exposed;
        let here = (misses.data[1] - misses.data[2]) * cost(self.llc_cycles);
        let remote = self.remote_cycles.map_or(0.0, |cycles| {
            (misses.data[2] - misses.data[3]) * cost(cycles)
        });
        (in_l2 * cost(self.l2_cycles()), exposed * (here + remote))
    }

    /// Cycles per instruction that hits in L2 and LLC cost in a full window, where a profile has them;
    /// bounded as those of [`ThreadSetting::hits`] are.
    fn measured_hits(&self, misses: &Misses, overlap: f64) -> Option<(f64, f64)> {
        let ilp = &self.demand.phase.spec.ilp;
        let l1 = self.core.l1d.latency_cycles;
        let cost = |cycles: f64| Some(ilp.miss_cost(cycles - l1)?.min(cycles * overlap));
        let in_l2 = match &self.core.l2 {
            Some(_) => misses.data[0] - misses.data[1],
            None => 0.0,
        };
        let here = (misses.data[1] - misses.data[2]) * cost(self.llc_cycles)?;
        let remote = match self.remote_cycles {
            Some(cycles) => (misses.data[2] - misses.data[3]) * cost(cycles)?,
            None => 0.0,
        };
        Some((
            in_l2 * cost(self.l2_cycles())?,
            misses.exposed * (here + remote),
        ))
    }

    /// Smallest window in which the rate that width and units allow can be sustained. What is bound
    /// by ports piles up before them, as far as there is room, for as long as it is.
    fn window_need(&self, latency: f64) -> f64 {
        let piled = self.limits.piled;
        let parallelism = self.limits.all * latency * self.demand.intensity;
        let ilp = &self.demand.phase.spec.ilp;
        let sustains = ilp.window_for(parallelism, self.whole_window);
        sustains + piled * (self.whole_window - sustains)
    }

    /// Returns the terms by which the front end limits the thread's rate.
    pub(crate) fn front(&self, terms: &CycleTerms) -> Front {
        Front {
            dispatch: self.needs.dispatch_turns,
            fetch: self.needs.fetch_turns + self.needs.bubbles,
            uneven: self.limits.uneven_front,
            bubbles: self.needs.bubbles,
            pauses: self.needs.pauses,
            window: terms.in_window,
            full: terms.full,
        }
    }

    fn add_stalls(&self, pace: f64, terms: &mut CycleTerms) {
        let misses = &terms.misses;
        let code = &misses.code;
        let remote = self.remote_cycles.unwrap_or(0.0);
        let of_level = [
            (code[0] - code[1], self.l2_cycles()),
            (code[1] - code[2], self.llc_cycles),
            (code[2] - code[3], remote),
            (code[3], self.llc_cycles + self.memory_cycles),
        ];
        let (next, run) = self.next_lines(pace);
        let cost =
            |(misses, cycles): (f64, f64)| misses * (cycles + next * (cycles - run).max(0.0));
        let fetch: f64 = of_level.into_iter().map(cost).sum();
        terms.fetch += fetch;
        let latency = self.llc_cycles + self.memory_cycles;
        terms.memory = misses.demand * latency / terms.mlp;
        terms.tlb = misses.tlb * self.core.tlb.walk_cycles / terms.walks;
        let depth = self.prefetch_depth().max(terms.mlp);
        terms.felt_lines = misses.demand / terms.mlp + misses.prefetched / depth + code[3];
        terms.stall += fetch + terms.branch + terms.memory + terms.tlb;
    }

    /// Lines of code that are fetched along with the line before, per line that is missed, and the
    /// cycles from then until they are wanted: those that the line before takes to run, of which
    /// a branch to it skips half.
    fn next_lines(&self, pace: f64) -> (f64, f64) {
        let lines = &self.code_lines;
        let instructions = self.line_bytes / self.demand.phase.spec.code_bytes();
        let followed = 1.0 - lines.not_next;
        let run = instructions * (0.5 + 0.5 * followed) * pace.max(1.0 / self.limits.all);
        (followed / lines.not_next.max(1e-3), run)
    }

    fn prefetch_depth(&self) -> f64 {
        let prefetcher = self.core.prefetcher.as_ref();
        prefetcher.map_or(1.0, |p| f64::from(p.depth_lines))
    }

    pub(super) fn coverage(&self) -> f64 {
        self.core.prefetcher.as_ref().map_or(0.0, |p| p.coverage)
    }

    /// True if prefetched lines come into the L2: those of a core's or an L2's own prefetchers do,
    /// those of an LLC's wait there.
    pub(super) fn prefetches_to_l2(&self) -> bool {
        let prefetcher = self.core.prefetcher.as_ref();
        self.core.l2.is_some() && prefetcher.is_some_and(|p| p.per != PrefetchScope::Llc)
    }

    /// Share of misses that prefetching removes; negative when it adds misses. Where lines are
    /// longer than the curves', they have left less that is in sequence.
    pub(super) fn prefetch_effect(&self) -> f64 {
        let effect = self.demand.phase.spec.prefetch.effectiveness * self.coverage();
        if effect > 0.0 {
            effect / self.data_lines.space
        } else {
            effect
        }
    }

    /// Long misses that are in a window at once, with lines of 64 bytes.
    fn parallel_misses(&self, window: f64) -> f64 {
        self.demand.phase.spec.mlp.overlap_at(window)
    }

    /// Cycles per instruction that floating-point operations are in execution, over all of them.
    pub(crate) fn fp_cycles(&self) -> f64 {
        let fp = &self.units[FP];
        fp.operations * fp.latency
    }

    /// Cycles per instruction in which a floating-point operation is in the FPU, be it in its
    /// scheduler or in execution. A scheduler holds what waits for operands for as long as the
    /// window does (Little's law), so while the window waits for memory as well. With n operations
    /// there on average, none is with e^(−s·n) by how far apart they come. Behind a mispredicted branch and while
    /// fetch waits for code the window is empty.
    pub(crate) fn fpu_busy_cycles(&self, cpi: f64, terms: &CycleTerms, window: f64) -> f64 {
        let refills = terms.misses.branch * self.core.pipeline_depth_cycles;
        let filled = cpi - (refills + terms.fetch).min(cpi);
        if filled <= 0.0 {
            return 0.0;
        }
        let spread = self.demand.phase.spec.fp_scheduler().spread;
        let operations = window * self.fp_waiting + self.fp_cycles() / filled;
        filled * (1.0 - exp(-spread * operations))
    }
}
