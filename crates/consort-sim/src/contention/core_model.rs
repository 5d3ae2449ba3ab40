//! Model of a core as far as it does not depend on the threads there, computed once per chip.

use crate::machine::detail::{PortScope, PortSpec, WorkKind};
use crate::machine::tables::CoreTables;
use crate::machine::{CoreSpec, UnitSpec};
use crate::program::MixSpec;

/// Kinds of work by which ports differ; divisions count as integer operations, all floating point
/// as additions.
pub(crate) const WORKS: [WorkKind; 11] = [
    WorkKind::Integer,
    WorkKind::FpAdd,
    WorkKind::Vector,
    WorkKind::Load,
    WorkKind::Store,
    WorkKind::Branch,
    WorkKind::StoreData,
    WorkKind::VectorLoad,
    WorkKind::VectorStore,
    WorkKind::Multiply,
    WorkKind::VectorMove,
];

/// Amounts by position in [`WORKS`].
pub(crate) type WorkAmounts = [f64; WORKS.len()];

/// Structures of a core, and its ports as limits on rates.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CoreModel {
    /// Its structures.
    pub(crate) tables: CoreTables,
    /// Limits that its ports set.
    pub(crate) ports: Vec<PortSet>,
    /// True if some port or queue names a work, so that it comes in addition to a load or store.
    pub(crate) named: [bool; WORKS.len()],
    /// Cycles that a port is taken by an operation.
    pub(crate) intervals: WorkAmounts,
    /// Cycles without fetch behind a taken branch.
    pub(crate) bubble: f64,
    /// Dividers of integers and of floating point.
    pub(crate) dividers: [Divider; DIVIDER_KINDS],
    /// Position in [`WORKS`] of the work on whose ports each work is executed, by
    /// [`WorkKind::index`].
    pub(crate) executed_as: [usize; WorkKind::COUNT],
}

/// Kinds of dividers: of integers, of floating point.
pub(crate) const DIVIDER_KINDS: usize = 2;

/// Dividers of one kind, behind the ports that take divisions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Divider {
    /// Cycles that a division takes one.
    interval: f64,
    /// The same of a division by 64 bits, or a square root.
    slow_interval: f64,
    /// As many as there are ports that lead to one.
    pub(crate) ports: PortSet,
}

/// Works that have some ports between them and no others: together they can use no more.
///
/// A demand fits the ports if for every set of works it fits the ports that take any of them
/// (Hall's theorem); implied are sets to which another work could be added at no cost in ports, and
/// those of parts that have no port in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PortSet {
    works: u16,
    /// Ports that every CPU has of its own.
    per_pu: f64,
    /// Ports that belong to one half of the core or the other.
    per_half: f64,
    /// Ports that all CPUs share.
    per_core: f64,
}

impl CoreModel {
    /// The models of a core whose halves do not bind yet, and do.
    pub(crate) fn joined_and_halved(core: &CoreSpec) -> [Self; 2] {
        let tables = CoreTables::new(core);
        [tables.clone().with_threads(1), tables].map(|tables| Self::from_tables(core, tables))
    }

    fn from_tables(core: &CoreSpec, tables: CoreTables) -> Self {
        let held = |work: WorkKind| tables.issue.iter().any(|queue| queue.holds.contains(&work));
        let taken = |work: WorkKind| tables.ports.iter().any(|port| port.takes.contains(&work));
        Self {
            ports: sets(&tables.ports),
            named: WORKS.map(|work| held(work) || taken(work)),
            intervals: WORKS.map(|work| f64::from(tables.times[work.index()].interval_cycles)),
            dividers: [
                [WorkKind::Divide, WorkKind::WideDivide],
                [WorkKind::FpDivide, WorkKind::SquareRoot],
            ]
            .map(|works| {
                let interval = |at: usize| tables.times[works[at].index()].interval_cycles;
                Divider {
                    interval: f64::from(interval(0)),
                    slow_interval: f64::from(interval(1)),
                    ports: count_ports(&tables.ports, 0, |port| port.takes.contains(&works[0])),
                }
            }),
            executed_as: WorkKind::ALL.map(|work| executed_as(&tables.ports, work)),
            bubble: f64::from(core.branch_predictor.taken_bubble_cycles.unwrap_or(0)),
            tables,
        }
    }

    /// Cycles per instruction that the ports take for these works of a thread, with so many threads
    /// on the core.
    pub(crate) fn port_cycles(&self, works: &WorkAmounts, on_core: usize) -> f64 {
        let each = self.ports.iter().map(|set| {
            let used = set.port_use(works);
            if used > 0.0 {
                used / set.reach(on_core)
            } else {
                0.0
            }
        });
        each.fold(0.0, f64::max)
    }
}

