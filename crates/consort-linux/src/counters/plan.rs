//! Planning of groups of events for wanted signals: pure, the same for the same input.
//!
//! Every group holds cycles and instructions, so that each event has them counted over the very
//! same time; no group exceeds the PMU's counters; events that need a leader come with it. The
//! events of one formula share a group if they can. Events that do not fit at once take several
//! groups, which the kernel multiplexes; it reports the time that each ran.
//!
//! Pitfall: a PMU that serves others too may still refuse a group that fits on paper; the reader
//! notices by a running time of 0.

use crate::events::{CounterKind, EventDefinition, EventUnit, PmuEvents, SignalFormula};
use crate::perf::PerfEventSpec;
use crate::read;
use consort_core::Signal;
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::path::Path;

/// One group of events that are counted at the same time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlannedGroup {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// Event names; the first leads.
    pub events: Vec<String>,
}

/// A signal that is not counted on a PMU, with the reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct UnplannedSignal {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// The signal.
    pub signal: Signal,
    /// The reason, one sentence.
    pub reason: String,
}

/// The groups of all PMUs, and the fate of each wanted signal.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CounterPlan {
    /// The groups, by PMU.
    pub groups: Vec<PlannedGroup>,
    /// Signals that will be computed, each with its PMU.
    pub planned: Vec<(String, Signal)>,
    /// Signals that will not be computed, each with its PMU and the reason.
    pub unplanned: Vec<UnplannedSignal>,
}

/// A PMU of this host with its events.
#[derive(Clone, Debug)]
pub struct PlanInput<'a> {
    /// The PMU's name in sysfs.
    pub pmu: String,
    /// Events that the event file has for it.
    pub events: &'a PmuEvents,
    /// Counters that may be planned with.
    pub budget: CounterBudget,
}

/// Plans groups for the wanted signals on each PMU.
pub fn plan(wanted: &[Signal], pmus: &[PlanInput<'_>]) -> CounterPlan {
    let wanted: BTreeSet<Signal> = wanted.iter().copied().collect();
    let mut plan = CounterPlan::default();
    for input in pmus {
        plan_pmu(&wanted, input, &mut plan);
    }
    plan
}

fn plan_pmu(wanted: &BTreeSet<Signal>, input: &PlanInput<'_>, plan: &mut CounterPlan) {
    let mut groups = GroupPlanner::new(input);
    for formula in sort_by_need(wanted, input, plan) {
        match groups.add(formula) {
            Ok(()) => {
                groups.add_optional(formula);
                plan.planned.push((input.pmu.clone(), formula.signal));
            }
            Err(reason) => refuse(plan, input, formula.signal, reason),
        }
    }
    for mut group in groups.groups {
        let leader = group.iter().find_map(|e| e.leader.clone());
        group.sort_by_key(|e| Some(&e.name) != leader.as_ref());
        plan.groups.push(PlannedGroup {
            pmu: input.pmu.clone(),
            events: group.iter().map(|e| e.name.clone()).collect(),
        });
    }
}

fn refuse(plan: &mut CounterPlan, input: &PlanInput<'_>, signal: Signal, reason: String) {
    plan.unplanned.push(UnplannedSignal {
        pmu: input.pmu.clone(),
        signal,
        reason,
    });
}

/// The wanted formulas, those with most events first; wanted signals without a formula are refused.
fn sort_by_need<'a>(
    wanted: &BTreeSet<Signal>,
    input: &PlanInput<'a>,
    plan: &mut CounterPlan,
) -> Vec<&'a SignalFormula> {
    let mut formulas = Vec::new();
    for &signal in wanted {
        match input.events.formula(signal) {
            Some(formula) => formulas.push(formula),
            None => {
                let reason = format!("the event file has no formula for {signal} on this PMU");
                refuse(plan, input, signal, reason);
            }
        }
    }
    formulas.sort_by_key(|f| (Reverse(f.names().len()), f.signal));
    formulas
}

/// The groups of one PMU while they are filled. Each begins with the anchors.
struct GroupPlanner<'a> {
    events: &'a PmuEvents,
    budget: CounterBudget,
    anchors: Vec<&'a EventDefinition>,
    groups: Vec<Vec<&'a EventDefinition>>,
}

impl<'a> GroupPlanner<'a> {
    fn new(input: &PlanInput<'a>) -> Self {
        let units = [EventUnit::Cycles, EventUnit::Instructions];
        let anchors = units.iter().filter_map(|&u| input.events.event_of(u));
        Self {
            events: input.events,
            budget: input.budget,
            anchors: anchors.collect(),
            groups: Vec::new(),
        }
    }

