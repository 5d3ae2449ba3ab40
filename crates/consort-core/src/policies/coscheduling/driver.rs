//! The driver of a rotation: samples, trials, slots in turn; and a rotation for each user.

use super::divide_cores;
use super::measures::{AloneMeasureTable, SlotMeter};
use super::observed_programs::{ObservedPrograms, SleepingPrograms};
use super::slot_rotation::SlotRotation;
use crate::coscheduling::{Chooser, ChooserStep, CoscheduleSlot, ProgramMeasure, SlotTrial};
use crate::ids::ProgramId;
use crate::plan::{Decision, Reason};
use crate::policy::{Policy, PolicyRng, View, Wishes};
use crate::sample::Observation;
use crate::topology::Topology;
use std::collections::{BTreeMap, BTreeSet};

/// Intervals in which a quantum is observed: if counters take turns, half of them fit at once.
const PARTS: u64 = 2;

/// Settings in which the policies differ, in addition to their choosers.
#[derive(Clone, Copy, Debug)]
pub(super) struct CoschedulingSettings {
    /// Length of a quantum, ns.
    pub(super) quantum_ns: u64,
    /// True if the machine measures energy.
    pub(super) metered: bool,
    /// True if programs are sampled alone.
    pub(super) sampled: bool,
    /// Greatest distance from linear scaling, a share, at which programs are left alone; `None`
    /// ignores scaling.
    pub(super) alpha: Option<f64>,
    /// Shift that is a change of phase, a share; `None` ignores phases.
    pub(super) phase: Option<f64>,
    /// True if slots that prove worse lead back to the gang.
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

/// A slot, the time that it is to run, and its measures so far.
#[derive(Clone, Debug)]
pub(super) struct RunningSlot {
    pub(super) slot: CoscheduleSlot,
    pub(super) quanta: u32,
    length_ns: f64,
    meter: SlotMeter,
}

impl RunningSlot {
    /// Adds an interval. Returns the trial of the slot once it has run its time to within half an
    /// interval, because another interval would miss the time by more.
    fn add_interval(&mut self, seen: &Observation, metered: bool) -> Option<SlotTrial> {
        self.meter.add_interval(seen);
        let next = self.meter.time_ns() + seen.interval_ns as f64 / 2.0;
        (next >= self.length_ns).then(|| self.meter.trial(&self.slot, metered))
    }
}

/// Runs the slots of a chooser.
pub(super) struct Driver {
    settings: CoschedulingSettings,
    chooser: Box<dyn Chooser>,
    /// Programs that take turns.
    programs: Vec<ProgramId>,
    sleepers: SleepingPrograms,
    /// Programs that could run in the interval that ends.
    ran: BTreeSet<ProgramId>,
    pub(super) cores: u32,
    pub(super) samples: AloneMeasureTable,
    /// Programs that scale nearly linearly.
    pub(super) linear: Vec<ProgramId>,
    pub(super) stage: RoundStage,
    running: Option<RunningSlot>,
    /// Program that ran when the last round ended early. The next round begins after it, because
    /// otherwise programs that come and go all the time would give the first slot every turn.
    after: Option<ProgramId>,
    /// Quanta that the last samples and trials took.
    looked: u64,
    /// Reason why the last round ended early, if it did.
    pub(super) left: Option<String>,
}

impl Driver {
    fn new(settings: CoschedulingSettings, chooser: Box<dyn Chooser>) -> Self {
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

    fn observe_interval(
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
            // Measures are per number of cores.
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
                let is_complete = turns.finish_slot(trial);
                if !(is_complete && self.end_round()) {
                    self.run_turn();
                }
            }
        }
    }

    /// Runs the next program that must be measured alone, or begins to choose.
    fn sample_next(&mut self) {
        self.linear.clear();
        if self.programs.len() < 2 {
            return self.run_gang();
        }
        self.stage = RoundStage::Sampling;
        let all = self.settings.sampled.then_some(self.cores);
        let one = self.settings.alpha.map(|_| 1);
        let sizes: Vec<u32> = all.into_iter().chain(one).collect();
        match self.samples.next_missing_slot(&self.programs, &sizes) {
            Some(slot) => self.run_slot(slot, 1),
            None => self.begin_choosing(),
        }
    }

    fn begin_choosing(&mut self) {
        let mut alone: Vec<(ProgramId, ProgramMeasure)> = Vec::new();
        for &id in &self.programs {
            let alpha = self.settings.alpha;
            if alpha.is_some_and(|alpha| self.samples.is_near_linear(id, self.cores, alpha)) {
                self.linear.push(id);
            } else {
                let known = self.samples.get(id, self.cores);
                alone.push((id, known.copied().unwrap_or_default()));
            }
        }
        self.chooser.begin(self.cores, &alone);
        self.stage = RoundStage::Choosing;
        self.try_next_slot(None);
    }

