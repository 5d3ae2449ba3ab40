//! Setting a machine up with its programs.

use super::Engine;
use super::cache_contents::Moves;
use super::calendar::{Calendar, after};
use super::counts::ThreadCounters;
use super::draw::{BurstFactor, Io, Purpose, RandomStream, is_common};
use super::energy::EnergyAccount;
use super::kernel::SimulatedKernel;
use super::lock::{KernelReturns, LockAcquisitions, WaitTime, are_events, locks};
use super::observer::EnergyMeter;
use super::programs::{ProgramState, ProgramTable};
use super::rates::RateSolver;
use super::simulated_program::{EngineError, SimulatedProgram, SimulationSettings};
use super::steps::{ProgramSteps, RunProperties, stage_index, whole_passes};
use super::sync::CallCosts;
use super::thread::{QueueState, SimulatedThread, ThreadClock, ThreadStatus};
use super::thread_caches::ThreadCaches;
use super::work::{PhaseTable, ThreadWork};
use crate::chip::Chip;
use crate::contention::{Demand, ThreadRates};
use crate::program::{LockSpec, StageSpec};
use consort_core::{PuSet, ThreadId};
use std::sync::Arc;

/// Id of the first thread; ids ascend in the order of the workload.
pub const FIRST_PID: u32 = 1000;

impl Engine {
    pub(crate) fn new(
        chip: Arc<Chip>,
        instances: &[SimulatedProgram],
        settings: &SimulationSettings,
        meter: Box<dyn EnergyMeter>,
    ) -> Result<Self, EngineError> {
        check(instances)?;
        let mut arrivals = RandomStream::new(settings.seed, Purpose::Os, 0, 1);
        let mut engine = Self {
            calls: CallCosts::new(&chip.spec().os),
            phases: PhaseTable::default(),
            observer: None,
            calendar: Calendar::new(),
            threads: Vec::new(),
            programs: ProgramTable::new(arrivals.order(instances.len()), settings.mode),
            kernel: SimulatedKernel::new(&chip, settings)?,
            moves: Moves::new(&chip, settings.free_migration),
            rates: RateSolver::new(&chip),
            account: EnergyAccount::new(&chip, meter),
            chip,
        };
        let all = Arc::new(engine.chip.topology().pus().clone());
        for instance in instances {
            engine.add(instance, settings.seed, &all);
        }
        engine.expect_tick();
        engine.handle_due();
        Ok(engine)
    }

    fn add(&mut self, instance: &SimulatedProgram, seed: u64, all: &Arc<PuSet>) {
        let (number, first) = (self.programs.len(), self.threads.len());
        let count = instance.threads as usize;
        let spec = instance.program.threads.as_ref();
        let cycle = self.phases.intern_cycle(&instance.program, None);
        let cores = self.chip.core_types().iter();
        let processes = self.programs.processes(&instance.program);
        let run = RunProperties {
            threads: count,
            instructions: instance.instructions / f64::from(processes),
            pass_instr: self.phases.pass_instr(cycle),
            hz: cores.map(|c| c.frequency_ghz * 1e9).fold(1.0, f64::max),
        };
        let steps = ProgramSteps::new(spec, run);
        let phase_instr = whole_passes(run) * run.pass_instr / run.instructions.max(1.0);
        let divides = count > 1 && spec.is_some_and(|threads| threads.divide_work);
        for rank in 0..count {
            let thread = self.thread(instance, seed, rank, steps.progress, all);
            self.threads.push(thread);
        }
        self.programs.push(ProgramState {
            name: instance.program.name.clone(),
            members: first..first + count,
            steps,
            draw: RandomStream::new(seed, Purpose::Barrier, number, 0),
            work: Vec::new(),
            position: (divides && cycle.len > 1).then_some(0.0),
            phase_instr,
            arrived: 0,
            waited: WaitTime::default(),
            locks: locks(&self.threads[first].work.locks),
            spin_s: spec.map_or(0.0, |t| t.spin_us * 1e-6),
            bursts_together: is_common(&instance.program),
            start_ps: after(0, instance.start_ms * 1e-3),
            begun: false,
            is_endless: instance.instructions >= SimulatedProgram::ENDLESS,
            paused: false,
            processes_left: processes - 1,
            completions: Vec::new(),
            run_start_ps: 0,
            before: (0.0, 0.0),
        });
    }