    /// Adds a formula's events, together where they fit, else spread.
    fn add(&mut self, formula: &SignalFormula) -> Result<(), String> {
        let bundles = self.bundles(formula);
        let before = self.groups.clone();
        if self.place(&bundles.concat()) {
            return Ok(());
        }
        for bundle in &bundles {
            if !self.place(bundle) {
                self.groups = before;
                return Err(self.too_big_reason(bundle));
            }
        }
        Ok(())
    }

    /// Adds the events of optional components that fit.
    fn add_optional(&mut self, formula: &SignalFormula) {
        for event in formula.optional_names() {
            if let Some(event) = self.events.event(event) {
                self.place(&[event]);
            }
        }
    }

    /// The formula's events in sets that must not be parted: a leader with its
    /// members, or one event.
    fn bundles(&self, formula: &SignalFormula) -> Vec<Vec<&'a EventDefinition>> {
        let mut bundles: Vec<Vec<&'a EventDefinition>> = Vec::new();
        let wanted = formula.names();
        let events = self.events.events.iter();
        for event in events.filter(|e| wanted.contains(e.name.as_str())) {
            let leader = event.leader.as_deref().and_then(|l| self.events.event(l));
            let leads = |b: &&mut Vec<&'a EventDefinition>| {
                leader.is_some() && b.first().copied() == leader
            };
            match bundles.iter_mut().find(leads) {
                Some(bundle) => bundle.push(event),
                None => bundles.push(leader.into_iter().chain([event]).collect()),
            }
        }
        bundles
    }

    /// Puts events into the first group that can take them, else into a new one.
    fn place(&mut self, events: &[&'a EventDefinition]) -> bool {
        let fresh = [self.anchors.clone()];
        let candidates = self.groups.iter().chain(&fresh);
        let merged = candidates.map(|group| union(group, events));
        let found = merged.enumerate().find(|(_, g)| self.fits(g));
        let Some((index, group)) = found else {
            return false;
        };
        match self.groups.get_mut(index) {
            Some(slot) => *slot = group,
            None => self.groups.push(group),
        }
        true
    }

    /// Returns true if a group fits into the counters and has at most one leader.
    fn fits(&self, group: &[&EventDefinition]) -> bool {
        let leaders: BTreeSet<&str> = group.iter().filter_map(|e| e.leader.as_deref()).collect();
        leaders.len() <= 1 && fits(group, self.budget)
    }

    fn too_big_reason(&self, bundle: &[&EventDefinition]) -> String {
        let list = |events: &[&EventDefinition]| {
            let names: Vec<&str> = events.iter().map(|e| e.name.as_str()).collect();
            names.join(", ")
        };
        format!(
            "{} do not fit next to {} into {} programmable counters, {} of them left to others",
            list(bundle),
            list(&self.anchors),
            self.budget.programmable,
            self.budget.reserved
        )
    }
}

fn union<'a>(
    group: &[&'a EventDefinition],
    more: &[&'a EventDefinition],
) -> Vec<&'a EventDefinition> {
    let mut all = group.to_vec();
    for event in more {
        if !all.contains(event) {
            all.push(event);
        }
    }
    all
}

/// Returns true if all the events can be counted at the same time.
///
/// Counters reserved for others, such as the NMI watchdog, may be any of them: the kernel moves
/// events to other counters where it can (`x86_schedule_events`), so only the number reserved
/// matters.
pub(crate) fn fits(events: &[&EventDefinition], budget: CounterBudget) -> bool {
    let needs = |e: &&&EventDefinition| e.place == CounterKind::Programmable;
    let mut needy: Vec<&EventDefinition> = events.iter().filter(needs).copied().collect();
    let wanted: usize = needy.iter().map(|e| e.slots).sum();
    if wanted + budget.reserved > budget.programmable {
        return false;
    }
    needy.retain(|e| e.counters.is_some() || e.slots > 1);
    needy.sort_by_key(|e| counter_sets(e, budget.programmable).len());
    place(&needy, 0, budget.programmable)
}

/// Places constrained events one after the other, going back where that fails; `taken` has a bit
/// for each counter in use. Unconstrained events then fit into the counters that are left.
fn place(events: &[&EventDefinition], taken: u64, counters: usize) -> bool {
    let Some((first, rest)) = events.split_first() else {
        return true;
    };
    let free = |way: &u64| taken & way == 0;
    let mut ways = counter_sets(first, counters).into_iter().filter(free);
    ways.any(|way| place(rest, taken | way, counters))
}

/// The sets of counters, as bits, that can hold one event.
fn counter_sets(event: &EventDefinition, counters: usize) -> Vec<u64> {
    let allowed = |c: &usize| event.counters.as_ref().is_none_or(|list| list.contains(c));
    let single = (0..counters).filter(allowed);
    match event.slots {
        1 => single.map(|c| 1 << c).collect(),
        _ => single
            .filter(|c| c % 2 == 0 && c + 1 < counters)
            .map(|c| 0b11 << c)
            .collect(),
    }
}

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

