//! Observations of policies in simulated runs, as stimuli.
//!
//! A recorded interval becomes a few cycles: one in which it passes, those that the unit needs to
//! add up, one in which threads are switched in, and one with the levels at its end, in which the
//! quantum's exchange may be decided.

use crate::compare::{ComparisonSummary, LockstepPair};
use crate::cycle::{CycleInputs, USER};
use crate::error::RtlError;
use crate::model::RtlModel;
use crate::unit_parameters::{UnitParameters, UnitPolicy};
use consort_core::policies;
use consort_core::{
    Backoff, ControlLoop, IntervalEnd, Machine, Observation, Placement, Signal, ThreadId,
    ThreadObservation,
};
use consort_sim::SimMachine;
use consort_sim::chip::Chip;
use consort_sim::energy::EnergyModel;
use consort_sim::engine::{RunMode, SimulatedProgram, SimulationSettings};
use consort_sim::machine::MachineRef;
use consort_sim::pmu::{PmuRequest, SimulatedPmu};
use consort_sim::program::presets;
use std::collections::BTreeMap;
use std::error::Error as StdError;
use std::sync::Arc;

/// Length of a hardware quantum, ns.
const QUANTUM_NS: u64 = 1_000_000;
/// Work of each program: more than any run here does, instructions.
const INSTRUCTIONS: f64 = 1e12;

/// Observations of a policy in a run, each with the CPU that it put every logical core on.
#[derive(Clone, Debug)]
pub struct PolicyRecording {
    intervals: Vec<(Observation, Vec<usize>)>,
}

impl PolicyRecording {
    /// Runs programs, each with so many threads, under a policy in hardware form for so many
    /// quanta.
    ///
    /// # Errors
    /// Unknown machines, programs and policies.
    pub fn record_run(
        machine: &str,
        policy: &str,
        programs: &[(&str, u32)],
        quanta: usize,
    ) -> Result<Self, Box<dyn StdError>> {
        let loaded = machine.parse::<MachineRef>()?.load(&[])?;
        let chip = Arc::new(Chip::new(&loaded.spec, loaded.smt)?);
        let mut instances = Vec::new();
        for &(name, threads) in programs {
            instances.push(SimulatedProgram {
                program: Arc::new(presets::find(name)?),
                threads,
                instructions: INSTRUCTIONS,
                start_ms: 0.0,
            });
        }
        let settings = SimulationSettings {
            seed: 15,
            mode: RunMode::RestartThreadsUntilAllDone,
            os: "linux-acmp".to_owned(),
            logical_cores: true,
            free_migration: false,
        };
        let pmu = Box::new(SimulatedPmu::new(chip.spec(), &PmuRequest::default(), 15)?);
        let meter = Box::new(EnergyModel::new(&chip));
        let machine = SimMachine::new(chip, &instances, &settings, QUANTUM_NS, meter, pmu)?;
        let policy = policies::open(machine.topology(), machine.offers(), &policy.parse()?)?;
        let mut wheel = ControlLoop::new(machine, policy, Backoff::off(), 15);
        let mut intervals = Vec::new();
        let mut ended = 0;
        while ended < quanta
            && let Some(turn) = wheel.run_turn()?
        {
            ended += usize::from(turn.observation.ended == IntervalEnd::Quantum);
            let seats = turn.observation.threads.iter().map(|core| {
                let place = turn.plan.placements.get(&core.id);
                place.map_or(usize::MAX, first_pu)
            });
            intervals.push((turn.observation.clone(), seats.collect()));
        }
        Ok(Self { intervals })
    }

    /// Observed intervals.
    pub fn intervals(&self) -> usize {
        self.intervals.len()
    }
}

/// A placement's CPU.
fn first_pu(place: &Placement) -> usize {
    match place {
        Placement::Restricted(pus) => pus.first().map_or(usize::MAX, |pu| pu.0 as usize),
        Placement::Unrestricted => usize::MAX,
    }
}

/// Drives a unit and its policy with a recording. Returns the summary, and the number of intervals
/// in which both had the large cores where the recorded run had them.
///
/// # Errors
/// [`RtlError::Differs`] at the first exchange that is not the same.
pub fn replay(
    setting: &UnitParameters,
    model: &mut RtlModel,
    recording: &PolicyRecording,
) -> Result<(ComparisonSummary, usize), RtlError> {
    let mut player = RecordingPlayer {
        setting: *setting,
        pair: LockstepPair::new(setting, model)?,
        levels: CycleInputs::quiet_cycle(setting),
        sums: BTreeMap::new(),
        seated: vec![None; setting.cores],
    };
    let mut alike = 0;
    for (observation, seats) in &recording.intervals {
        player.replay_interval(observation)?;
        let large = |group: usize| seats[player.pair.reference.core_on_large(group)];
        alike += usize::from((0..setting.groups).all(|g| large(g) == setting.large_core(g)));
    }
    Ok((player.pair.summary, alike))
}

struct RecordingPlayer<'a> {
    setting: UnitParameters,
    pair: LockstepPair<'a>,
    /// The levels of the last cycle.
    levels: CycleInputs,
    sums: BTreeMap<ThreadId, u64>,
    /// Threads by core that were active when the interval began.
    seated: Vec<Option<ThreadId>>,
}

fn is_set(core: &ThreadObservation, signal: Signal) -> bool {
    core.sample.get(signal).is_some_and(|value| value > 0.0)
}

