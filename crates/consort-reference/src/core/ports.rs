//! Issue ports and what operations need of them.

use consort_ops::{Op, OpKind};
use consort_sim::machine::detail::{PortScope, WorkKind, WorkSpec};
use consort_sim::machine::tables::CoreTables;

/// Ports of a core.
#[derive(Clone, Debug)]
pub(crate) struct Ports {
    /// Ports that take the fewest kinds of work come first.
    ports: Vec<Port>,
    /// Ready operations by thread and by work.
    wanted: Vec<[u32; WorkKind::COUNT]>,
    /// One over the ports that take a work.
    per_port: [f32; WorkKind::COUNT],
    times: [WorkSpec; WorkKind::COUNT],
    /// Bits of all work that some port takes.
    taken: u32,
    /// Bits of all work that some port takes or some queue holds.
    named: u32,
}

#[derive(Clone, Copy, Debug)]
struct Port {
    takes: u32,
    owner: PortOwner,
    free: u64,
    /// Until when the divider behind it is taken; other operations pass it (uops.info counts it as a
    /// port of its own).
    divides: u64,
}

/// Works that take a divider.
const DIVISIONS: u32 = 1 << WorkKind::Divide.index()
    | 1 << WorkKind::WideDivide.index()
    | 1 << WorkKind::FpDivide.index()
    | 1 << WorkKind::SquareRoot.index();

#[derive(Clone, Copy, Debug)]
enum PortOwner {
    Thread(usize),
    Half(usize),
    All,
}

/// Works of one operation, as bits: its own, and what a load or store takes in addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Works {
    /// Work of the operation itself.
    pub(crate) first: u32,
    /// Work that it takes in addition; 0 for none.
    pub(crate) second: u32,
}

impl Works {
    /// Positions of the works.
    fn positions(self) -> impl Iterator<Item = usize> {
        let works = [self.first, self.second].into_iter();
        works
            .filter(|&bits| bits != 0)
            .map(|bits| bits.trailing_zeros() as usize)
    }
}

fn bit(work: WorkKind) -> u32 {
    1 << work.index()
}

fn bits(works: &[WorkKind]) -> u32 {
    works.iter().fold(0, |bits, work| bits | bit(*work))
}

impl Ports {
    /// The ports of a core on which `threads` run.
    pub(crate) fn new(tables: &CoreTables, threads: usize) -> Self {
        let mut ports: Vec<Port> = Vec::new();
        for spec in &tables.ports {
            let takes = bits(&spec.takes);
            let owners: Vec<PortOwner> = match spec.per {
                PortScope::Core => (0..spec.count).map(|_| PortOwner::All).collect(),
                PortScope::Half => (0..spec.count as usize)
                    .map(|i| PortOwner::Half(i % 2))
                    .collect(),
                PortScope::Pu => per_thread(spec.count, threads),
            };
            ports.extend(owners.into_iter().map(|owner| Port {
                takes,
                owner,
                free: 0,
                divides: 0,
            }));
        }
        ports.sort_by_key(|port| port.takes.count_ones());
        let per_port = std::array::from_fn(|work| {
            let taking = ports.iter().filter(|port| port.takes >> work & 1 == 1);
            1.0 / taking.count().max(1) as f32
        });
        let taken = ports.iter().fold(0, |all, port| all | port.takes);
        let held = tables
            .issue
            .iter()
            .fold(0, |all, queue| all | bits(&queue.holds));
        Self {
            ports,
            wanted: vec![[0; WorkKind::COUNT]; threads],
            per_port,
            times: tables.times,
            taken,
            named: taken | held,
        }
    }

    /// Works of an operation here.
    pub(crate) fn works(&self, op: &Op) -> Works {
        let first = 1u32 << op.kind.index();
        let vector = op.data.is_some_and(|data| data.is_vector);
        let named = |work: WorkKind| {
            if self.named & bit(work) != 0 {
                bit(work)
            } else {
                0
            }
        };
        let second = match (op.kind, vector) {
            (OpKind::Load, true) => named(WorkKind::VectorLoad),
            (OpKind::Store, true) if named(WorkKind::VectorStore) != 0 => {
                bit(WorkKind::VectorStore)
            }
            (OpKind::Store, _) => named(WorkKind::StoreData),
            _ => 0,
        };
        Works { first, second }
    }

    /// Forgets the operations that were ready.
    pub(crate) fn clear_wanted(&mut self) {
        self.wanted.fill([0; WorkKind::COUNT]);
    }

    /// Notes an operation of a thread that is ready.
    pub(crate) fn note_ready(&mut self, works: Works, thread: usize) {
        for work in works.positions() {
            self.wanted[thread][work] += 1;
        }
    }

