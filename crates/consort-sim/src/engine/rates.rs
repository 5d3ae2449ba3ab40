//! Rates of the threads that run, solved or remembered, and the power that goes with them.

use super::Engine;
use super::thread::{Status, Thread};
use super::time::NEVER;
use crate::contention::{Running, Solver};

/// Memory that is used again from solve to solve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// Running threads and their PUs, in the order of the chip's PUs.
    running: Vec<(usize, usize)>,
    key: Vec<u64>,
    /// Group of siblings of each program, by first appearance; 0 for none yet.
    group: Vec<u64>,
    /// Threads on each core.
    busy: Vec<u32>,
}

impl Engine {
    /// Solves again if anything has changed that rates depend on.
    pub(crate) fn refresh_rates(&mut self) {
        if !std::mem::take(&mut self.stale) {
            return;
        }
        self.list_running();
        self.list_key();
        let (threads, running) = (&self.threads, &self.scratch.running);
        let solver = &self.solver;
        let solve = || solve(solver, threads, running);
        let solution = self.memo.get(&self.scratch.key, solve);
        if let Some(observer) = &mut self.observer {
            observer.solved(self.now, solution);
        }
        for (&(t, pu), rates) in self.scratch.running.iter().zip(&solution.threads) {
            let thread = &mut self.threads[t];
            let changed = thread.rates.ips.to_bits() != rates.ips.to_bits();
            thread.rates = *rates;
            let core = self.chip.places()[pu].core;
            let mix = &thread.demand.phase.spec.mix;
            thread.instruction_j = self.meter.instruction_j(core, mix, &rates.flow);
            if changed || thread.deadline == NEVER {
                thread.set_deadline(self.now);
            }
        }
        self.refresh_power();
    }

    fn list_running(&mut self) {
        self.scratch.running.clear();
        for pu in 0..self.map.len() {
            let current = self.pus[self.map.logical(pu)].current;
            if let Some(t) = current.filter(|&t| self.threads[t].status == Status::Running) {
                self.scratch.running.push((t, pu));
            }
        }
    }

    /// What the solution depends on, no more and no less: locks and sharing follow from the
    /// phase, which belongs to one profile.
    fn list_key(&mut self) {
        let scratch = &mut self.scratch;
        scratch.key.clear();
        scratch.group.clear();
        scratch.group.resize(self.programs.len(), 0);
        let mut groups = 0;
        for &(t, pu) in &scratch.running {
            let thread = &self.threads[t];
            let group = &mut scratch.group[thread.program];
            if *group == 0 {
                groups += 1;
                *group = groups;
            }
            let place = (pu as u64) << 32 | thread.demand.home_node as u64;
            let what = (thread.phase as u64) << 32 | *group;
            let intensity = thread.demand.intensity.to_bits();
            scratch.key.extend([place, what, intensity]);
        }
    }

    fn refresh_power(&mut self) {
        let busy = &mut self.scratch.busy;
        busy.clear();
        busy.resize(self.chip.domains().cores, 0);
        for logical in 0..self.map.len() {
            if self.pus[logical].current.is_some() {
                busy[self.chip.places()[self.map.physical(logical)].core] += 1;
            }
        }
        let idle = (0..busy.len()).filter(|&core| busy[core] == 0);
        let idle_w: f64 = idle.map(|core| self.meter.core_w(core, false)).sum();
        self.base_w = idle_w + self.meter.uncore_w();
        for logical in 0..self.map.len() {
            if let Some(t) = self.pus[logical].current {
                let core = self.chip.places()[self.map.physical(logical)].core;
                self.threads[t].static_w = self.meter.core_w(core, true) / f64::from(busy[core]);
            }
        }
    }
}

fn solve(
    solver: &Solver,
    threads: &[Thread],
    running: &[(usize, usize)],
) -> crate::contention::Solution {
    let demand = |&(t, pu): &(usize, usize)| Running {
        pu,
        demand: &threads[t].demand,
    };
    let running: Vec<Running<'_>> = running.iter().map(demand).collect();
    solver.solve(&running)
}
