//! Rates of the threads that run, solved or remembered, and the power that goes with them.

use super::Engine;
use super::canonical::Slot;
use super::lock::frequent::returns_per_instr;
use super::thread::{Status, Thread};
use super::time::{NEVER, PS_PER_NS};
use super::warming::Warming;
use crate::contention::{Running, Solution, Solver};

/// Time until threads on other cores feel that one has stopped, ps: about as long as a thread takes
/// to bring a thousand lines from memory, ten at a time in 100 ns.
pub(crate) const LAG_PS: u64 = 10_000 * PS_PER_NS;

/// Memory that is used again from solve to solve.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scratch {
    /// Running threads.
    running: Vec<Slot>,
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
            if std::mem::take(&mut self.idle_changed) {
                self.refresh_power();
            }
            return;
        }
        self.stale_at = NEVER;
        self.idle_changed = false;
        self.list_running();
        self.list_key();
        let (threads, running) = (&self.threads, &self.scratch.running);
        let solver = &self.solver;
        let solve = || solve(solver, threads, running);
        let solution = self.memo.get(&self.scratch.key, solve);
        if let Some(observer) = &mut self.observer {
            observer.solved(self.now, solution);
        }
        for (slot, rates) in self.scratch.running.iter().zip(&solution.threads) {
            let thread = &mut self.threads[slot.thread];
            let changed = thread.rates.ips.to_bits() != rates.ips.to_bits();
            thread.rates = *rates;
            // Equal cores have equal energies, so the one for which it is solved will do.
            let core = self.chip.places()[slot.pu].core;
            let mix = &thread.demand.phase.spec.mix;
            thread.instruction_j = self.meter.instruction_j(core, mix, &rates.flow);
            let spin_s = self.programs[thread.program].spin_s;
            let returns = returns_per_instr(&thread.demand, rates.lock, spin_s);
            let warms = thread.warming.is_new() || changed && thread.warming.is_open();
            if warms {
                thread.halt(self.now);
                let place = (&*self.chip, self.meter.as_ref(), slot.pu);
                thread.warm(place, Warming::settle);
            }
            if changed || warms || thread.deadline == NEVER || thread.returns.differs(returns) {
                thread.halt(self.now);
                thread.returns.set_rate(returns);
                thread.set_deadline(self.now);
            }
        }
        self.refresh_power();
    }

    /// Notes that a thread no longer uses what it shared.
    ///
    /// Others on its core feel that at once. On other cores caches and queues of memory take some
    /// time to change, so that rates there are worked out again after [`LAG_PS`] or when a thread
    /// begins to run, whichever is first: siblings that wait for each other only for a moment are
    /// one change, not as many as there are of them.
    pub(crate) fn note_stop(&mut self, t: usize) {
        self.idle_changed = true;
        if self.shares_core(t) {
            self.stale = true;
        } else {
            self.stale_at = self.stale_at.min(self.now + LAG_PS);
        }
    }

    fn shares_core(&self, t: usize) -> bool {
        let core = |logical: usize| self.chip.places()[self.map.physical(logical)].core;
        let Some(own) = self.threads[t].pu else {
            return false;
        };
        let mut others = (0..self.pus.len()).filter(|&pu| pu != own && core(pu) == core(own));
        others.any(|pu| self.pus[pu].current.is_some())
    }

    fn list_running(&mut self) {
        self.scratch.running.clear();
        for pu in 0..self.map.len() {
            let current = self.pus[self.map.logical(pu)].current;
            if let Some(t) = current.filter(|&t| self.threads[t].status == Status::Running) {
                let thread = &self.threads[t];
                self.scratch.running.push(Slot {
                    thread: t,
                    pu,
                    what: [
                        thread.phase as u64,
                        thread.demand.intensity.to_bits(),
                        thread.demand.home_node as u64,
                        thread.program as u64,
                    ],
                });
            }
        }
        self.canon.arrange(&mut self.scratch.running);
    }

    /// What the solution depends on, no more and no less: locks, sharing and whose code is the
    /// same follow from the phase, which belongs to one profile.
    fn list_key(&mut self) {
        let scratch = &mut self.scratch;
        scratch.key.clear();
        scratch.group.clear();
        scratch.group.resize(self.programs.len(), 0);
        let mut groups = 0;
        for slot in &scratch.running {
            let [phase, intensity, home, program] = slot.what;
            let group = &mut scratch.group[program as usize];
            if *group == 0 {
                groups += 1;
                *group = groups;
            }
            let place = (slot.pu as u64) << 32 | home;
            scratch.key.extend([place, phase << 32 | *group, intensity]);
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

fn solve(solver: &Solver, threads: &[Thread], running: &[Slot]) -> Solution {
    let demand = |slot: &Slot| Running {
        pu: slot.pu,
        demand: &threads[slot.thread].demand,
    };
    let running: Vec<Running<'_>> = running.iter().map(demand).collect();
    solver.solve(&running)
}
