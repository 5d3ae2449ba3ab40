//! One thread's cycles per instruction, given what it holds of every shared structure.
//!
//! Out of order (Eyerman, Eeckhout, Karkhanis, Smith, TOCS 2009, section 4): dispatch at the lower
//! of the width and the rate of the longest chain in the window ([`super::chain`]), hits in L2 and
//! LLC included; plus the time that nothing is dispatched: mispredicted branches, instruction
//! misses, page walks, and misses to memory, of which MLP(w) overlap.
//!
//! In order: see [`super::in_order`].

use super::chain::{LOADS, NO_WAITS, UnitWaits};
use super::claims::{Front, ResourceShares, overlapped_time};
use super::core_model::FP;
use super::misses::Misses;
use super::thread_setting::ThreadSetting;
use crate::machine::PipelineSpec;
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
    /// Stall: memory, if it were idle.
    pub(crate) memory: f64,
    /// Page walks, which are stalls, and translations by the last level of the TLB; those are active
    /// cycles out of order.
    pub(crate) tlb: f64,
    /// Stalls in all, without queueing and locks.
    pub(crate) stall: f64,
    /// Waits for a line that are felt, per instruction.
    pub(crate) felt_lines: f64,
    /// Overlap of long misses.
    pub(crate) mlp: f64,
    /// Overlap of page walks: long lines take neighbours together, not pages.
    pub(crate) walks: f64,
    /// Instructions in its window while it computes; 0 where co-runners leave the window alone.
    pub(crate) in_flight: f64,
    /// Smallest window that sustains the rate of its limits, instructions; 0 likewise.
    pub(crate) window_need: f64,
    /// Share of them that are there because the back end is slower than the front end, 0 to 1.
    pub(crate) backed_up: f64,
    /// Cycles from dispatch until an operation's operands are ready, on average; 0 for a thread
    /// that is alone on its core.
    pub(crate) ready_age: f64,
    /// Misses per instruction.
    pub(crate) misses: Misses,
}

