//! Reasons of a decision: why programs run when and where they do.

use super::driver::{Driver, RoundStage, RunningSlot};
use super::observed_programs::{ObservedPrograms, ProgramThreads};
use super::slot_rotation::GangComparison;
use crate::coscheduling::CoscheduleSlot;
use crate::ids::ProgramId;
use crate::plan::{Alternative, Fact, Reason};
use std::collections::BTreeMap;

/// Names listed before the rest is only counted, because thousands of programs may take turns.
const LISTED: usize = 8;

/// Parts that the reasons of all programs of a decision share, computed once.
pub(super) struct SlotExplanation<'a> {
    driver: &'a Driver,
    running: &'a RunningSlot,
    doing: String,
    /// The programs of the slot.
    slot: String,
    fares: BTreeMap<ProgramId, GangComparison>,
    overall: Option<f64>,
}

impl Driver {
    pub(super) fn explain_slot<'a>(
        &'a self,
        running: &'a RunningSlot,
        roster: &ObservedPrograms<'_>,
    ) -> SlotExplanation<'a> {
        let (mut fares, mut overall) = (BTreeMap::new(), None);
        let doing = match &self.stage {
            RoundStage::Sampling => "programs run alone to be measured".to_owned(),
            RoundStage::Choosing => "a slot is tried".to_owned(),
            RoundStage::Turns(turns) => {
                fares = turns.compare_with_gang(&self.samples, self.cores);
                overall = turns.overall_energy_delay(&fares);
                let slots = join_names(turns.slots(), ", ", |s| slot_names(s, None, roster));
                format!("slots run in turn: {slots}")
            }
        };
        SlotExplanation {
            driver: self,
            running,
            doing,
            slot: slot_names(&running.slot, None, roster),
            fares,
            overall,
        }
    }

    /// Notes of a report, which hold for all programs.
    pub(super) fn notes(
        &self,
        account: &SlotExplanation<'_>,
        roster: &ObservedPrograms<'_>,
    ) -> Vec<String> {
        let mut notes = vec![account.doing.clone()];
        notes.extend(self.left.clone());
        if !self.linear.is_empty() {
            let linear = join_names(&self.linear, ", ", |id| roster.name(*id));
            notes.push(format!(
                "they scale nearly linearly and run alone: {linear}"
            ));
        }
        if !roster.let_alone.is_empty() {
            let names = join_names(&roster.let_alone, ", ", ProgramThreads::name);
            notes.push(format!("these threads of theirs are not managed: {names}"));
        }
        let members = roster.members.iter();
        let placed: Vec<&ProgramThreads<'_>> = members.filter(|m| m.self_placed > 0).collect();
        if !placed.is_empty() {
            let names = join_names(&placed, ", ", |member| {
                format!("{} of {}", member.self_placed, member.name())
            });
            notes.push(format!(
                "threads that keep their own affinity take turns and are not placed: {names}"
            ));
        }
        notes
    }
}

impl SlotExplanation<'_> {
    /// Returns the reason why a program runs, or does not.
    pub(super) fn reason(&self, id: ProgramId, roster: &ObservedPrograms<'_>) -> Reason {
        let slot = &self.running.slot;
        let chosen = match slot.cores_of(id) {
            Some(cores) => {
                let beside = if slot.teams.len() < 2 {
                    "alone".to_owned()
                } else {
                    format!("next to {}", slot_names(slot, Some(id), roster))
                };
                let (all, quanta) = (self.driver.cores, self.running.quanta);
                format!("{beside}, on {cores} of {all} cores, for {quanta} quanta of the round")
            }
            None => format!("paused while {} run", self.slot),
        };
        Reason {
            considered: self.doing.clone(),
            chosen,
            facts: self.facts(id),
        }
    }

    /// The slot and the gang, in which a program has the whole machine in its turn; none before both
    /// are measured.
    pub(super) fn alternatives(&self, id: ProgramId) -> Vec<Alternative> {
        let Some(fares) = self.fares.get(&id) else {
            return Vec::new();
        };
        let alternative = |place: &str, cost, is_chosen| Alternative {
            place: place.to_owned(),
            cost,
            measure: "energy-delay over the gang's".into(),
            is_chosen,
        };
        vec![
            alternative("its slots", fares.energy_delay, true),
            alternative("gang: all cores in its turn", 1.0, false),
        ]
    }

    /// Facts of a program: its measures alone, and in its slot relative to the gang.
    fn facts(&self, id: ProgramId) -> Vec<Fact> {
        let fact = |name: &'static str, value, unit: &'static str| Fact {
            name: name.into(),
            value,
            unit: unit.into(),
        };
        let mut facts = Vec::new();
        if let Some(alone) = self.driver.samples.get(id, self.driver.cores) {
            let energy_delay = alone.energy_delay(1);
            facts.extend([
                fact("llc miss rate alone", alone.llc_miss_rate(), ""),
                fact("bus contention alone", alone.bus_contention(), ""),
                fact("throughput alone", alone.throughput(), "instructions/s"),
                fact("energy-delay alone", energy_delay, "J·s/instruction²"),
            ]);
        }
        if let Some(fares) = self.fares.get(&id) {
            facts.extend([
                fact("energy-delay over the gang's", fares.energy_delay, ""),
                fact("local speedup", fares.speedup, ""),
            ]);
        }
        let overall = |value| fact("overall energy-delay over the gang's", value, "");
        facts.extend(self.overall.map(overall));
        facts
    }
}

/// The programs of a slot except one.
fn slot_names(
    slot: &CoscheduleSlot,
    but: Option<ProgramId>,
    roster: &ObservedPrograms<'_>,
) -> String {
    let ids = slot.teams.iter().map(|team| team.program);
    let others: Vec<ProgramId> = ids.filter(|id| Some(*id) != but).collect();
    join_names(&others, " + ", |id| roster.name(*id))
}

/// The first few names, and the number of others.
fn join_names<T>(all: &[T], between: &str, name: impl FnMut(&T) -> String) -> String {
    let mut names: Vec<String> = all.iter().take(LISTED).map(name).collect();
    if all.len() > LISTED {
        names.push(format!("{} others", all.len() - LISTED));
    }
    names.join(between)
}
