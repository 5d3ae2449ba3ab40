//! Reasons of a decision: why programs run when and where they do.

use super::driver::{Driver, RoundStage};
use super::observed_programs::{ObservedPrograms, ProgramThreads};
use super::running_slot::RunningSlot;
use super::slot_rotation::GangComparison;
use crate::coscheduling::{CoscheduleSlot, ProgramMeasure};
use crate::ids::ProgramId;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Names listed before the rest is only counted: thousands of programs may take turns.
const LISTED: usize = 8;

/// Parts that the reasons of all programs of a decision share, worked out once.
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
        now: &'a RunningSlot,
        roster: &ObservedPrograms<'_>,
    ) -> SlotExplanation<'a> {
        let mut account = SlotExplanation {
            driver: self,
            running: now,
            doing: self.describe_stage(roster),
            slot: slot_names(&now.slot, None, roster),
            fares: BTreeMap::new(),
            overall: None,
        };
        if let RoundStage::Turns(turns) = &self.stage {
            account.fares = turns.compare_with_gang(&self.samples, self.cores);
            account.overall = turns.overall_energy_delay(&account.fares);
        }
        account
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
            notes.push(format!("threads of theirs must be let alone: {names}"));
        }
        let placed: Vec<&ProgramThreads<'_>> = roster
            .members
            .iter()
            .filter(|m| m.self_placed > 0)
            .collect();
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

    fn describe_stage(&self, roster: &ObservedPrograms<'_>) -> String {
        match &self.stage {
            RoundStage::Sampling => "programs run alone to be measured".to_owned(),
            RoundStage::Choosing => "a slot is tried".to_owned(),
            RoundStage::Turns(turns) => {
                let slots = join_names(turns.slots(), ", ", |slot| slot_names(slot, None, roster));
                format!("slots run in turn: {slots}")
            }
        }
    }
}

impl SlotExplanation<'_> {
    /// Returns the reason why a program runs, or does not.
    pub(super) fn reason(&self, id: ProgramId, roster: &ObservedPrograms<'_>) -> Reason {
        let chosen = match self.running.slot.cores_of(id) {
            Some(cores) => self.describe_share(id, cores, roster),
            None => format!("paused while {} run", self.slot),
        };
        Reason {
            considered: self.doing.clone(),
            chosen,
            facts: self.facts(id),
        }
    }

    fn describe_share(&self, id: ProgramId, cores: u32, roster: &ObservedPrograms<'_>) -> String {
        let slot = &self.running.slot;
        let beside = if slot.teams.len() < 2 {
            "alone".to_owned()
        } else {
            format!("beside {}", slot_names(slot, Some(id), roster))
        };
        let (all, quanta) = (self.driver.cores, self.running.quanta);
        format!("{beside}, on {cores} of {all} cores, for {quanta} quanta of the round")
    }

    /// Facts of a program: its measures alone, and how it fares in its slot.
    fn facts(&self, id: ProgramId) -> Vec<Fact> {
        let alone = self.driver.samples.get(id, self.driver.cores);
        let mut facts: Vec<Fact> = alone.into_iter().flat_map(alone_facts).collect();
        if let Some(fares) = self.fares.get(&id) {
            facts.push(fact(ENERGY_DELAY, fares.energy_delay, ""));
            facts.push(fact(SPEEDUP, fares.speedup, ""));
        }
        let overall = |value| fact("overall energy-delay over the gang's", value, "");
        facts.extend(self.overall.map(overall));
        facts
    }
}

/// Name of the fact of a program's energy-delay in its slot.
const ENERGY_DELAY: &str = "energy-delay over the gang's";
/// Name of the fact of a program's local speedup.
const SPEEDUP: &str = "local speedup";

fn alone_facts(alone: &ProgramMeasure) -> [Fact; 4] {
    [
        fact("llc miss rate alone", alone.llc_miss_rate(), ""),
        fact("bus contention alone", alone.bus_contention(), ""),
        fact("throughput alone", alone.throughput(), "instructions/s"),
        fact(
            "energy-delay alone",
            alone.energy_delay(1),
            "J·s/instruction²",
        ),
    ]
}

fn fact(name: &'static str, value: f64, unit: &'static str) -> Fact {
    Fact {
        name: Cow::Borrowed(name),
        value,
        unit: Cow::Borrowed(unit),
    }
}

/// The programs of a slot but one.
fn slot_names(
    slot: &CoscheduleSlot,
    but: Option<ProgramId>,
    roster: &ObservedPrograms<'_>,
) -> String {
    let ids = slot.teams.iter().map(|team| team.program);
    let others: Vec<ProgramId> = ids.filter(|id| Some(*id) != but).collect();
    join_names(&others, " + ", |id| roster.name(*id))
}

/// The first few by name, and the number of others.
fn join_names<T>(all: &[T], between: &str, name: impl FnMut(&T) -> String) -> String {
    let mut names: Vec<String> = all.iter().take(LISTED).map(name).collect();
    if all.len() > LISTED {
        names.push(format!("{} others", all.len() - LISTED));
    }
    names.join(between)
}

impl ProgramThreads<'_> {
    /// Restricts every thread to what it may use of some PUs, but for those that keep their own
    /// affinity.
    pub(super) fn place_threads(
        &self,
        pus: &PuSet,
        topology: &Topology,
        reason: &Reason,
        decision: &mut Decision,
    ) {
        for thread in self.threads.iter().filter(|thread| thread.managed) {
            let own = thread.original.intersection(pus);
            let whole = own.is_empty() || pus == topology.pus();
            let placement = if whole {
                Placement::Unrestricted
            } else {
                Placement::Restricted(own)
            };
            decision.place(thread.id, placement, reason.clone());
        }
    }

    /// Gives no thread a place.
    pub(super) fn unrestrict_threads(&self, reason: &Reason, decision: &mut Decision) {
        for thread in self.threads.iter().filter(|thread| thread.managed) {
            decision.place(thread.id, Placement::Unrestricted, reason.clone());
        }
    }
}