/// The thread that is active on a logical core.
fn active_thread(core: &ThreadObservation) -> Option<ThreadId> {
    let is = is_set(core, Signal::Runnable) && !is_set(core, Signal::Waiting);
    core.sample.occupant.filter(|_| is)
}

/// A number for a thread of one run.
fn thread_number(thread: ThreadId) -> u32 {
    thread.pid << 12 | thread.tid & 0xfff
}

impl RecordingPlayer<'_> {
    fn replay_interval(&mut self, observation: &Observation) -> Result<(), RtlError> {
        let mut end = CycleInputs::quiet_cycle(&self.setting);
        for (core, seen) in observation.threads.iter().enumerate() {
            let kernel = is_set(seen, Signal::KernelMode);
            end.cpl[core] = if kernel { 0 } else { USER };
            end.idle[core] = !is_set(seen, Signal::Runnable);
        }
        end.tick = observation.ended == IntervalEnd::Quantum;
        match self.setting.policy {
            UnitPolicy::Tcs => self.pass_counts(observation, end)?,
            UnitPolicy::Hrrs | UnitPolicy::Kuths => self.show_kernel_returns(observation, end)?,
        }
        self.acknowledge()
    }

    /// Shows the unit the cores that came back from the kernel: in the kernel first, and, where
    /// they are in it again at the end, in user code between.
    fn show_kernel_returns(
        &mut self,
        observation: &Observation,
        end: CycleInputs,
    ) -> Result<(), RtlError> {
        let mut before = CycleInputs {
            cpl: self.levels.cpl.clone(),
            idle: self.levels.idle.clone(),
            ..CycleInputs::quiet_cycle(&self.setting)
        };
        let mut between = before.clone();
        for (core, seen) in observation.threads.iter().enumerate() {
            if is_set(seen, Signal::UserReturns) {
                before.cpl[core] = 0;
                between.cpl[core] = if end.in_kernel(core) { USER } else { 0 };
            }
        }
        if before != self.levels {
            self.pair.step(&before)?;
        }
        if between != before {
            self.pair.step(&between)?;
            self.acknowledge()?;
        }
        self.pair.step(&end)?;
        self.levels = end;
        self.levels.tick = false;
        Ok(())
    }

    /// Acknowledges the exchange that was asked for, which is done at once.
    fn acknowledge(&mut self) -> Result<(), RtlError> {
        let ack: Vec<bool> = self.pair.standing.iter().map(Option::is_some).collect();
        if ack.contains(&true) {
            let inputs = CycleInputs {
                ack,
                ..self.levels.clone()
            };
            self.pair.step(&inputs)?;
        }
        Ok(())
    }

    /// Passes the counts of the interval, then threads that have come, then the decision.
    fn pass_counts(&mut self, observation: &Observation, end: CycleInputs) -> Result<(), RtlError> {
        let mut first = CycleInputs {
            time: observation.interval_ns as u32,
            tick: end.tick,
            // Whose thread has gone may be idle by now, all others only once theirs has.
            cpl: end.cpl.clone(),
            ..CycleInputs::quiet_cycle(&self.setting)
        };
        let mut second = CycleInputs::quiet_cycle(&self.setting);
        for group in 0..self.setting.groups {
            first.cpl[self.pair.reference.core_on_large(group)] = 0;
        }
        second.cpl.clone_from(&first.cpl);
        for (core, seen) in observation.threads.iter().enumerate() {
            let count = seen.sample.get(Signal::Instructions).unwrap_or(0.0);
            first.inst[core] = count.round() as u32;
            let was = self.seated[core];
            let now = active_thread(seen);
            if was != now {
                first.save[core] = was.is_some();
                second.restore[core] = now.map(|thread| (thread_number(thread), 0));
            }
        }
        let mut outputs = self.pair.step(&first)?;
        while outputs.ready_next.contains(&false) {
            let wait = CycleInputs {
                most_cycles: 49,
                cpl: first.cpl.clone(),
                ..CycleInputs::quiet_cycle(&self.setting)
            };
            outputs = self.pair.step(&wait)?;
        }
        self.switch_threads(observation, &first, &mut second, &outputs.sums);
        self.pair.step(&second)?;
        self.levels = CycleInputs { tick: false, ..end };
        self.wait_for_decision()
    }

    /// Reads the sums of threads that have gone, and gives those of threads that have come.
    fn switch_threads(
        &mut self,
        observation: &Observation,
        first: &CycleInputs,
        second: &mut CycleInputs,
        sums: &[u64],
    ) {
        for (core, &sum) in sums.iter().enumerate() {
            if first.save[core]
                && let Some(thread) = self.seated[core]
            {
                self.sums.insert(thread, sum);
            }
        }
        for (core, seen) in observation.threads.iter().enumerate() {
            self.seated[core] = active_thread(seen);
            if let (Some(thread), Some(restore)) = (active_thread(seen), &mut second.restore[core])
            {
                restore.1 = self.sums.get(&thread).copied().unwrap_or(0);
            }
        }
    }

    /// Lets the unit decide if it is to: it does so within a scan of its cores, and one more.
    fn wait_for_decision(&mut self) -> Result<(), RtlError> {
        let most_cycles = 2 * self.setting.members() as u32 + 6;
        let inputs = CycleInputs {
            most_cycles,
            ..self.levels.clone()
        };
        self.pair.step(&inputs)?;
        Ok(())
    }
}