impl ThreadSetting<'_> {
    /// The thread's cycles per instruction.
    pub(crate) fn terms(&self, held: &ResourceShares) -> CycleTerms {
        let mispredicted = if held.strangers > 0.0 {
            self.branches.mispredictions(held.strangers)
        } else {
            self.branches.without_strangers
        };
        let mut terms = CycleTerms {
            misses: self.misses.misses(held, mispredicted),
            ..CycleTerms::default()
        };
        let parallel = self.window.parallel_misses(held.window);
        let long = self.misses.data_lines.long;
        terms.mlp = (parallel * long).min(held.misses).max(1.0);
        terms.walks = parallel.min(held.misses).max(1.0);
        match self.core.pipeline {
            PipelineSpec::OutOfOrder => self.fill_out_of_order_terms(held, &mut terms),
            PipelineSpec::InOrder => self.fill_in_order_terms(held, &mut terms),
        }
        self.add_stalls(held.pace, &mut terms);
        self.add_queue_stalls(held, &mut terms);
        terms
    }

    /// Adds the cycles in which the miss queues are full. A line holds an entry of the L1D's queue
    /// from the miss until it arrives, wherever it comes from, and one of the L2's queue if it comes
    /// from behind the L2. By Little's law an instruction takes no fewer cycles than its lines hold
    /// entries, over the entries there are.
    fn add_queue_stalls(&self, held: &ResourceShares, terms: &mut CycleTerms) {
        let (misses, latencies) = (&terms.misses, &self.latencies);
        let remote = latencies.remote.unwrap_or(0.0);
        let in_l2 = latencies.l2_hits(misses) * latencies.l2;
        let in_llc = misses.exposed
            * ((misses.data[1] - misses.data[2]) * latencies.llc
                + (misses.data[2] - misses.data[3]) * remote);
        let in_memory = misses.demand * (latencies.llc + latencies.memory);
        let behind_l2 = in_llc + in_memory;
        let least = ((in_l2 + behind_l2) / held.queues[0]).max(behind_l2 / held.queues[1]);
        let full = (least - terms.active - terms.stall).max(0.0);
        let cached = in_l2 + in_llc;
        if full > 0.0 && cached > 0.0 {
            terms.l2 += full * in_l2 / cached;
            terms.llc += full * in_llc / cached;
            terms.stall += full;
        }
    }

    fn fill_in_order_terms(&self, held: &ResourceShares, terms: &mut CycleTerms) {
        let (dispatch, ports) = (1.0 / self.limits.dispatch, 1.0 / self.limits.ports);
        let dependences = self.in_order.wait(&held.unit_wait);
        terms.base = dispatch + dependences;
        terms.units = ports - dispatch;
        // While an instruction waits for an operand, fetch continues.
        terms.fetch = (1.0 / self.limits.all - ports - dependences).max(0.0);
        terms.active = ports + terms.fetch;
        (terms.in_window, terms.full) = (terms.active, 1.0);
        (terms.l2, terms.llc) = self.latencies.hits(&terms.misses, 1.0 / terms.mlp);
        terms.stall += dependences + terms.l2 + terms.llc;
        terms.branch = terms.misses.branch * self.core.pipeline_depth_cycles;
        terms.tlb = terms.misses.far_pages * self.latencies.far_page;
        terms.stall += terms.tlb;
    }

    fn fill_out_of_order_terms(&self, held: &ResourceShares, terms: &mut CycleTerms) {
        let (latencies, limits) = (&self.latencies, &self.limits);
        let ilp = &self.demand.phase.spec.ilp;
        let costs = latencies.measured_hits(ilp, &terms.misses, (1.0 / terms.mlp, self.wide));
        let hits = match costs {
            Some(_) => (0.0, 0.0),
            None => {
                let overlap = self.chain.hit_overlap(&self.window, held.window);
                latencies.hits(&terms.misses, overlap / terms.mlp)
            }
        };
        // Chains by what their operations wait for: nothing, units, hits in the L2, hits in the LLC.
        let chain = self.chain.in_window(&self.window, held.window);
        let with_l2_hits = self.load_waits(held.unit_wait, hits.0);
        let with_hits = self.load_waits(with_l2_hits, hits.1);
        let whole = self.chain.in_window(&self.window, self.window.whole);
        let chain_alone = whole.cycles(&NO_WAITS);
        let chain_here = chain.cycles(&with_hits);
        let mut until_branch = held.unit_wait;
        for (wait, own) in until_branch.iter_mut().zip(held.own_wait) {
            *wait += own;
        }
        let resolution = self.branches.resolution(
            self.chain.stretch_with(&until_branch),
            latencies.branch_delay(&terms.misses),
        );
        terms.unhurried = terms.misses.branch * resolution;
        let shortest = 1.0 / limits.all;
        let filled = self.full_window_cycles(shortest.max(1.0 / held.issue), chain_here);
        // No more than slow dispatch costs and fast dispatch saves, or a narrow thread would be
        // faster than a wide one.
        let hurried = self.full_window_cycles(1.0 / limits.hurried, chain_here);
        let slowed = self.full_window_cycles(1.0 / limits.slowed, chain_here);
        let absorbed = self.branches.absorbed_cycles_alone(terms.unhurried);
        terms.resolving = terms.unhurried
            - absorbed.clamp((filled - slowed).min(0.0), (filled - hurried).max(0.0));
        let resolution = terms.resolving / terms.misses.branch.max(f64::MIN_POSITIVE);
        let into_window = self.window_filling_cycles(held.window, resolution, 1.0 / chain_here);
        terms.wrong_path = terms.misses.branch * resolution.min(into_window);
        terms.branch = terms.misses.branch * self.branches.refill + terms.resolving;
        let (l2_hits, llc_hits) = costs.unwrap_or_default();
        let translations = latencies.translations(ilp, &terms.misses, self.wide);
        let late_loads = l2_hits + llc_hits + translations;
        let filled = filled + late_loads;
        let full = self.full_window_share(held.window, filled, terms);
        let beyond = |front: f64, all: f64, chain: f64| {
            front + full * (self.full_window_cycles(1.0 / all, chain) - front)
        };
        let alone = |all: f64| beyond(1.0 / all, all, chain_alone);
        // Ports and issue queues empty the window, but do not fill it.
        let active = |chain: f64| beyond(shortest, limits.all.min(held.issue), chain);
        // Each cause is what its limit adds to those before: the differences sum to the active
        // cycles, whatever the order hides.
        let computing = active(chain.cycles(&held.unit_wait));
        terms.base = alone(limits.dispatch);
        let with_ports = alone(limits.ports);
        let with_fetch = beyond(shortest, limits.all, chain_alone);
        let with_window = active(chain.cycles(&NO_WAITS));
        terms.fetch = with_fetch - with_ports;
        terms.window = with_window - with_fetch;
        terms.units = with_ports - terms.base + computing - with_window;
        let with_l2 = active(chain.cycles(&with_l2_hits));
        terms.l2 = with_l2 - computing;
        let dividing = self.divider_wait(held, chain_alone);
        terms.units += dividing;
        terms.active = active(chain_here) + dividing;
        (terms.in_window, terms.full) = (filled, full);
        terms.llc = terms.active - dividing - with_l2;
        terms.l2 += full * l2_hits;
        terms.llc += full * llc_hits;
        terms.tlb = full * translations;
        terms.active += full * late_loads;
        // Of the window that co-runners leave alone, because a queue whose ends are nearly as fast
        // as each other is sensitive, and what it holds acts on them: the iteration would not settle.
        let undisturbed = self.chain.in_window(&self.window, self.window.alone);
        let emptied = self.full_window_cycles(limits.port_cycles, undisturbed.cycles(&NO_WAITS));
        let slower = (emptied + late_loads) * limits.front;
        let room = self.window.alone;
        terms.backed_up = (self.window.filled(slower, terms.misses.branch) / room).min(1.0);
        if self.on_core > 1.0 {
            let sustains = self.chain.window_for(&self.window, limits.all, &with_hits);
            let sustains = sustains.min(room);
            let in_flight = sustains + terms.backed_up * (room - sustains);
            if self.window.is_shared {
                (terms.window_need, terms.in_flight) = (sustains, in_flight);
            }
            // Little's law: what waits for operands in the window, over the rate.
            let waiting = self.demand.phase.spec.waiting_share() * in_flight.min(held.window);
            terms.ready_age = waiting * terms.active;
        }
    }

    /// The same waits, of loads longer by what hits add to an instruction.
    fn load_waits(&self, mut waits: UnitWaits, hits: f64) -> UnitWaits {
        let loads = self.demand.phase.spec.mix.load;
        if loads > 0.0 {
            waits[LOADS] += hits / loads;
        }
        waits
    }

    /// Cycles per instruction in a full window, given those of the core's limits and of the chain.
    fn full_window_cycles(&self, limits: f64, chain: f64) -> f64 {
        overlapped_time(limits, chain, self.unevenness)
    }

    /// Share of the instructions that are dispatched into a full window, 0 to 1.
    ///
    /// Behind a mispredicted branch the window is empty, and dispatch proceeds at the rate of width
    /// and fetch until it is full (Eyerman et al., TOCS 2009, section 3.1): with rates D of dispatch
    /// and d of what empties it, ports and the chain, after `w/(1 − d/D)` instructions. Branches are
    /// mispredicted at random distances. No more is saved by an empty window than emptying it costs.
    /// Part of that cost is bounded: the longer wait of branches that are dispatched early. One
    /// misprediction more adds nothing to it, and must not save more than it adds; so that wait is
    /// saved only as far as filling the window takes up to twice the rest (estimated). With `cycles`
    /// per instruction, in which both limits have their part, the share begins at 0 without a jump.
    fn full_window_share(&self, window: f64, cycles: f64, terms: &CycleTerms) -> f64 {
        let excess = cycles * self.limits.all - 1.0;
        if excess <= 0.0 || terms.misses.branch <= 0.0 {
            return 1.0;
        }
        let filling = window * (1.0 + 1.0 / excess) * terms.misses.branch;
        let early = (terms.resolving - terms.unhurried).max(0.0);
        let rest = (terms.branch - early) * self.limits.all / excess;
        let beyond = (filling / rest - 1.0).clamp(0.0, 1.0);
        exp(-filling.min(rest) - beyond * early * self.limits.all / excess)
    }

    /// Cycles in which the wrong path behind a mispredicted branch fills what is left of the
    /// window, its threads taking turns. In front of the branch there are as many instructions as
    /// are executed, `chain` per cycle at most, while it waits (Little's law).
    fn window_filling_cycles(&self, window: f64, resolution: f64, chain: f64) -> f64 {
        let before = resolution * chain.min(self.limits.all);
        (window - before).max(0.0) / self.limits.dispatch * self.on_core
    }

    /// The terms by which the front end limits the thread's rate.
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
        let behind_llc = self.latencies.llc + self.latencies.memory;
        let of_level = [
            (code[0] - code[1], self.latencies.l2),
            (code[1] - code[2], self.latencies.llc),
            (code[2] - code[3], self.latencies.remote.unwrap_or(0.0)),
            (code[3], behind_llc),
        ];
        let run = self.misses.next_line_run(pace.max(1.0 / self.limits.all));
        // Next lines come from where the lines before them do.
        let next = misses.late_code / code[0].max(1e-9);
        let cost =
            |(misses, cycles): (f64, f64)| misses * (cycles + next * (cycles - run).max(0.0));
        let fetch: f64 = of_level.into_iter().map(cost).sum();
        terms.fetch += fetch;
        terms.memory = misses.demand * behind_llc / terms.mlp;
        let walks = misses.tlb * self.core.tlb.walk_cycles / terms.walks;
        terms.tlb += walks;
        terms.felt_lines = self.misses.felt_lines(misses, terms.mlp);
        terms.stall += fetch + terms.branch + terms.memory + walks;
    }

    /// Cycles per instruction that floating-point operations are in execution, over all of them.
    pub(crate) fn fp_cycles(&self) -> f64 {
        let fp = &self.units[FP];
        fp.operations * fp.latency
    }

    /// Cycles per instruction in which a floating-point operation is in the FPU, in its scheduler
    /// or in execution. A scheduler holds what waits for operands for as long as the window does
    /// (Little's law), so while the window waits for memory as well. With n operations there on
    /// average, none is with e^(−s·n) by how far apart they come. Behind a mispredicted branch and
    /// while fetch waits for code the window is empty.
    pub(crate) fn fpu_busy_cycles(&self, cpi: f64, terms: &CycleTerms, window: f64) -> f64 {
        let refills = terms.misses.branch * self.core.pipeline_depth_cycles;
        let filled = cpi - (refills + terms.fetch).min(cpi);
        if filled <= 0.0 {
            return 0.0;
        }
        let spread = self.demand.phase.spec.fp_scheduler().spread;
        let operations = window * self.window.fp_waiting + self.fp_cycles() / filled;
        filled * (1.0 - exp(-spread * operations))
    }
}
