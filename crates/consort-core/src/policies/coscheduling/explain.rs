//! Reasons of a decision: why programs run when and where they do.

use super::driver::{Driver, Stage};
use super::roster::{Member, Roster};
use super::running::Running;
use super::turns::Fares;
use crate::coscheduling::{Measure, Slot};
use crate::ids::ProgramId;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Names listed before the rest is only counted: thousands of programs may take turns.
const LISTED: usize = 8;

/// Parts that the reasons of all programs of a decision share, worked out once.
pub(super) struct Account<'a> {
    driver: &'a Driver,
    running: &'a Running,
    doing: String,
    /// The programs of the slot.
    slot: String,
    fares: BTreeMap<ProgramId, Fares>,
    overall: Option<f64>,
}

impl Driver {
    pub(super) fn account<'a>(&'a self, now: &'a Running, roster: &Roster<'_>) -> Account<'a> {
        let mut account = Account {
            driver: self,
            running: now,
            doing: self.doing(roster),
            slot: names(&now.slot, None, roster),
            fares: BTreeMap::new(),
            overall: None,
        };
        if let Stage::Turns(turns) = &self.stage {
            account.fares = turns.fares(&self.samples, self.cores);
            account.overall = turns.overall(&account.fares);
        }
        account
    }

    /// Notes of a report, which hold for all programs.
    pub(super) fn notes(&self, account: &Account<'_>, roster: &Roster<'_>) -> Vec<String> {
        let mut notes = vec![account.doing.clone()];
        notes.extend(self.left.clone());
        if !self.linear.is_empty() {
            let linear = listed(&self.linear, ", ", |id| roster.name(*id));
            notes.push(format!(
                "they scale nearly linearly and run alone: {linear}"
            ));
        }
        if !roster.let_alone.is_empty() {
            let names = listed(&roster.let_alone, ", ", Member::name);
            notes.push(format!("threads of theirs must be let alone: {names}"));
        }
        let placed: Vec<&Member<'_>> = roster
            .members
            .iter()
            .filter(|m| m.self_placed > 0)
            .collect();
        if !placed.is_empty() {
            let names = listed(&placed, ", ", |member| {
                format!("{} of {}", member.self_placed, member.name())
            });
            notes.push(format!(
                "threads that keep their own affinity take turns and are not placed: {names}"
            ));
        }
        notes
    }

    fn doing(&self, roster: &Roster<'_>) -> String {
        match &self.stage {
            Stage::Sampling => "programs run alone to be measured".to_owned(),
            Stage::Choosing => "a slot is tried".to_owned(),
            Stage::Turns(turns) => {
                let slots = listed(turns.slots(), ", ", |slot| names(slot, None, roster));
                format!("slots run in turn: {slots}")
            }
        }
    }
}

impl Account<'_> {
    /// Returns the reason why a program runs, or does not.
    pub(super) fn reason(&self, id: ProgramId, roster: &Roster<'_>) -> Reason {
        let chosen = match self.running.slot.cores_of(id) {
            Some(cores) => self.seated(id, cores, roster),
            None => format!("paused while {} run", self.slot),
        };
        Reason {
            considered: self.doing.clone(),
            chosen,
            facts: self.facts(id),
        }
    }

    fn seated(&self, id: ProgramId, cores: u32, roster: &Roster<'_>) -> String {
        let slot = &self.running.slot;
        let beside = if slot.teams.len() < 2 {
            "alone".to_owned()
        } else {
            format!("beside {}", names(slot, Some(id), roster))
        };
        let (all, quanta) = (self.driver.cores, self.running.quanta);
        format!("{beside}, on {cores} of {all} cores, for {quanta} quanta of the round")
    }

    /// Facts of a program: its measures alone, and how it fares in its slot.
    fn facts(&self, id: ProgramId) -> Vec<Fact> {
        let alone = self.driver.samples.of(id, self.driver.cores);
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

fn alone_facts(alone: &Measure) -> [Fact; 4] {
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
fn names(slot: &Slot, but: Option<ProgramId>, roster: &Roster<'_>) -> String {
    let ids = slot.teams.iter().map(|team| team.program);
    let others: Vec<ProgramId> = ids.filter(|id| Some(*id) != but).collect();
    listed(&others, " + ", |id| roster.name(*id))
}

/// The first few by name, and the number of others.
fn listed<T>(all: &[T], between: &str, name: impl FnMut(&T) -> String) -> String {
    let mut names: Vec<String> = all.iter().take(LISTED).map(name).collect();
    if all.len() > LISTED {
        names.push(format!("{} others", all.len() - LISTED));
    }
    names.join(between)
}

impl Member<'_> {
    /// Restricts every thread to what it may use of some PUs, but for those that keep their own
    /// affinity.
    pub(super) fn place(
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
    pub(super) fn leave(&self, reason: &Reason, decision: &mut Decision) {
        for thread in self.threads.iter().filter(|thread| thread.managed) {
            decision.place(thread.id, Placement::Unrestricted, reason.clone());
        }
    }
}