    /// Issues an operation of a thread if all ports that it needs are free.
    pub(crate) fn issue(&mut self, works: Works, thread: usize, cycle: u64) -> bool {
        let Some(first) = self.find(works.first, thread, cycle, usize::MAX) else {
            return false;
        };
        let Some(second) = self.find(works.second, thread, cycle, first) else {
            return false;
        };
        self.occupy(first, works.first, cycle);
        self.occupy(second, works.second, cycle);
        for work in works.positions() {
            let wanted = &mut self.wanted[thread][work];
            *wanted = wanted.saturating_sub(1);
        }
        true
    }

    /// Cycles from issue to the result of a work.
    pub(crate) fn latency(&self, works: Works) -> u64 {
        let latency = |bits: u32| match bits {
            0 => 0,
            _ => u64::from(
                self.times[bits.trailing_zeros() as usize]
                    .latency_cycles
                    .max(1),
            ),
        };
        // The additional work of a load or a store comes after its address.
        latency(works.first) + latency(works.second).saturating_sub(1)
    }

    /// The free port for some work that the fewest other operations wait for; `usize::MAX` where none
    /// is needed.
    fn find(&self, work: u32, thread: usize, cycle: u64, but: usize) -> Option<usize> {
        if work & self.taken == 0 {
            return Some(usize::MAX);
        }
        let free = |(at, port): (usize, &Port)| {
            let taken = if work & DIVISIONS != 0 {
                port.free.max(port.divides)
            } else {
                port.free
            };
            let usable = port.takes & work != 0 && taken <= cycle && port.owner.has(thread);
            (usable && at != but).then_some(at)
        };
        let usable = self.ports.iter().enumerate().filter_map(free);
        // Of equals the first; in order, demand is not counted and all are equal.
        usable.min_by(|&a, &b| self.demand(a).total_cmp(&self.demand(b)))
    }

    /// Ready operations that a port is wanted for, each divided among the ports that take it.
    fn demand(&self, at: usize) -> f32 {
        let port = &self.ports[at];
        let threads = self.wanted.iter().enumerate();
        let its = threads.filter(|(thread, _)| port.owner.has(*thread));
        let of_thread = |(_, wanted): (usize, &[u32; WorkKind::COUNT])| {
            let works = (0..WorkKind::COUNT).filter(|work| port.takes >> work & 1 == 1);
            works
                .map(|work| wanted[work] as f32 * self.per_port[work])
                .sum::<f32>()
        };
        its.map(of_thread).sum()
    }

    fn occupy(&mut self, at: usize, work: u32, cycle: u64) {
        if let Some(port) = self.ports.get_mut(at) {
            let interval = self.times[work.trailing_zeros() as usize].interval_cycles;
            let taken = cycle + u64::from(interval.max(1));
            if work & DIVISIONS != 0 {
                (port.free, port.divides) = (cycle + 1, taken);
            } else {
                port.free = taken;
            }
        }
    }
}

impl PortOwner {
    fn has(self, thread: usize) -> bool {
        match self {
            Self::Thread(owner) => owner == thread,
            Self::Half(half) => half == thread % 2,
            Self::All => true,
        }
    }
}

fn per_thread(count: u32, threads: usize) -> Vec<PortOwner> {
    let each = |t| (0..count).map(move |_| PortOwner::Thread(t));
    (0..threads).flat_map(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_sim::machine::presets;

    #[test]
    fn an_integer_leaves_the_pipes_of_loads_to_loads_that_wait() {
        let spec = presets::find("power7").unwrap();
        let core = spec.core_types.values().next().unwrap();
        let mut ports = Ports::new(&CoreTables::new(core).with_threads(1), 1);
        // Two pipes take integers alone, two take integers, loads and stores.
        let kinds = [OpKind::Integer, OpKind::Integer, OpKind::Load, OpKind::Load];
        let works = kinds.map(|kind| ports.works(&Op::new(kind, 0)));
        works.iter().for_each(|works| ports.note_ready(*works, 0));
        assert_eq!(works.map(|works| ports.issue(works, 0, 1)), [true; 4]);
        let integer = works[0];
        assert_eq!(
            [0; 5].map(|_| ports.issue(integer, 0, 2)),
            [true, true, true, true, false]
        );
    }

    /// Works are looked up by the position of an operation's kind.
    #[test]
    fn kinds_and_works_have_one_order() {
        for (kind, work) in OpKind::ALL.into_iter().zip(WorkKind::ALL) {
            assert_eq!(format!("{kind:?}"), format!("{work:?}"));
            assert_eq!(kind.index(), work.index());
        }
    }
}
