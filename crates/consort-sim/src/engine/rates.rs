//! Rates of the threads that run, solved or remembered.

use super::canonical::{CanonicalPlacement, SolverSlot};
use super::energy::EnergyAccount;
use super::kernel::SimulatedKernel;
use super::memo::{Memo, MemoUse};
use super::thread::{SimulatedThread, ThreadStatus};
use super::time::NEVER;
use super::warming::CacheWarming;
use crate::chip::Chip;
use crate::contention::{RunningThread, Solution, Solver, ThreadRates};
use std::sync::Arc;

/// Threads that run, and their rates.
pub(crate) struct RateSolver {
    solver: Solver,
    memo: Memo,
    canon: CanonicalPlacement,
    /// Running threads, in the order in which they were solved last.
    running: Vec<SolverSlot>,
    key: Vec<u64>,
    /// Group of siblings of each program, by first appearance; 0 for none yet.
    group: Vec<u64>,
}

impl RateSolver {
    /// No rates yet.
    pub(crate) fn new(chip: &Arc<Chip>) -> Self {
        Self {
            solver: Solver::new(Arc::clone(chip)),
            memo: Memo::new(),
            canon: CanonicalPlacement::new(chip),
            running: Vec::new(),
            key: Vec::new(),
            group: Vec::new(),
        }
    }

    /// Running threads with the solution for them, in its order.
    pub(crate) fn solve(
        &mut self,
        kernel: &SimulatedKernel,
        threads: &[SimulatedThread],
    ) -> (&[SolverSlot], &Solution) {
        self.list_running(kernel, threads);
        self.list_key(threads);
        let (solver, running) = (&self.solver, &self.running);
        let solve = || solve(solver, threads, running);
        (running, self.memo.get(&self.key, solve))
    }

    /// Number of times that solutions were reused.
    pub(crate) fn memo_use(&self) -> MemoUse {
        self.memo.usage()
    }

    fn list_running(&mut self, kernel: &SimulatedKernel, threads: &[SimulatedThread]) {
        self.running.clear();
        for (pu, t) in kernel.occupied_pus_in_order() {
            let thread = &threads[t];
            if thread.status == ThreadStatus::Running {
                self.running.push(SolverSlot {
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
        self.canon.arrange(&mut self.running);
    }

    /// Lists what the solution depends on, no more and no less: locks, sharing and common code
    /// follow from the phase, which belongs to one profile.
    fn list_key(&mut self, threads: &[SimulatedThread]) {
        self.key.clear();
        self.group.clear();
        let programs = threads.last().map_or(0, |t| t.program + 1);
        self.group.resize(programs, 0);
        let mut groups = 0;
        for slot in &self.running {
            let [phase, intensity, home, program] = slot.what;
            let group = &mut self.group[program as usize];
            if *group == 0 {
                groups += 1;
                *group = groups;
            }
            let place = (slot.pu as u64) << 32 | home;
            self.key.extend([place, phase << 32 | *group, intensity]);
        }
    }
}

impl SimulatedThread {
    /// Takes new rates in at a PU of the chip; `returns` as [`super::lock::frequent`] has them.
    pub(crate) fn take_rates(
        &mut self,
        (pu, rates, returns): (usize, &ThreadRates, f64),
        account: &EnergyAccount,
        now: u64,
    ) {
        let changed = self.rates.ips.to_bits() != rates.ips.to_bits();
        self.rates = *rates;
        // Equal cores have equal energies, so the one for which it is solved will do.
        self.instruction_j = account.instruction_j(self, pu);
        let warms = self.warming.is_new() || changed && self.warming.is_open();
        if warms {
            self.halt(now);
            account.update_warming(self, pu, CacheWarming::apply_rates);
        }
        if changed || warms || self.deadline == NEVER || self.returns.differs(returns) {
            self.halt(now);
            self.returns.set_rate(returns);
            self.set_deadline(now);
        }
    }
}

fn solve(solver: &Solver, threads: &[SimulatedThread], running: &[SolverSlot]) -> Solution {
    let demand = |slot: &SolverSlot| RunningThread {
        pu: slot.pu,
        demand: &threads[slot.thread].demand,
    };
    let running: Vec<RunningThread<'_>> = running.iter().map(demand).collect();
    solver.solve(&running)
}
