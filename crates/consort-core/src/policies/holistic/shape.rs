//! Shape of a mapping, by which the rules price it: the co-runners of each program, and the share
//! of time of each.

use crate::ids::PuId;
use crate::topology::{Domain, Topology};
use std::collections::BTreeMap;

/// A program in a part of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ProgramShare {
    /// Index of the program among the active ones.
    pub(super) group: usize,
    /// Its threads on a CPU at a time.
    pub(super) running: f64,
    /// Its threads there.
    pub(super) threads: f64,
}

/// A part of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MachinePart {
    /// Number of its CPUs.
    pub(super) pus: usize,
    /// Capacity of its cache relative to the largest of its kind, above 0 to 1; 1 if capacities are
    /// not known.
    pub(super) cache: f64,
    /// The programs in it, by group.
    pub(super) shares: Vec<ProgramShare>,
}

impl MachinePart {
    pub(super) fn find_share(&self, group: usize) -> Option<&ProgramShare> {
        let at = self.shares.binary_search_by_key(&group, |s| s.group).ok()?;
        self.shares.get(at)
    }
}

/// Way in which a program's threads run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ProgramOccupancy {
    /// Threads on a CPU at a time.
    pub(super) running: f64,
    /// Threads in all.
    pub(super) threads: f64,
    /// The least share of a CPU that one of them has.
    pub(super) least: f64,
    /// Share of strangers among the threads that they take turns with or share a core with, 0 to 1.
    pub(super) strangers: f64,
    /// Share of its CPU that the others on it want, at most 1.
    pub(super) others: f64,
    /// True if its threads stay on their CPUs.
    pub(super) pinned: bool,
}

/// A mapping as the rules see it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct MappingShape {
    /// LLC domains.
    pub(super) domains: Vec<MachinePart>,
    /// NUMA nodes, each with a memory path.
    pub(super) nodes: Vec<MachinePart>,
    /// Way in which each program's threads run, by group.
    pub(super) groups: Vec<ProgramOccupancy>,
    /// True if the programs take turns, each on all CPUs.
    pub(super) in_turns: bool,
    /// Number of CPUs.
    pub(super) pus: usize,
    /// CPUs that no thread may use as long as the mapping holds.
    pub(super) idle: usize,
}

impl MappingShape {
    /// Shape of threads on CPUs, program by program.
    pub(super) fn from_places(topology: &Topology, places: &[Vec<PuId>], in_turns: bool) -> Self {
        let loads = PuLoads::new(topology, places);
        let is_doubled = loads.loads.values().any(|&load| load > 1);
        Self {
            domains: loads.machine_parts(topology, topology.llcs()),
            nodes: loads.machine_parts(topology, topology.nodes()),
            groups: (0..places.len())
                .map(|group| loads.program_occupancy(group))
                .collect(),
            in_turns: in_turns && is_doubled,
            pus: topology.pus().len(),
            idle: topology.pus().len() - loads.loads.len(),
        }
    }

    /// Expected shape under an operating system that spreads threads evenly and blindly.
    pub(super) fn from_even_spread(topology: &Topology, counts: &[usize]) -> Self {
        let pus = topology.pus().len();
        let all: usize = counts.iter().sum();
        let share = (pus as f64 / all.max(1) as f64).min(1.0);
        let parts = |domains: &[Domain]| {
            let mut parts = empty_parts(domains);
            for (part, domain) in parts.iter_mut().zip(domains) {
                // The domain's part of all threads, each of which runs for `share` of the time.
                let here = domain.pus.len() as f64 / pus.max(1) as f64;
                for (group, &n) in counts.iter().enumerate() {
                    part.shares.push(ProgramShare {
                        group,
                        running: n as f64 * share * here,
                        threads: n as f64 * here,
                    });
                }
            }
            parts
        };
        let doubled = all > topology.cores().len();
        let occupancy = |&n: &usize| ProgramOccupancy {
            running: n as f64 * share,
            threads: n as f64,
            least: share,
            strangers: if doubled {
                ratio_or_zero(all - n, all - 1)
            } else {
                0.0
            },
            others: ratio_or_zero(all.saturating_sub(1), pus).min(1.0),
            pinned: false,
        };
        Self {
            domains: parts(topology.llcs()),
            nodes: parts(topology.nodes()),
            groups: counts.iter().map(occupancy).collect(),
            in_turns: false,
            pus,
            idle: pus.saturating_sub(all),
        }
    }

    /// Sorts the parts into an order that does not depend on their names.
    pub(super) fn into_canonical(mut self) -> Self {
        let key = |part: &MachinePart| -> (Vec<(usize, u64, u64)>, u64) {
            let shares = part.shares.iter();
            let shares = shares.map(|s| (s.group, s.running.to_bits(), s.threads.to_bits()));
            (shares.collect(), part.cache.to_bits())
        };
        self.domains.sort_by_key(key);
        self.nodes.sort_by_key(key);
        self
    }