    /// Runs the next trial of the chooser, unless samples already answer it.
    fn try_next_slot(&mut self, last: Option<&SlotTrial>) {
        let mut sampled = None;
        loop {
            match self.chooser.next(sampled.as_ref().or(last)) {
                ChooserStep::Try(slot) => match self.samples.sampled_trial(&slot) {
                    Some(trial) => sampled = Some(trial),
                    None => return self.run_slot(slot, 1),
                },
                ChooserStep::Done(mut slots) => {
                    let linear = self.linear.iter();
                    slots.extend(linear.map(|&id| CoscheduleSlot::alone(id, self.cores)));
                    return self.take_turns(slots);
                }
            }
        }
    }

    /// Lets every program run alone, in turn.
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
        self.running = Some(RunningSlot {
            slot,
            quanta,
            length_ns: f64::from(quanta) * self.settings.quantum_ns as f64,
            meter: SlotMeter::default(),
        });
    }

    /// Ends a round: samples anew if a program is in another phase, goes back to the gang if slots
    /// are worse. Returns true if either happens.
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
        let fares = turns.compare_with_gang(&self.samples, self.cores);
        let overall = turns.overall_energy_delay(&fares);
        let Some(worse) = overall.filter(|overall| reverts && *overall > 1.0) else {
            return false;
        };
        self.run_gang();
        self.left = Some(format!(
            "back to the gang: overall energy-delay of the slots was {worse:.3} of the gang's"
        ));
        true
    }

    /// Adds the places of its programs to a decision; returns notes for the report.
    fn add_to_decision(
        &self,
        topology: &Topology,
        roster: &ObservedPrograms<'_>,
        decision: &mut Decision,
    ) -> Vec<String> {
        if self.running.is_none() && roster.members.is_empty() {
            return Vec::new();
        }
        // Also while all sleep, so that a program that wakes up is noticed.
        decision.quantum_ns = Some((self.settings.quantum_ns / PARTS).max(1));
        let members = roster.members.iter();
        let (sleeping, awake): (Vec<_>, Vec<_>) =
            members.partition(|member| self.sleepers.contains(member.id));
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
        let cores = divide_cores(topology, &running.slot);
        for member in awake {
            let reason = account.reason(member.id, roster);
            let alternatives = account.alternatives(member.id);
            for thread in member.threads.iter().filter(|_| !alternatives.is_empty()) {
                let compared = &mut decision.report.alternatives;
                compared.insert(thread.id, alternatives.clone());
            }
            match cores.get(&member.id) {
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

/// A driver for each owner of programs, so that programs of different users never wait for each
/// other's turns.
///
/// The rotations run side by side. The programs of one user's slot share the machine with those of
/// the others' slots as the operating system divides it, so that no user can slow another one down
/// by programs in the same list.
pub(super) struct Rotations<C> {
    settings: CoschedulingSettings,
    /// The chooser that a new rotation begins with.
    chooser: C,
    drivers: BTreeMap<Option<u32>, Driver>,
}

impl<C: Chooser + Clone + 'static> Rotations<C> {
    pub(super) fn new(settings: CoschedulingSettings, chooser: C) -> Self {
        Self {
            settings,
            chooser,
            drivers: BTreeMap::new(),
        }
    }
}

impl<C: Chooser + Clone + 'static> Policy for Rotations<C> {
    fn wishes(&self) -> Wishes {
        let quantum_ms = self.settings.quantum_ns / PARTS / 1_000_000;
        Wishes {
            quantum_ms: Some(quantum_ms.max(1)),
            ..Wishes::default()
        }
    }

    fn decide(&mut self, view: View<'_>, _: &mut PolicyRng) -> Decision {
        let rosters = ObservedPrograms::by_owner(view.observation);
        self.drivers.retain(|owner, _| rosters.contains_key(owner));
        let several = rosters.values().filter(|r| !r.members.is_empty()).count() > 1;
        let mut decision = Decision::default();
        for (owner, roster) in &rosters {
            let driver = self.drivers.entry(*owner);
            let driver = driver
                .or_insert_with(|| Driver::new(self.settings, Box::new(self.chooser.clone())));
            driver.observe_interval(view.topology, roster, view.observation);
            let notes = driver.add_to_decision(view.topology, roster, &mut decision);
            let ids = roster.ids().into_iter();
            driver.ran = ids.filter(|id| !decision.paused.contains(id)).collect();
            match owner {
                // Every user can read the notes, so they must not name the programs of others.
                Some(uid) if several => {
                    let programs = roster.members.len();
                    let note = format!("programs of user {uid} take turns: {programs}");
                    decision.report.notes.extend((programs > 0).then_some(note));
                }
                _ => decision.report.notes.extend(notes),
            }
        }
        decision
    }
}
