//! A slot, simulated for a quantum.
//!
//! Energy is divided as for policies: a program's own energy is that of its instructions and accesses,
//! and the static power of cores while its threads are on them. The rest of the machine's energy, that
//! of uncore and idle cores, is divided by the time of threads on CPUs.

use super::Suite;
use crate::alone::build_unwatched_machine;
use crate::error::ExperimentError;
use consort_core::coscheduling::{CoscheduleSlot, ProgramMeasure, ProgramTeam, SlotTrial};
use consort_core::policies::divide_cores;
use consort_core::{Machine, Placement, Plan, ProgramId, ThreadId};
use consort_sim::SimMachine;
use consort_sim::engine::{SimulatedProgram, ThreadCounts};
use std::sync::Arc;

/// Instructions that no program does within a quantum.
const ENDLESS: f64 = 1e18;
const NS_PER_S: f64 = 1e9;

/// Lengths for which a slot is simulated.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrialLengths {
    /// Time before it is measured, s.
    pub warm_s: f64,
    /// Time for which it is measured, s.
    pub length_s: f64,
}

/// Trials of a suite's slots.
#[derive(Clone, Copy, Debug)]
pub struct SlotTrials<'a> {
    suite: &'a Suite,
    quantum: TrialLengths,
    seed: u64,
}

/// Work that a program had done at an instant.
#[derive(Clone, Copy, Debug, Default)]
struct ProgramWork {
    instructions: f64,
    cycles: f64,
    llc_accesses: f64,
    llc_misses: f64,
    memory_lines: f64,
    queue_cycles: f64,
    on_pu_s: f64,
    working_s: f64,
    own_j: f64,
}

/// A trial and what else is known of it.
#[derive(Clone, Debug)]
pub(super) struct DetailedTrial {
    pub(super) trial: SlotTrial,
    /// Of each program: threads that work, on average.
    pub(super) working: Vec<f64>,
}

impl<'a> SlotTrials<'a> {
    /// Trials that last for `quantum`; their variation follows from the seed.
    pub fn new(suite: &'a Suite, quantum: TrialLengths, seed: u64) -> Self {
        Self {
            suite,
            quantum,
            seed,
        }
    }

    /// The suite.
    pub fn suite(&self) -> &'a Suite {
        self.suite
    }

    /// Runs a slot; programs that are not the suite's do nothing in it.
    ///
    /// # Errors
    /// A slot without programs.
    pub fn run(&self, slot: &CoscheduleSlot) -> Result<SlotTrial, ExperimentError> {
        Ok(self.run_detailed(slot)?.trial)
    }

    pub(super) fn run_detailed(
        &self,
        slot: &CoscheduleSlot,
    ) -> Result<DetailedTrial, ExperimentError> {
        let mut machine = self.machine(slot)?;
        machine.enact(&self.plan(&machine, slot, 1, self.quantum.warm_s))?;
        machine.observe()?;
        // The first quantum only warms caches and queues up; counts are differences from here on.
        let before = (work_done(&machine, slot), machine.energy_j());
        machine.enact(&self.plan(&machine, slot, 2, self.quantum.length_s))?;
        machine.observe()?;
        let after = work_done(&machine, slot);
        let parts: Vec<ProgramWork> = after
            .iter()
            .zip(&before.0)
            .map(|(a, b)| a.since(b))
            .collect();
        Ok(self.build_trial(slot, &parts, machine.energy_j() - before.1))
    }

    fn machine(&self, slot: &CoscheduleSlot) -> Result<SimMachine, ExperimentError> {
        let member = |instance: &&consort_sim::workload::ProgramInstance| SimulatedProgram {
            program: Arc::clone(&instance.program),
            threads: instance.threads,
            instructions: ENDLESS,
            start_ms: 0.0,
        };
        let instances: Vec<SimulatedProgram> =
            self.suite.members(slot).iter().map(member).collect();
        let quantum_ns = (self.quantum.length_s * NS_PER_S) as u64;
        build_unwatched_machine(self.suite.chip(), &instances, self.seed, quantum_ns)
    }

    /// Every program on its cores, with as many threads if it is malleable.
    fn plan(
        &self,
        machine: &SimMachine,
        slot: &CoscheduleSlot,
        generation: u64,
        length_s: f64,
    ) -> Plan {
        let seats = divide_cores(self.suite.chip().topology(), slot);
        let mut plan = Plan {
            generation,
            quantum_ns: Some((length_s * NS_PER_S) as u64),
            ..Plan::default()
        };
        let programs = programs(machine);
        for (team, (program, threads)) in slot.teams.iter().zip(programs) {
            plan.teams.insert(program, team.cores);
            let Some(seat) = seats.get(&team.program) else {
                continue;
            };
            let placed = threads
                .into_iter()
                .map(|t| (t, Placement::Restricted(seat.clone())));
            plan.placements.extend(placed);
        }
        plan
    }

    fn build_trial(
        &self,
        slot: &CoscheduleSlot,
        parts: &[ProgramWork],
        energy_j: f64,
    ) -> DetailedTrial {
        let sum = |of: fn(&ProgramWork) -> f64| parts.iter().map(of).sum::<f64>();
        let on_pu_s = sum(|done| done.on_pu_s);
        let rest_w = if on_pu_s > 0.0 {
            (energy_j - sum(|done| done.own_j)).max(0.0) / on_pu_s
        } else {
            0.0
        };
        let spec = self.suite.chip().spec();
        let (line_bytes, gb_s) = (
            f64::from(spec.memory.line_bytes),
            spec.interconnect.bandwidth_gb_s,
        );
        let measure = |(done, team): (&ProgramWork, &ProgramTeam)| ProgramMeasure {
            cores: team.cores,
            time_ns: self.quantum.length_s * NS_PER_S,
            energy_j: done.own_j + rest_w * done.on_pu_s,
            ..done.measure(line_bytes, gb_s)
        };
        let working = |done: &ProgramWork| done.working_s / self.quantum.length_s;
        DetailedTrial {
            working: parts.iter().map(working).collect(),
            trial: SlotTrial {
                measures: parts.iter().zip(&slot.teams).map(measure).collect(),
                slot: slot.clone(),
            },
        }
    }
}