impl Divider {
    /// Mean cycles that divisions take one if such a share of them is slow.
    pub(crate) fn mean_interval(&self, slow: f64) -> f64 {
        self.interval + slow * (self.slow_interval - self.interval)
    }
}

/// Position in [`WORKS`] of the work that has the same ports as a work, or else of its usual work:
/// more kinds of work would make too many sets of ports.
fn executed_as(ports: &[PortSpec], work: WorkKind) -> usize {
    let taken = |work: WorkKind| ports.iter().map(move |port| port.takes.contains(&work));
    let usual = WORKS.iter().position(|&known| known == work.usual());
    let usual = usual.unwrap_or(0);
    let like = |known: &WorkKind| taken(*known).eq(taken(work));
    if like(&WORKS[usual]) {
        return usual;
    }
    WORKS.iter().position(like).unwrap_or(usual)
}

impl PortSet {
    /// Port cycles per instruction of a thread's works.
    pub(crate) fn port_use(&self, works: &WorkAmounts) -> f64 {
        let picked = works.iter().enumerate();
        picked
            .filter(|(at, _)| self.works >> at & 1 == 1)
            .map(|(_, used)| used)
            .sum()
    }

    /// Ports that one thread can reach with so many threads on the core.
    pub(crate) fn reach(&self, on_core: usize) -> f64 {
        let halves = if on_core > 1 { 0.5 } else { 1.0 };
        self.per_pu + self.per_half * halves + self.per_core
    }

    /// Ports that so many threads of one half, or of the core where it has no halves, have together.
    pub(crate) fn joint_ports(&self, threads: usize) -> f64 {
        let halves = if self.per_half > 0.0 { 0.5 } else { 1.0 };
        self.per_pu * threads as f64 + self.per_half * halves + self.per_core
    }

    /// True if a work is among them.
    pub(crate) fn has(&self, work: usize) -> bool {
        self.works >> work & 1 == 1
    }

    /// True if several threads can want the same of its ports.
    pub(crate) fn is_shared(&self) -> bool {
        self.per_half + self.per_core > 0.0
    }

    /// True if threads of the two halves have ports of their own.
    pub(crate) fn has_halves(&self) -> bool {
        self.per_half > 0.0
    }
}

/// Every set of works that no work could join without needing a port more.
fn sets(ports: &[PortSpec]) -> Vec<PortSet> {
    let masks: Vec<u16> = ports.iter().map(mask).collect();
    let known = masks.iter().fold(0, |all, mask| all | mask);
    let closed = |&works: &u16| {
        let outside = known & !works;
        works & !known == 0
            && bits(outside).all(|work| needs_more(&masks, works, work))
            && is_connected(&masks, works)
    };
    let all = (1..1u16 << WORKS.len()).filter(closed);
    all.map(|works| count_ports(ports, works, |port| mask(port) & works != 0))
        .collect()
}

/// True if these works cannot be parted so that no port takes works of both parts.
fn is_connected(masks: &[u16], works: u16) -> bool {
    let mut reached = works & works.wrapping_neg();
    loop {
        let meets = masks.iter().filter(|&&mask| mask & reached != 0);
        let next = meets.fold(reached, |all, mask| all | mask & works);
        if next == reached {
            return reached == works;
        }
        reached = next;
    }
}

/// True if a work has a port that none of these works has.
fn needs_more(masks: &[u16], works: u16, work: u16) -> bool {
    masks
        .iter()
        .any(|mask| mask >> work & 1 == 1 && mask & works == 0)
}

/// The ports that do something, which takes these works.
fn count_ports(ports: &[PortSpec], works: u16, does: impl Fn(&PortSpec) -> bool) -> PortSet {
    let count = |scope: PortScope| {
        let of = ports.iter().filter(|port| port.per == scope && does(port));
        of.map(|port| f64::from(port.count)).sum()
    };
    PortSet {
        works,
        per_pu: count(PortScope::Pu),
        per_half: count(PortScope::Half),
        per_core: count(PortScope::Core),
    }
}

/// The works that a port takes.
fn mask(port: &PortSpec) -> u16 {
    let takes = |work: WorkKind| match work {
        WorkKind::FpAdd => [WorkKind::FpAdd, WorkKind::FpMultiply, WorkKind::FpFused]
            .iter()
            .any(|work| port.takes.contains(work)),
        work => port.takes.contains(&work),
    };
    let each = WORKS.iter().enumerate();
    each.fold(0, |mask, (at, &work)| mask | u16::from(takes(work)) << at)
}

fn bits(mask: u16) -> impl Iterator<Item = u16> {
    (0..16).filter(move |bit| mask >> bit & 1 == 1)
}

