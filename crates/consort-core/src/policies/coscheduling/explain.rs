//! Why programs run when and where they do.

use super::driver::{Driver, Stage};
use super::roster::{Member, Roster};
use super::running::Running;
use crate::coscheduling::{Measure, Slot};
use crate::ids::ProgramId;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::pu_set::PuSet;
use crate::topology::Topology;
use std::borrow::Cow;

impl Driver {
    /// What holds for all programs.
    pub(super) fn notes(&self, roster: &Roster<'_>) -> Vec<String> {
        let name = |id: &ProgramId| roster.name(*id);
        let list = |ids: &[ProgramId]| ids.iter().map(name).collect::<Vec<_>>().join(", ");
        let mut notes = vec![self.doing(roster)];
        notes.extend(self.left.clone());
        if !self.linear.is_empty() {
            let linear = list(&self.linear);
            notes.push(format!(
                "they scale nearly linearly and run alone: {linear}"
            ));
        }
        if !roster.let_alone.is_empty() {
            let names: Vec<String> = roster.let_alone.iter().map(Member::name).collect();
            let names = names.join(", ");
            notes.push(format!("threads of theirs must be let alone: {names}"));
        }
        notes
    }

    fn doing(&self, roster: &Roster<'_>) -> String {
        match &self.stage {
            Stage::Sampling => "programs run alone to be measured".to_owned(),
            Stage::Choosing => "a slot is tried".to_owned(),
            Stage::Turns(turns) => {
                let slots = turns.slots().iter().map(|slot| names(slot, None, roster));
                let slots = slots.collect::<Vec<_>>().join(", ");
                format!("slots run in turn: {slots}")
            }
        }
    }

    /// Why a program runs, or not.
    pub(super) fn reason(&self, id: ProgramId, now: &Running, roster: &Roster<'_>) -> Reason {
        let chosen = match now.slot.cores_of(id) {
            Some(cores) => self.seated(id, cores, now, roster),
            None => format!("paused while {} run", names(&now.slot, None, roster)),
        };
        Reason {
            considered: self.doing(roster),
            chosen,
            facts: self.facts(id),
        }
    }

    fn seated(&self, id: ProgramId, cores: u32, now: &Running, roster: &Roster<'_>) -> String {
        let beside = if now.slot.teams.len() < 2 {
            "alone".to_owned()
        } else {
            format!("beside {}", names(&now.slot, Some(id), roster))
        };
        let (all, quanta) = (self.cores, now.quanta);
        format!("{beside}, on {cores} of {all} cores, for {quanta} quanta of the round")
    }

    /// What the program did alone and how it fares in its slot.
    fn facts(&self, id: ProgramId) -> Vec<Fact> {
        let alone = self.samples.of(id, self.cores);
        let mut facts: Vec<Fact> = alone.into_iter().flat_map(alone_facts).collect();
        let Stage::Turns(turns) = &self.stage else {
            return facts;
        };
        if let Some(fares) = turns.fares(id, &self.samples, self.cores) {
            facts.push(fact(ENERGY_DELAY, fares.energy_delay, ""));
            facts.push(fact(SPEEDUP, fares.speedup, ""));
        }
        if let Some(overall) = turns.overall(&self.samples, self.cores) {
            facts.push(fact("overall energy-delay over the gang's", overall, ""));
        }
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
    let others = ids.filter(|id| Some(*id) != but);
    others
        .map(|id| roster.name(id))
        .collect::<Vec<_>>()
        .join(" + ")
}

impl Member<'_> {
    /// Restricts every thread to what it may use of some PUs.
    pub(super) fn place(
        &self,
        pus: &PuSet,
        topology: &Topology,
        reason: &Reason,
        decision: &mut Decision,
    ) {
        for thread in &self.threads {
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

    /// Leaves every thread where it is.
    pub(super) fn pause(&self, reason: &Reason, decision: &mut Decision) {
        for thread in &self.threads {
            decision.place(thread.id, Placement::Unrestricted, reason.clone());
        }
    }
}