/// Folder in which the kernel lists event sources.
const DEVICES: &str = "sys/bus/event_source/devices";

/// One PMU of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Name of the PMU in sysfs.
    pub name: String,
    /// The number in its `type` file, for `perf_event_attr.type`.
    pub kind: u32,
}

/// The core PMUs below an injectable root, by name: `cpu` on x86 and POWER, `cpu_core`, `cpu_atom`
/// and `cpu_lowpower` on Intel hybrids, `armv8_*` on Arm. No listing means no PMU.
pub fn core_pmus(root: &Path) -> Vec<Pmu> {
    let Ok(entries) = std::fs::read_dir(root.join(DEVICES)) else {
        return Vec::new();
    };
    let mut pmus = Vec::new();
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else {
            continue;
        };
        let is_core = matches!(
            name.as_str(),
            "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower"
        ) || name.starts_with("armv8_");
        let kind = read::value(&root.join(DEVICES).join(&name).join("type"));
        if let Some(kind) = kind.filter(|_| is_core) {
            pmus.push(Pmu { name, kind });
        }
    }
    pmus.sort_by(|a, b| a.name.cmp(&b.name));
    pmus
}

/// Counters of one PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CounterBudget {
    /// Programmable counters per CPU.
    pub programmable: usize,
    /// Number of these that are left to others.
    pub reserved: usize,
}

impl CounterBudget {
    /// The counters of a PMU, less one when the kernel's hard-lockup watchdog
    /// holds one (Linux Documentation/admin-guide/lockup-watchdogs).
    pub fn from_pmu(pmu: &PmuEvents, nmi_watchdog: bool) -> Self {
        Self {
            programmable: pmu.programmable,
            reserved: usize::from(nmi_watchdog),
        }
    }
}

/// Returns true if the hard-lockup watchdog is on; a missing file means that it is not.
pub fn is_nmi_watchdog_on(root: &Path) -> bool {
    let path = root.join("proc/sys/kernel/nmi_watchdog");
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::EventUnit;

    fn event(counters: Option<&[usize]>, slots: usize) -> EventDefinition {
        EventDefinition {
            name: "e".to_owned(),
            config: 0,
            config1: 0,
            config2: 0,
            unit: EventUnit::Operations,
            place: CounterKind::Programmable,
            counters: counters.map(<[usize]>::to_vec),
            slots,
            leader: None,
        }
    }

    fn check(events: &[EventDefinition], programmable: usize, reserved: usize, expect: bool) {
        let events: Vec<&EventDefinition> = events.iter().collect();
        let budget = CounterBudget {
            programmable,
            reserved,
        };
        assert_eq!(fits(&events, budget), expect, "{events:?} in {budget:?}");
    }

    #[test]
    fn constraints_hold() {
        let any = event(None, 1);
        let pair = event(None, 2);
        check(&[any.clone(), any.clone()], 2, 0, true);
        check(&[any.clone(), any.clone()], 2, 1, false);
        check(&[pair.clone(), pair.clone(), any.clone()], 6, 1, true);
        check(&[pair.clone(), pair, any], 5, 0, true);
        let second = event(Some(&[1]), 1);
        check(&[second.clone(), second.clone()], 4, 0, false);
        let either = event(Some(&[1, 2]), 1);
        check(&[either.clone(), second, either], 4, 0, false);
    }

    #[test]
    fn a_pair_starts_at_an_even_counter() {
        let pair = event(None, 2);
        let middle = event(Some(&[1]), 1);
        check(&[pair.clone(), middle], 3, 0, false);
        let last = event(Some(&[2]), 1);
        check(&[pair, last], 3, 0, true);
    }
}

#[cfg(test)]
mod pmu_tests {
    use super::*;

    #[test]
    fn core_pmus_are_distinguished_from_others() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(core_pmus(root.path()), []);
        for (name, kind) in [
            ("cpu_core", "4"),
            ("cpu_atom", "10"),
            ("power", "22"),
            ("cpu", "?"),
        ] {
            let folder = root.path().join(DEVICES).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("type"), format!("{kind}\n")).unwrap();
        }
        let names: Vec<(String, u32)> = core_pmus(root.path())
            .into_iter()
            .map(|p| (p.name, p.kind))
            .collect();
        assert_eq!(
            names,
            [("cpu_atom".to_owned(), 10), ("cpu_core".to_owned(), 4)]
        );
    }

    #[test]
    fn the_watchdog_is_read() {
        let root = tempfile::tempdir().unwrap();
        assert!(!is_nmi_watchdog_on(root.path()));
        let folder = root.path().join("proc/sys/kernel");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("nmi_watchdog"), "1\n").unwrap();
        assert!(is_nmi_watchdog_on(root.path()));
    }
}