/// CPUs of a core at most.
pub(crate) const MAX_WAYS: usize = 8;
/// Classes of units.
pub(crate) const CLASSES: usize = 5;

/// Ports that operations of one class of a thread wait for.
#[derive(Clone, Debug)]
pub(crate) struct UnitQueue {
    pub(crate) class: usize,
    /// Position of the thread among those of its core.
    pub(crate) thread: usize,
    /// Number of ports.
    pub(crate) ports: f64,
    /// Port cycles per instruction of each of the core's threads; 0 of threads on other ports.
    pub(crate) used: [f64; MAX_WAYS],
}

/// A thread's use of one class of units.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct UnitClassUse {
    /// Operations per instruction.
    pub(crate) operations: f64,
    /// Cycles from operands to result.
    pub(crate) latency: f64,
}

/// Index of the floating-point units among the classes.
pub(crate) const FP: usize = 1;

/// The use of units by a mix on a core, in the order int, fp, load/store, branch, vector.
pub(crate) fn unit_use(core: &CoreSpec, mix: &MixSpec) -> [UnitClassUse; CLASSES] {
    let u = &core.units;
    let int = mix.int + if u.branch.is_none() { mix.branch } else { 0.0 };
    let fp = mix.fp + if u.vector.is_none() { mix.vector } else { 0.0 };
    let of = |operations: f64, spec: &UnitSpec| UnitClassUse {
        operations,
        latency: spec.latency_cycles,
    };
    let optional = |operations: f64, spec: Option<&UnitSpec>| match spec {
        Some(spec) => of(operations, spec),
        None => of(0.0, &u.int),
    };
    [
        of(int, &u.int),
        of(fp, &u.fp),
        of(mix.load + mix.store, &u.load_store),
        optional(mix.branch, u.branch.as_ref()),
        optional(mix.vector, u.vector.as_ref()),
    ]
}

/// Class of the units that execute a work between integer and floating-point arithmetic.
pub(crate) fn unit_class(core: &CoreSpec, work: WorkKind) -> usize {
    const INT: usize = 0;
    const VECTOR: usize = 4;
    match work.usual() {
        WorkKind::Integer => INT,
        WorkKind::Vector | WorkKind::VectorMove if core.units.vector.is_some() => VECTOR,
        _ => FP,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::presets;

    fn limit(model: &CoreModel, works: &WorkAmounts, on_core: usize) -> f64 {
        let limits = model.ports.iter().filter_map(|set| {
            let used = set.port_use(works);
            (used > 0.0).then(|| set.reach(on_core) / used)
        });
        limits.fold(f64::INFINITY, f64::min)
    }

    fn model(machine: &str) -> CoreModel {
        let spec = presets::find(machine).unwrap();
        let [_, halved] = CoreModel::joined_and_halved(spec.core_types.values().next().unwrap());
        halved
    }

    #[test]
    fn skylake_ports_limit_additions_loads_and_stores() {
        let model = model("core-i7-6700");
        let only = |work: usize| {
            let mut works = WorkAmounts::default();
            works[work] = 1.0;
            works
        };
        assert_eq!(limit(&model, &only(0), 1), 4.0);
        assert_eq!(limit(&model, &only(3), 1), 2.0);
        assert_eq!(limit(&model, &only(6), 1), 1.0);
        // Half loads, half additions: four per cycle.
        let mut both = WorkAmounts::default();
        (both[0], both[3]) = (0.5, 0.5);
        assert_eq!(limit(&model, &both, 1), 4.0);
    }

    #[test]
    fn power8_half_has_half_the_ports() {
        let model = model("power8");
        let mut works = WorkAmounts::default();
        works[1] = 1.0;
        assert_eq!(limit(&model, &works, 1), 2.0 * limit(&model, &works, 2));
    }

    #[test]
    fn power7_halves_bind_from_three_threads() {
        let mut works = WorkAmounts::default();
        works[0] = 1.0;
        let spec = presets::find("power7").unwrap();
        let models = CoreModel::joined_and_halved(spec.core_types.values().next().unwrap());
        assert_eq!(models[0].tables.halves_from, 3);
        assert_eq!(models.map(|model| limit(&model, &works, 2)), [4.0, 2.0]);
    }

    #[test]
    fn presets_need_few_port_sets() {
        for name in presets::names() {
            let spec = presets::find(name).unwrap();
            for core in spec.core_types.values() {
                let sets = CoreModel::joined_and_halved(core).map(|model| model.ports.len());
                assert!(
                    sets.iter().all(|n| (1..=24).contains(n)),
                    "{name}: {sets:?}"
                );
            }
        }
    }
}
