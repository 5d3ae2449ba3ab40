//! Slowdowns of threads that share a core, solved and remembered.

use consort_sim::chip::Chip;
use consort_sim::contention::{Demand, RunningThread, Solver};
use consort_sim::phase::Phase;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Solver of groups on the first of the cores with most PUs.
pub struct GroupSlowdowns {
    solver: Solver,
    /// PUs of the core.
    pus: Vec<usize>,
    /// Every phase that has been seen; its place is its number.
    phases: Vec<Arc<Phase>>,
    /// Instructions per second of the threads of a group, by what they do.
    known: BTreeMap<Vec<DemandKey>, Vec<f64>>,
}

/// Parts of a demand that decide: number of the phase, program, text, node of its memory.
type DemandKey = (usize, u32, u32, usize);

impl GroupSlowdowns {
    /// A solver that has seen nothing yet.
    pub fn new(chip: &Arc<Chip>) -> Self {
        let cores = chip.topology().cores();
        let widest = cores.iter().min_by_key(|core| Reverse(core.pus.len()));
        let pus = widest.map(|core| core.pus.iter().map(|pu| pu.0 as usize).collect());
        Self {
            solver: Solver::new(Arc::clone(chip)),
            pus: pus.unwrap_or_default(),
            phases: Vec::new(),
            known: BTreeMap::new(),
        }
    }

    /// The slowdown of each thread when these run on one core.
    pub fn group_slowdowns(&mut self, threads: &[&Demand]) -> Vec<f64> {
        let together = self.speeds(threads);
        let alone = threads.iter().map(|&thread| self.speeds(&[thread])[0]);
        let alone: Vec<f64> = alone.collect();
        alone
            .iter()
            .zip(together)
            .map(|(alone, with)| alone / with)
            .collect()
    }

    fn speeds(&mut self, threads: &[&Demand]) -> Vec<f64> {
        let key: Vec<DemandKey> = threads
            .iter()
            .map(|thread| self.demand_key(thread))
            .collect();
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let speeds = self.solve(threads);
        self.known.insert(key, speeds.clone());
        speeds
    }

    fn solve(&self, threads: &[&Demand]) -> Vec<f64> {
        let at_mean = |thread: &&Demand| Demand {
            intensity: 1.0,
            ..(*thread).clone()
        };
        let demands: Vec<Demand> = threads.iter().map(at_mean).collect();
        let running = self.pus.iter().zip(&demands);
        let running: Vec<RunningThread<'_>> = running
            .map(|(&pu, demand)| RunningThread { pu, demand })
            .collect();
        let solution = self.solver.solve(&running);
        let mut speeds: Vec<f64> = solution.threads.iter().map(|rates| rates.ips).collect();
        // A group of more threads than PUs takes turns.
        let turns = threads.len() as f64 / running.len().max(1) as f64;
        speeds.iter_mut().for_each(|speed| *speed /= turns);
        speeds.resize(threads.len(), speeds.last().copied().unwrap_or(1.0));
        speeds
    }

    fn demand_key(&mut self, thread: &Demand) -> DemandKey {
        let known = self
            .phases
            .iter()
            .position(|phase| Arc::ptr_eq(phase, &thread.phase));
        let phase = known.unwrap_or(self.phases.len());
        if known.is_none() {
            self.phases.push(Arc::clone(&thread.phase));
        }
        (phase, thread.program, thread.text, thread.home_node)
    }
}
