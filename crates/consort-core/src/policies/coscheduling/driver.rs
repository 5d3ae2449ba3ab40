//! The driver: samples, trials, slots in turn.

use super::roster::Roster;
use super::running::Running;
use super::samples::Samples;
use super::seats::seats;
use super::sleepers::Sleepers;
use super::turns::Turns;
use crate::coscheduling::{Chooser, Measure, Slot, Step, Trial};
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
pub(super) struct Settings {
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
pub(super) enum Stage {
    /// Programs run alone to be measured.
    #[default]
    Sampling,
    /// Slots run to be tried.
    Choosing,
    /// Slots run in turn.
    Turns(Turns),
}

/// Runs the slots that a chooser chooses.
pub(super) struct Driver {
    pub(super) settings: Settings,
    chooser: Box<dyn Chooser>,
    /// Programs that take turns.
    pub(super) programs: Vec<ProgramId>,
    sleepers: Sleepers,
    /// Programs that could run in the interval that ends.
    ran: BTreeSet<ProgramId>,
    pub(super) cores: u32,
    pub(super) samples: Samples,
    /// Programs that scale nearly linearly.
    pub(super) linear: Vec<ProgramId>,
    pub(super) stage: Stage,
    pub(super) running: Option<Running>,
    /// Program whose turn it was when the last round was left: the next one begins after it, as
    /// programs that come and go all the time would otherwise give the first slot every turn.
    after: Option<ProgramId>,
    /// Quanta that the last samples and trials took.
    looked: u64,
    /// Reason for which the last round was left, if it was.
    pub(super) left: Option<String>,
}

impl Driver {
    pub(super) fn new(settings: Settings, chooser: Box<dyn Chooser>) -> Self {
        Self {
            settings,
            chooser,
            programs: Vec::new(),
            sleepers: Sleepers::default(),
            ran: BTreeSet::new(),
            cores: 0,
            samples: Samples::default(),
            linear: Vec::new(),
            stage: Stage::default(),
            running: None,
            after: None,
            looked: 0,
            left: None,
        }
    }

    /// Takes an interval in.
    pub(super) fn follow(&mut self, topology: &Topology, roster: &Roster<'_>, seen: &Observation) {
        self.sleepers.note(seen, roster, &self.ran);
        let awake = roster.ids().into_iter();
        let programs: Vec<ProgramId> = awake.filter(|id| !self.sleepers.contain(*id)).collect();
        let cores = topology.cores().len() as u32;
        if cores != self.cores {
            (self.cores, self.samples) = (cores, Samples::default());
            self.begin(programs);
        } else if programs != self.programs {
            self.begin(programs);
        } else if let Some(running) = &mut self.running
            && let Some(trial) = running.note(seen, self.settings.metered)
        {
            self.go_on(trial);
        }
    }

    /// Begins a round anew with these programs.
    fn begin(&mut self, programs: Vec<ProgramId>) {
        self.samples.retain(&programs);
        if let (Stage::Turns(_), Some(running)) = (&self.stage, &self.running) {
            self.after = running.slot.teams.first().map(|team| team.program);
        }
        self.programs = programs;
        (self.left, self.looked) = (None, 0);
        self.sample();
    }

    fn go_on(&mut self, trial: Trial) {
        match &mut self.stage {
            Stage::Sampling => {
                self.looked += 1;
                self.samples.note(&trial);
                self.sample();
            }
            Stage::Choosing => {
                self.looked += 1;
                self.choose(Some(&trial));
            }
            Stage::Turns(turns) => {
                let round = turns.next(trial);
                if !(round && self.leaves_round()) {
                    self.run_turn();
                }
            }
        }
    }

    /// Runs the next program that is to be measured alone, or begins to choose.
    fn sample(&mut self) {
        self.linear.clear();
        if self.programs.len() < 2 {
            return self.gang();
        }
        self.stage = Stage::Sampling;
        match self.samples.missing(&self.programs, &self.sizes()) {
            Some(slot) => self.run(slot, 1),
            None => self.begin_to_choose(),
        }
    }

    /// Numbers of cores that programs are measured on alone.
    fn sizes(&self) -> Vec<u32> {
        let all = self.settings.sampled.then_some(self.cores);
        let one = self.settings.alpha.map(|_| 1);
        all.into_iter().chain(one).collect()
    }

