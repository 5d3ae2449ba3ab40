//! The driver: samples, trials, slots in turn.

use super::alone_measure_table::AloneMeasureTable;
use super::core_division::divide_cores;
use super::observed_programs::ObservedPrograms;
use super::running_slot::RunningSlot;
use super::sleeping_programs::SleepingPrograms;
use super::slot_rotation::SlotRotation;
use crate::coscheduling::{Chooser, ChooserStep, CoscheduleSlot, ProgramMeasure, SlotTrial};
use crate::ids::ProgramId;
use crate::plan::{Decision, Reason};
use crate::sample::Observation;
use crate::topology::Topology;
use std::collections::BTreeSet;

/// Intervals in which a quantum is observed: half of the counters fit at once where they take
/// turns.
pub(super) const PARTS: u64 = 2;

/// Settings in which the policies differ beside their choosers.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoschedulingSettings {
    /// Length of a quantum, ns.
    pub(super) quantum_ns: u64,
    /// True where the machine tells energy.
    pub(super) metered: bool,
    /// True where programs are sampled alone.
    pub(super) sampled: bool,
    /// Greatest distance from linear scaling, a share, at which programs are left alone; none looks
    /// at no scaling.
    pub(super) alpha: Option<f64>,
    /// Shift that is a change of phase, a share; none heeds no phases.
    pub(super) phase: Option<f64>,
    /// True where slots that prove worse lead back to the gang.
    pub(super) revert: bool,
}

/// Stage of a round.
#[derive(Clone, Debug, Default)]
pub(super) enum RoundStage {
    /// Programs run alone to be measured.
    #[default]
    Sampling,
    /// Slots run to be tried.
    Choosing,
    /// Slots run in turn.
    Turns(SlotRotation),
}

/// Runs the slots that a chooser chooses.
pub(super) struct Driver {
    pub(super) settings: CoschedulingSettings,
    chooser: Box<dyn Chooser>,
    /// Programs that take turns.
    pub(super) programs: Vec<ProgramId>,
    sleepers: SleepingPrograms,
    /// Programs that could run in the interval that ends.
    ran: BTreeSet<ProgramId>,
    pub(super) cores: u32,
    pub(super) samples: AloneMeasureTable,
    /// Programs that scale nearly linearly.
    pub(super) linear: Vec<ProgramId>,
    pub(super) stage: RoundStage,
    pub(super) running: Option<RunningSlot>,
    /// Program whose turn it was when the last round was left: the next one begins after it, as
    /// programs that come and go all the time would otherwise give the first slot every turn.
    after: Option<ProgramId>,
    /// Quanta that the last samples and trials took.
    looked: u64,
    /// Reason for which the last round was left, if it was.
    pub(super) left: Option<String>,
}

impl Driver {
    pub(super) fn new(settings: CoschedulingSettings, chooser: Box<dyn Chooser>) -> Self {
        Self {
            settings,
            chooser,
            programs: Vec::new(),
            sleepers: SleepingPrograms::default(),
            ran: BTreeSet::new(),
            cores: 0,
            samples: AloneMeasureTable::default(),
            linear: Vec::new(),
            stage: RoundStage::default(),
            running: None,
            after: None,
            looked: 0,
            left: None,
        }
    }

    /// Takes an interval in.
    pub(super) fn observe_interval(
        &mut self,
        topology: &Topology,
        roster: &ObservedPrograms<'_>,
        seen: &Observation,
    ) {
        self.sleepers.record_interval(seen, roster, &self.ran);
        let awake = roster.ids().into_iter();
        let programs: Vec<ProgramId> = awake.filter(|id| !self.sleepers.contains(*id)).collect();
        let cores = topology.cores().len() as u32;
        if cores != self.cores {
            (self.cores, self.samples) = (cores, AloneMeasureTable::default());
            self.begin_round(programs);
        } else if programs != self.programs {
            self.begin_round(programs);
        } else if let Some(running) = &mut self.running
            && let Some(trial) = running.add_interval(seen, self.settings.metered)
        {
            self.handle_trial(trial);
        }
    }

    /// Begins a round anew with these programs.
    fn begin_round(&mut self, programs: Vec<ProgramId>) {
        self.samples.retain(&programs);
        if let (RoundStage::Turns(_), Some(running)) = (&self.stage, &self.running) {
            self.after = running.slot.teams.first().map(|team| team.program);
        }
        self.programs = programs;
        (self.left, self.looked) = (None, 0);
        self.sample_next();
    }

    fn handle_trial(&mut self, trial: SlotTrial) {
        match &mut self.stage {
            RoundStage::Sampling => {
                self.looked += 1;
                self.samples.record_trial(&trial);
                self.sample_next();
            }
            RoundStage::Choosing => {
                self.looked += 1;
                self.try_next_slot(Some(&trial));
            }
            RoundStage::Turns(turns) => {
                let round = turns.finish_slot(trial);
                if !(round && self.end_round()) {
                    self.run_turn();
                }
            }
        }
    }

    /// Runs the next program that is to be measured alone, or begins to choose.
    fn sample_next(&mut self) {
        self.linear.clear();
        if self.programs.len() < 2 {
            return self.run_gang();
        }
        self.stage = RoundStage::Sampling;
        match self
            .samples
            .next_missing_slot(&self.programs, &self.sampled_core_counts())
        {
            Some(slot) => self.run_slot(slot, 1),
            None => self.begin_choosing(),
        }
    }

