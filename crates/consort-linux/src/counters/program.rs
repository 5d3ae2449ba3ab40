//! A plan made ready for one PMU: events by number, attributes, formulas.

use super::plan::CounterPlan;
use crate::events::{EventDefinition, EventUnit, PmuEvents};
use crate::perf::PerfEventSpec;
use consort_core::Signal;

/// Groups and formulas for one PMU of this host.
#[derive(Clone, Debug)]
pub struct PmuProgram {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// The number in its `type` file.
    pub kind: u32,
    pub(crate) events: PmuEvents,
    /// Event indexes of each group.
    pub(crate) groups: Vec<Vec<usize>>,
    pub(crate) cycles: usize,
    pub(crate) instructions: usize,
    pub(crate) signals: Vec<Signal>,
}

impl PmuProgram {
    /// The part of a plan that is for the PMU of that name; `None` when the plan
    /// counts nothing on it.
    pub fn new(plan: &CounterPlan, pmu: &str, kind: u32, events: &PmuEvents) -> Option<Self> {
        let index = |name: &str| events.events.iter().position(|e| e.name == name);
        let of_unit = |unit| events.event_of(unit).and_then(|e| index(&e.name));
        let mine: Vec<_> = plan.groups.iter().filter(|g| g.pmu == pmu).collect();
        if mine.is_empty() {
            return None;
        }
        let indexes = |names: &Vec<String>| names.iter().filter_map(|n| index(n)).collect();
        let signals = plan.planned.iter().filter(|(p, _)| p == pmu);
        Some(Self {
            pmu: pmu.to_owned(),
            kind,
            events: events.clone(),
            groups: mine.iter().map(|g| indexes(&g.events)).collect(),
            cycles: of_unit(EventUnit::Cycles)?,
            instructions: of_unit(EventUnit::Instructions)?,
            signals: signals.map(|&(_, s)| s).collect(),
        })
    }

    /// The attributes of each group, the leader's first; user mode only.
    pub fn specs(&self) -> Vec<Vec<PerfEventSpec>> {
        let spec = |&index: &usize| event_spec(self.kind, &self.events.events[index]);
        let group = |g: &Vec<usize>| g.iter().map(spec).collect();
        self.groups.iter().map(group).collect()
    }
}

/// Describes one event of a PMU of this kind, counted in user mode only.
pub(crate) fn event_spec(kind: u32, event: &EventDefinition) -> PerfEventSpec {
    PerfEventSpec {
        kind,
        config: event.config,
        config1: event.config1,
        config2: event.config2,
        user_only: true,
        filter: None,
    }
}