    fn begin_to_choose(&mut self) {
        let linear = |id: &ProgramId| {
            let alpha = self.settings.alpha;
            alpha.is_some_and(|alpha| self.samples.is_near_linear(*id, self.cores, alpha))
        };
        let (linear, others): (Vec<_>, Vec<_>) = self.programs.iter().partition(|id| linear(id));
        let alone = |id: ProgramId| {
            let known = self.samples.of(id, self.cores);
            (id, known.copied().unwrap_or_default())
        };
        let alone: Vec<(ProgramId, Measure)> = others.into_iter().map(alone).collect();
        self.chooser.begin(self.cores, &alone);
        self.linear = linear;
        self.stage = Stage::Choosing;
        self.choose(None);
    }

    /// Runs the next trial that the chooser wants, but for those that samples have answered.
    fn choose(&mut self, last: Option<&Trial>) {
        let mut sampled = None;
        loop {
            match self.chooser.next(sampled.as_ref().or(last)) {
                Step::Try(slot) => match self.samples.trial(&slot) {
                    Some(trial) => sampled = Some(trial),
                    None => return self.run(slot, 1),
                },
                Step::Done(mut slots) => {
                    slots.extend(self.linear.iter().map(|&id| Slot::alone(id, self.cores)));
                    return self.take_turns(slots);
                }
            }
        }
    }

    /// Lets every program run on its own, in turn.
    fn gang(&mut self) {
        let alone = |&id: &ProgramId| Slot::alone(id, self.cores);
        self.take_turns(self.programs.iter().map(alone).collect());
    }

    fn take_turns(&mut self, slots: Vec<Slot>) {
        self.stage = Stage::Turns(Turns::new(slots, self.after.take()));
        self.run_turn();
    }

    fn run_turn(&mut self) {
        let Stage::Turns(turns) = &self.stage else {
            return;
        };
        match turns.slot().cloned() {
            Some(slot) => {
                let quanta = slot.quanta();
                self.run(slot, quanta);
            }
            None => self.running = None,
        }
    }

    fn run(&mut self, slot: Slot, quanta: u32) {
        self.running = Some(Running::new(slot, quanta, self.settings.quantum_ns));
    }

    /// Ends a round: begins anew where a program is in another phase, goes back to the gang where
    /// slots are worse. Returns true where either is so.
    fn leaves_round(&mut self) -> bool {
        let Stage::Turns(turns) = &mut self.stage else {
            return false;
        };
        let phase = self.settings.phase;
        let shifted = phase.and_then(|p| turns.shifted(p, &self.samples, self.cores));
        if let Some((id, shift)) = shifted {
            if turns.quanta() < self.looked {
                return false;
            }
            self.samples.forget(id);
            self.looked = 0;
            self.sample();
            self.left = Some(format!("a new phase of {id}: {shift}"));
            return true;
        }
        let reverts = self.settings.revert && turns.shares();
        let overall = turns.overall(&turns.fares(&self.samples, self.cores));
        let Some(worse) = overall.filter(|overall| reverts && *overall > 1.0) else {
            return false;
        };
        self.gang();
        self.left = Some(format!(
            "back to the gang: overall energy-delay of the slots was {worse:.3} of the gang's"
        ));
        true
    }

    /// Notes which programs may run under a decision.
    pub(super) fn expect(&mut self, roster: &Roster<'_>, decision: &Decision) {
        let ids = roster.ids().into_iter();
        self.ran = ids.filter(|id| !decision.paused.contains(id)).collect();
    }

    /// Adds what its programs are to do to a decision; returns notes for the report.
    pub(super) fn decide_for(
        &self,
        topology: &Topology,
        roster: &Roster<'_>,
        decision: &mut Decision,
    ) -> Vec<String> {
        if self.running.is_none() && roster.members.is_empty() {
            return Vec::new();
        }
        // Also while all sleep: one that wakes up is to be noticed.
        decision.quantum_ns = Some((self.settings.quantum_ns / PARTS).max(1));
        let (sleeping, awake): (Vec<_>, Vec<_>) =
            (roster.members.iter()).partition(|member| self.sleepers.contain(member.id));
        for member in sleeping {
            let reason = Reason {
                considered: "programs that want to run take turns".to_owned(),
                chosen: "it wants hardly any processor time, so it takes no turns".to_owned(),
                facts: Vec::new(),
            };
            member.leave(&reason, decision);
        }
        let Some(running) = &self.running else {
            return Vec::new();
        };
        let account = self.account(running, roster);
        let seats = seats(topology, &running.slot);
        for member in awake {
            let reason = account.reason(member.id, roster);
            match seats.get(&member.id) {
                Some(pus) => {
                    decision.teams.insert(member.id, pus.len() as u32);
                    member.place(pus, topology, &reason, decision);
                }
                None => {
                    decision.paused.insert(member.id);
                    member.leave(&reason, decision);
                }
            }
        }
        self.notes(&account, roster)
    }
}