    /// Share of a program's pairs of siblings that are in different LLC domains.
    pub(super) fn separated_share(&self, group: usize) -> f64 {
        let running = self.groups[group].running;
        if running <= 0.0 {
            return 0.0;
        }
        let here = self.domains.iter().filter_map(|d| d.find_share(group));
        1.0 - here.map(|s| (s.running / running).powi(2)).sum::<f64>()
    }
}

fn ratio_or_zero(part: usize, whole: usize) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

/// Threads by CPU and by core.
struct PuLoads<'a> {
    places: &'a [Vec<PuId>],
    loads: BTreeMap<PuId, usize>,
    /// Threads of each group by core.
    cores: BTreeMap<usize, BTreeMap<usize, usize>>,
    core_of: BTreeMap<PuId, usize>,
}

impl<'a> PuLoads<'a> {
    fn new(topology: &Topology, places: &'a [Vec<PuId>]) -> Self {
        let mut loads = Self {
            places,
            loads: BTreeMap::new(),
            cores: BTreeMap::new(),
            core_of: BTreeMap::new(),
        };
        for (group, pus) in places.iter().enumerate() {
            for &pu in pus {
                *loads.loads.entry(pu).or_default() += 1;
                let Some(core) = topology.core_of(pu) else {
                    continue;
                };
                loads.core_of.insert(pu, core);
                let there = loads.cores.entry(core).or_default();
                *there.entry(group).or_default() += 1;
            }
        }
        loads
    }

    /// The share of a CPU that each thread on it has.
    fn pu_share(&self, pu: PuId) -> f64 {
        1.0 / self.loads.get(&pu).copied().unwrap_or(1) as f64
    }

    fn machine_parts(&self, topology: &Topology, domains: &[Domain]) -> Vec<MachinePart> {
        let mut index = BTreeMap::new();
        for (i, domain) in domains.iter().enumerate() {
            index.extend(domain.pus.iter().map(|pu| (pu, i)));
        }
        let mut parts = empty_parts(domains);
        for (group, pus) in self.places.iter().enumerate() {
            for pu in pus.iter().filter(|&&pu| topology.pus().contains(pu)) {
                let Some(part) = index.get(pu).and_then(|&i| parts.get_mut(i)) else {
                    continue;
                };
                let running = self.pu_share(*pu);
                // Groups come in ascending order, so that only the last can be this one.
                match part.shares.last_mut().filter(|s| s.group == group) {
                    Some(last) => {
                        last.running += running;
                        last.threads += 1.0;
                    }
                    None => part.shares.push(ProgramShare {
                        group,
                        running,
                        threads: 1.0,
                    }),
                }
            }
        }
        parts
    }

    fn program_occupancy(&self, group: usize) -> ProgramOccupancy {
        let pus = &self.places[group];
        let shares: Vec<f64> = pus.iter().map(|&pu| self.pu_share(pu)).collect();
        let mean = |value: &dyn Fn(PuId) -> f64| {
            let values: Vec<f64> = pus.iter().map(|&pu| value(pu)).collect();
            crate::stats::mean(&values).unwrap_or(0.0)
        };
        ProgramOccupancy {
            running: shares.iter().sum(),
            threads: pus.len() as f64,
            least: shares.iter().copied().fold(1.0, f64::min),
            strangers: mean(&|pu| self.stranger_share(group, pu)),
            others: mean(&|pu| (self.loads[&pu] - 1).min(1) as f64),
            pinned: true,
        }
    }

    /// Share of strangers among the other threads on the core of a thread.
    fn stranger_share(&self, group: usize, pu: PuId) -> f64 {
        let there = self.core_of.get(&pu).and_then(|core| self.cores.get(core));
        let all: usize = there.iter().flat_map(|there| there.values()).sum();
        let own = there.and_then(|there| there.get(&group)).copied();
        ratio_or_zero(all - own.unwrap_or(0).min(all), all.saturating_sub(1))
    }
}

/// Capacities of domains' caches relative to the largest; all 1 if any is not known.
pub(super) fn relative_caches(domains: &[Domain]) -> Vec<f64> {
    let sizes: Option<Vec<u64>> = domains.iter().map(|domain| domain.size_bytes).collect();
    let sizes = sizes.filter(|sizes| !sizes.contains(&0));
    let Some(sizes) = sizes else {
        return vec![1.0; domains.len()];
    };
    let largest = sizes.iter().copied().max().unwrap_or(1) as f64;
    let sizes = sizes.into_iter();
    sizes.map(|size| size as f64 / largest).collect()
}

fn empty_parts(domains: &[Domain]) -> Vec<MachinePart> {
    let caches = relative_caches(domains);
    let pairs = domains.iter().zip(caches);
    pairs
        .map(|(domain, cache)| MachinePart {
            pus: domain.pus.len(),
            cache,
            shares: Vec::new(),
        })
        .collect()
}