impl ProgramWork {
    fn add(&mut self, counts: &ThreadCounts) {
        self.instructions += counts.instructions;
        self.cycles += counts.cycles;
        self.llc_accesses += counts.flow.llc_accesses;
        self.llc_misses += counts.flow.llc_misses;
        self.memory_lines += counts.flow.memory_lines;
        self.queue_cycles += counts.stack.queue;
        self.on_pu_s += counts.on_pu_s;
        self.working_s += counts.on_pu_s - counts.spin_s - counts.overhead_s;
        self.own_j += counts.energy_j;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            instructions: self.instructions - before.instructions,
            cycles: self.cycles - before.cycles,
            llc_accesses: self.llc_accesses - before.llc_accesses,
            llc_misses: self.llc_misses - before.llc_misses,
            memory_lines: self.memory_lines - before.memory_lines,
            queue_cycles: self.queue_cycles - before.queue_cycles,
            on_pu_s: self.on_pu_s - before.on_pu_s,
            working_s: self.working_s - before.working_s,
            own_j: self.own_j - before.own_j,
        }
    }

    /// The counters that choosers use.
    fn measure(&self, line_bytes: f64, bandwidth_gb_s: f64) -> ProgramMeasure {
        let busy_s = self.memory_lines * line_bytes / bandwidth_gb_s / NS_PER_S;
        let hz = if self.on_pu_s > 0.0 {
            self.cycles / self.on_pu_s
        } else {
            0.0
        };
        ProgramMeasure {
            instructions: self.instructions,
            cycles: self.cycles,
            llc_accesses: self.llc_accesses,
            llc_misses: self.llc_misses,
            bus_busy_cycles: busy_s * hz,
            bus_queue_cycles: self.queue_cycles,
            on_pu_ns: self.on_pu_s * NS_PER_S,
            ..ProgramMeasure::default()
        }
    }
}

/// Programs of a machine in the order in which they were given, with their threads.
fn programs(machine: &SimMachine) -> Vec<(ProgramId, Vec<ThreadId>)> {
    let mut programs: Vec<(ProgramId, Vec<ThreadId>)> = Vec::new();
    for thread in machine.oracle().threads() {
        match programs.last_mut() {
            Some((id, threads)) if *id == thread.program() => threads.push(thread),
            _ => programs.push((thread.program(), vec![thread])),
        }
    }
    programs
}

/// Work of each program of a slot so far.
fn work_done(machine: &SimMachine, slot: &CoscheduleSlot) -> Vec<ProgramWork> {
    let oracle = machine.oracle();
    let of = |(_, threads): (ProgramId, Vec<ThreadId>)| {
        let mut done = ProgramWork::default();
        let counts = threads.into_iter().filter_map(|id| oracle.counts(id));
        counts.for_each(|counts| done.add(&counts));
        done
    };
    let mut all: Vec<ProgramWork> = programs(machine).into_iter().map(of).collect();
    all.resize(slot.teams.len(), ProgramWork::default());
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::suite;

    fn run(suite: &Suite, cores: &[u32]) -> SlotTrial {
        let team = |(id, &cores): (ProgramId, &u32)| ProgramTeam { program: id, cores };
        let slot = CoscheduleSlot {
            teams: suite.ids().zip(cores).map(team).collect(),
        };
        let quantum = TrialLengths {
            warm_s: 0.1,
            length_s: 0.5,
        };
        SlotTrials::new(suite, quantum, 1).run(&slot).unwrap()
    }

    #[test]
    fn linear_program_scales_with_cores() {
        let suite = suite(&["swaptions"]);
        let speed = |cores| run(&suite, &[cores]).measures[0].throughput();
        let ratio = speed(8) / speed(2);
        assert!(ratio > 3.7 && ratio < 4.05, "{ratio}");
    }

    #[test]
    fn energy_shares_sum_to_the_machine() {
        let suite = suite(&["swaptions", "canneal"]);
        let trial = run(&suite, &[3, 5]);
        let watts: f64 = trial.measures.iter().map(ProgramMeasure::power_w).sum();
        // 164 W of the uncore, 4 W per core and what the work takes.
        assert!(watts > 164.0 + 8.0 * 4.0 && watts < 320.0, "{watts}");
    }

    #[test]
    fn only_programs_that_share_memory_slow_down() {
        let alone = |name: &str| run(&suite(&[name]), &[4]).measures[0].throughput();
        let slowed = |names: [&str; 2]| {
            run(&suite(&names), &[4, 4]).measures[0].throughput() / alone(names[0])
        };
        let (bound, free) = (["canneal", "streamcluster"], ["swaptions", "blackscholes"]);
        assert!(slowed(bound) < 0.95, "{}", slowed(bound));
        assert!(slowed(free) > 0.98, "{}", slowed(free));
    }

    #[test]
    fn the_same_seed_gives_the_same_trial() {
        let suite = suite(&["vips", "dedup"]);
        assert_eq!(run(&suite, &[4, 4]), run(&suite, &[4, 4]));
    }
}
