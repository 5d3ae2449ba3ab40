//! The iteration's last state as rates, stacks and flows of each thread.

use super::{SolverState, TOLERANCE};
use crate::chip::Chip;
use crate::contention::dispatch::LossShares;
use crate::contention::layout::SharedStructures;
use crate::contention::pipeline::CycleTerms;
use crate::contention::thread_setting::ThreadSetting;
use crate::contention::types::{CpiStack, InstructionActivity, Solution, ThreadRates};

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
        let held_bytes = |level: usize| held.data[level] * setting.data_lines.space;
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
            l2_bytes: if setting.core.l2.is_some() {
                held_bytes(1)
            } else {
                0.0
            },
            llc_bytes: held_bytes(2),
            lock: self.locks[i],
        }
    }
}

/// `line_wait` are the cycles that a line waits at stations.
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
    // A fetch group that misses the L1I looks in the L2 as data does.
    debug_assert!(!setting.shares_window() || terms.window_need > 0.0);
    InstructionActivity {
        l1d_accesses: mix.load + mix.store,
        l1d_misses: misses.data[0],
        l1i_misses: misses.code[0],
        l2_misses: misses.demand_l2,
        llc_accesses: if setting.has_llc {
            misses.data[1] + misses.code[1]
        } else {
            0.0
        },
        llc_misses: misses.demand,
        prefetched_lines: misses.prefetched,
        code_lines: misses.code[3],
        written_lines: misses.written,
        memory_lines: misses.lines,
        outstanding_cycles: data_lines * (setting.memory_cycles + line_wait),
        branch_misses: misses.branch,
        tlb_misses: misses.tlb,
        tlb_walk_cycles: misses.tlb * setting.core.tlb.walk_cycles,
        fpu_busy_cycles: setting.fpu_busy_cycles(cpi, terms, window),
        fp_cycles: setting.fp_cycles(),
        groups: setting.needs.dispatch_turns,
        use_distance: setting.use_distance(),
        in_order_cycles: setting.in_order_cycles(),
        ..InstructionActivity::default()
    }
}