    fn thread(
        &mut self,
        instance: &SimulatedProgram,
        seed: u64,
        rank: usize,
        progress: f64,
        all: &Arc<PuSet>,
    ) -> SimulatedThread {
        let program = self.programs.len();
        let spec = &instance.program;
        let draw = |purpose| RandomStream::new(seed, purpose, program, rank);
        let stage = stage(instance, rank);
        let text = self.phases.intern_cycle(spec, None).first as u32;
        let cycle = self
            .phases
            .intern_cycle(spec, stage.map(|(number, _)| number));
        let (burst, factor) = self.burst(instance, seed, rank);
        let number = self.threads.len() as u32;
        let pid = FIRST_PID + self.threads.len() as u32 - rank as u32;
        SimulatedThread {
            id: ThreadId {
                pid,
                tid: FIRST_PID + number,
                start_ticks: 0,
            },
            name: stage
                .map_or(spec.name.as_str(), |(_, s)| s.name.as_str())
                .into(),
            program,
            status: ThreadStatus::Unborn,
            gone: false,
            work: ThreadWork {
                cycle,
                phase: cycle.first,
                phase_left: self.phases.entries[cycle.first].instructions,
                pace: 1.0,
                step_left: 0.0,
                again: false,
                burst,
                io: Io::new(spec.io, draw(Purpose::Io)),
                locks: LockAcquisitions::new(lock(instance), draw(Purpose::Lock)),
                returns: KernelReturns::new(self.calls.wait_cycles(), 0.0),
                faults: KernelReturns::new(
                    self.chip.spec().os.fault_cycles,
                    spec.page_faults_per_minstr.unwrap_or(0.0) / 1e6,
                ),
            },
            demand: self.demand(instance, text, cycle.first, factor),
            queue: QueueState {
                original: Arc::clone(all),
                allowed: PuSet::clone(all),
                pu: None,
                vruntime_ps: 0,
                ran_until: 0,
            },
            clock: ThreadClock::new(progress),
            caches: ThreadCaches::new(),
            rates: ThreadRates::default(),
            instruction_j: 0.0,
            static_w: 0.0,
            counters: ThreadCounters::default(),
        }
    }

    /// A thread's burstiness and its first factor.
    fn burst(&self, instance: &SimulatedProgram, seed: u64, rank: usize) -> (BurstFactor, f64) {
        let spec = &instance.program;
        let of = |rank| {
            let draw = RandomStream::new(seed, Purpose::Burst, self.programs.len(), rank);
            BurstFactor::new(spec.burstiness, draw)
        };
        if rank == 0 || !is_common(spec) {
            let own = of(rank);
            let factor = own.factor();
            return (own, factor);
        }
        let draw = RandomStream::new(seed, Purpose::Burst, self.programs.len(), rank);
        (BurstFactor::new(None, draw), of(0).factor())
    }

    /// Returns a thread's first demand. The number of a text is that of the program's first phase
    /// in the table, where equal programs share their entries.
    fn demand(
        &self,
        instance: &SimulatedProgram,
        text: u32,
        phase: usize,
        intensity: f64,
    ) -> Demand {
        let spec = instance.program.threads.as_ref();
        let threads = spec.filter(|_| instance.threads > 1);
        Demand {
            phase: Arc::clone(&self.phases.entries[phase].phase),
            intensity,
            program: self.programs.len() as u32,
            text,
            shared_data: threads.map_or(0.0, |t| t.shared_data),
            shared_code: spec.map_or(1.0, |t| t.shared_code),
            lock: lock(instance).filter(|lock| !are_events(lock)),
            home_node: 0,
        }
    }
}

/// The locks of a program; `None` for one thread, which never waits.
fn lock(instance: &SimulatedProgram) -> Option<LockSpec> {
    let threads = instance.program.threads.as_ref();
    threads.filter(|_| instance.threads > 1)?.lock
}

fn stage(instance: &SimulatedProgram, rank: usize) -> Option<(usize, &StageSpec)> {
    let stages = &instance.program.threads.as_ref()?.stages;
    let number = stage_index(stages, rank, instance.threads as usize)?;
    stages.get(number).map(|stage| (number, stage))
}

fn check(instances: &[SimulatedProgram]) -> Result<(), EngineError> {
    if instances.is_empty() {
        return Err(EngineError::NoProgram);
    }
    for instance in instances {
        let program = instance.program.name.clone();
        let (instructions, start_ms) = (instance.instructions, instance.start_ms);
        if instance.threads == 0 {
            return Err(EngineError::NoThread { program });
        }
        if !(instructions.is_finite() && instructions > 0.0) {
            return Err(EngineError::Work {
                program,
                instructions,
            });
        }
        if !(start_ms.is_finite() && start_ms >= 0.0) {
            return Err(EngineError::Start { program, start_ms });
        }
    }
    Ok(())
}