    /// Numbers of cores that programs are measured on alone.
    fn sampled_core_counts(&self) -> Vec<u32> {
        let all = self.settings.sampled.then_some(self.cores);
        let one = self.settings.alpha.map(|_| 1);
        all.into_iter().chain(one).collect()
    }

    fn begin_choosing(&mut self) {
        let linear = |id: &ProgramId| {
            let alpha = self.settings.alpha;
            alpha.is_some_and(|alpha| self.samples.is_near_linear(*id, self.cores, alpha))
        };
        let (linear, others): (Vec<_>, Vec<_>) = self.programs.iter().partition(|id| linear(id));
        let alone = |id: ProgramId| {
            let known = self.samples.get(id, self.cores);
            (id, known.copied().unwrap_or_default())
        };
        let alone: Vec<(ProgramId, ProgramMeasure)> = others.into_iter().map(alone).collect();
        self.chooser.begin(self.cores, &alone);
        self.linear = linear;
        self.stage = RoundStage::Choosing;
        self.try_next_slot(None);
    }

    /// Runs the next trial that the chooser wants, but for those that samples have answered.
    fn try_next_slot(&mut self, last: Option<&SlotTrial>) {
        let mut sampled = None;
        loop {
            match self.chooser.next(sampled.as_ref().or(last)) {
                ChooserStep::Try(slot) => match self.samples.sampled_trial(&slot) {
                    Some(trial) => sampled = Some(trial),
                    None => return self.run_slot(slot, 1),
                },
                ChooserStep::Done(mut slots) => {
                    slots.extend(
                        self.linear
                            .iter()
                            .map(|&id| CoscheduleSlot::alone(id, self.cores)),
                    );
                    return self.take_turns(slots);
                }
            }
        }
    }

    /// Lets every program run on its own, in turn.
    fn run_gang(&mut self) {
        let alone = |&id: &ProgramId| CoscheduleSlot::alone(id, self.cores);
        self.take_turns(self.programs.iter().map(alone).collect());
    }

    fn take_turns(&mut self, slots: Vec<CoscheduleSlot>) {
        self.stage = RoundStage::Turns(SlotRotation::new(slots, self.after.take()));
        self.run_turn();
    }

    fn run_turn(&mut self) {
        let RoundStage::Turns(turns) = &self.stage else {
            return;
        };
        match turns.slot().cloned() {
            Some(slot) => {
                let quanta = slot.quanta();
                self.run_slot(slot, quanta);
            }
            None => self.running = None,
        }
    }

    fn run_slot(&mut self, slot: CoscheduleSlot, quanta: u32) {
        self.running = Some(RunningSlot::new(slot, quanta, self.settings.quantum_ns));
    }

    /// Ends a round: begins anew where a program is in another phase, goes back to the gang where
    /// slots are worse. Returns true where either is so.
    fn end_round(&mut self) -> bool {
        let RoundStage::Turns(turns) = &mut self.stage else {
            return false;
        };
        let phase = self.settings.phase;
        let shifted = phase.and_then(|p| turns.find_phase_shift(p, &self.samples, self.cores));
        if let Some((id, shift)) = shifted {
            if turns.quanta() < self.looked {
                return false;
            }
            self.samples.forget(id);
            self.looked = 0;
            self.sample_next();
            self.left = Some(format!("a new phase of {id}: {shift}"));
            return true;
        }
        let reverts = self.settings.revert && turns.has_shared_slots();
        let overall =
            turns.overall_energy_delay(&turns.compare_with_gang(&self.samples, self.cores));
        let Some(worse) = overall.filter(|overall| reverts && *overall > 1.0) else {
            return false;
        };
        self.run_gang();
        self.left = Some(format!(
            "back to the gang: overall energy-delay of the slots was {worse:.3} of the gang's"
        ));
        true
    }

    /// Notes which programs may run under a decision.
    pub(super) fn record_runnable(&mut self, roster: &ObservedPrograms<'_>, decision: &Decision) {
        let ids = roster.ids().into_iter();
        self.ran = ids.filter(|id| !decision.paused.contains(id)).collect();
    }

    /// Adds what its programs are to do to a decision; returns notes for the report.
    pub(super) fn add_to_decision(
        &self,
        topology: &Topology,
        roster: &ObservedPrograms<'_>,
        decision: &mut Decision,
    ) -> Vec<String> {
        if self.running.is_none() && roster.members.is_empty() {
            return Vec::new();
        }
        // Also while all sleep: one that wakes up is to be noticed.
        decision.quantum_ns = Some((self.settings.quantum_ns / PARTS).max(1));
        let (sleeping, awake): (Vec<_>, Vec<_>) =
            (roster.members.iter()).partition(|member| self.sleepers.contains(member.id));
        for member in sleeping {
            let reason = Reason {
                considered: "programs that want to run take turns".to_owned(),
                chosen: "it wants hardly any processor time, so it takes no turns".to_owned(),
                facts: Vec::new(),
            };
            member.unrestrict_threads(&reason, decision);
        }
        let Some(running) = &self.running else {
            return Vec::new();
        };
        let account = self.explain_slot(running, roster);
        let seats = divide_cores(topology, &running.slot);
        for member in awake {
            let reason = account.reason(member.id, roster);
            match seats.get(&member.id) {
                Some(pus) => {
                    decision.teams.insert(member.id, pus.len() as u32);
                    member.place_threads(pus, topology, &reason, decision);
                }
                None => {
                    decision.paused.insert(member.id);
                    member.unrestrict_threads(&reason, decision);
                }
            }
        }
        self.notes(&account, roster)
    }
}
