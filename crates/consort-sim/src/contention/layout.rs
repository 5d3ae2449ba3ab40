//! Structures that one set of running threads shares, with the threads that share each.

use super::caches::CacheSets;
use super::claims::{RESOURCES, Supply};
use super::core_model::UnitQueue;
use super::misses::PrefetchShares;
use super::stations::QueueingStation;
use super::supply::{port_limits, supply, unit_queues};
use super::thread_setting::{KnownPhases, ThreadSetting};
use super::twins::RepresentativeThreads;
use super::types::RunningThread;
use crate::chip::{Chip, KIB, PuPlace};
use crate::machine::{PrefetchScope, Scope};
use std::collections::BTreeMap;

/// Bytes per ns are GB/s; per second, this many.
const GB: f64 = 1e9;

/// A cache and the streams into it.
#[derive(Clone, Debug)]
pub(crate) struct SharedCache {
    /// Capacity, bytes.
    pub(crate) bytes: f64,
    /// Level: 0 for L1 to 3 for all LLC domains of a package together.
    pub(crate) level: usize,
    /// Number of the capacity, where one cache stands for several; see [`CacheSets`].
    pub(crate) part: usize,
    /// Threads' data and code for which lines are brought in.
    pub(crate) users: Vec<CacheUser>,
}

/// A thread's data or code in a cache.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CacheUser {
    /// Index of the thread.
    pub(crate) thread: usize,
    /// True if it is code.
    pub(crate) code: bool,
    /// Share of what is held that is charged to this thread.
    pub(crate) charge: f64,
    /// Number of such threads that bring lines into this cache.
    pub(crate) times: f64,
}

/// A station and its visitors.
#[derive(Clone, Debug)]
pub(crate) struct SharedStation {
    pub(crate) station: QueueingStation,
    /// Threads that visit it.
    pub(crate) visitors: Vec<usize>,
    /// True if it carries what LLC domains send each other.
    pub(crate) carries_llc: bool,
    /// Slots that a line takes that is read: more than one on buses that snoop each other.
    pub(crate) slots_per_read: f64,
}

/// Everything shared by the running threads.
#[derive(Clone, Debug)]
pub(crate) struct SharedStructures<'a> {
    /// Representatives of the running threads; every index elsewhere is one of theirs.
    pub(crate) twins: RepresentativeThreads<'a>,
    /// Setting of each thread.
    pub(crate) settings: Vec<ThreadSetting<'a>>,
    /// Use per instruction of what a core's threads share, by thread.
    pub(crate) uses: Vec<[f64; RESOURCES]>,
    /// Threads of each core that runs any.
    pub(crate) cores: Vec<Vec<usize>>,
    /// Supply of each of those cores.
    pub(crate) supplies: Vec<Supply>,
    /// Ports that the threads of each of those cores wait for.
    pub(crate) unit_queues: Vec<Vec<UnitQueue>>,
    /// Caches that run any thread, L1 first.
    pub(crate) caches: Vec<SharedCache>,
    /// Threads of each branch predictor.
    pub(crate) predictors: Vec<Vec<usize>>,
    /// Stations: memory of each node, then interconnect of each package, then links of each node.
    pub(crate) stations: Vec<SharedStation>,
    /// Indices of the stations that each thread visits.
    pub(crate) visits: Vec<Vec<usize>>,
    /// Threads of each program that contend for locks.
    pub(crate) lockers: Vec<Vec<usize>>,
}

/// Groups `0..n` by a key, in the order of the keys.
fn groups<K: Ord>(n: usize, key: impl Fn(usize) -> Option<K>) -> Vec<Vec<usize>> {
    let mut found: BTreeMap<K, Vec<usize>> = BTreeMap::new();
    for i in 0..n {
        if let Some(k) = key(i) {
            found.entry(k).or_default().push(i);
        }
    }
    found.into_values().collect()
}

impl<'a> SharedStructures<'a> {
    /// Works out what the threads share.
    pub(crate) fn new(
        chip: &'a Chip,
        known: &mut KnownPhases,
        running: &[RunningThread<'a>],
    ) -> Self {
        let twins = RepresentativeThreads::new(chip, running);
        let running = twins.running.as_slice();
        let places: Vec<PuPlace> = running.iter().map(|r| chip.places()[r.pu]).collect();
        let cores = group_by_place(chip.domains().cores, &places, |p| p.core);
        let settings = settings(chip, known, &twins, &places, &cores);
        let mut uses = vec![[0.0; RESOURCES]; running.len()];
        let (mut supplies, mut queues) = (Vec::new(), Vec::new());
        for members in &cores {
            let limits = port_limits(&settings, members);
            supplies.push(supply(&settings, &mut uses, members, &limits));
            queues.push(unit_queues(members.len(), &limits));
        }
        let stations = stations(chip, running, &places);
        let mut visits = vec![Vec::new(); running.len()];
        for (at, station) in stations.iter().enumerate() {
            for &i in &station.visitors {
                visits[i].push(at);
            }
        }
        Self {
            supplies,
            uses,
            unit_queues: queues,
            visits,
            caches: caches(chip, &twins, &places),
            predictors: predictors(&settings, &cores),
            stations,
            lockers: lockers(&twins),
            settings,
            cores,
            twins,
        }
    }
}

/// Threads by an index of their place; only domains with threads.
fn group_by_place(
    count: usize,
    places: &[PuPlace],
    index: impl Fn(&PuPlace) -> usize,
) -> Vec<Vec<usize>> {
    let mut slots = vec![Vec::new(); count];
    for (i, place) in places.iter().enumerate() {
        slots[index(place)].push(i);
    }
    slots.retain(|members| !members.is_empty());
    slots
}

fn settings<'a>(
    chip: &'a Chip,
    known: &mut KnownPhases,
    twins: &RepresentativeThreads<'a>,
    places: &[PuPlace],
    cores: &[Vec<usize>],
) -> Vec<ThreadSetting<'a>> {
    let running = &twins.running;
    let mut on_core = vec![1; running.len()];
    for members in cores {
        for &i in members {
            on_core[i] = members.len();
        }
    }
    let prefetching = prefetch_shares(chip, twins, places);
    let each = running.iter().zip(places).enumerate();
    let setting = |(i, (r, &place)): (usize, (&RunningThread<'a>, &PuPlace))| {
        ThreadSetting::new(chip, known, *r, place, on_core[i], prefetching[i])
    };
    each.map(setting).collect()
}

/// Returns the shares of prefetching that siblings on one prefetcher leave each other: shared data
/// is fetched once, as are lines brought in vain, which overlap whether data is shared or not.
fn prefetch_shares(
    chip: &Chip,
    twins: &RepresentativeThreads<'_>,
    places: &[PuPlace],
) -> Vec<PrefetchShares> {
    let running = &twins.running;
    let group = |i: usize| {
        let scope = chip.core_spec(places[i]).prefetcher.as_ref()?.per;
        let index = match scope {
            PrefetchScope::Core => places[i].core,
            PrefetchScope::L2 => places[i].l2,
            PrefetchScope::Llc => places[i].llc,
        };
        Some((running[i].demand.program, index))
    };
    let mut shares = vec![PrefetchShares::WHOLE; running.len()];
    let is_own = |r: &RunningThread<'_>| {
        r.demand.shared_data == 0.0 && r.demand.phase.spec.prefetch.excess == 0.0
    };
    if running.iter().all(is_own) {
        return shares;
    }
    for members in groups(running.len(), group) {
        let scope = |i: usize| chip.core_spec(places[i]).prefetcher.as_ref().map(|p| p.per);
        let siblings = |&i: &usize| match scope(i) {
            Some(PrefetchScope::Llc) => twins.in_llc[i],
            _ => 1.0,
        };
        let siblings = members.iter().map(siblings).sum();
        for &i in &members {
            shares[i] = PrefetchShares {
                useful: charge(running[i].demand.shared_data, siblings),
                excess: charge(1.0, siblings),
            };
        }
    }
    shares
}

/// Returns the share that each of `siblings` is charged when a share of the whole is common to all.
fn charge(shared: f64, siblings: f64) -> f64 {
    1.0 - shared + shared / siblings
}

fn caches(chip: &Chip, twins: &RepresentativeThreads<'_>, places: &[PuPlace]) -> Vec<SharedCache> {
    let running = &twins.running;
    let once = vec![1.0; running.len()];
    let domains = chip.domains();
    let line = f64::from(chip.spec().memory.line_bytes);
    let mut all = Vec::new();
    push_l1_caches(chip, running, places, &once, &mut all);
    for members in group_by_place(domains.l2s, places, |p| p.l2) {
        if let Some(l2) = &chip.core_spec(places[members[0]]).l2 {
            let cache = (1, l2.size_kib * KIB, line);
            all.push(unified_cache(cache, running, &members, &once));
        }
    }
    let llc = &chip.spec().llc;
    for members in group_by_place(domains.llcs, places, |p| p.llc) {
        let kib = chip.llc_kib(places[members[0]].llc);
        if kib > 0.0 {
            let cache = (2, kib * KIB, line);
            all.push(unified_cache(cache, running, &members, &twins.in_llc));
        }
    }
    if llc.remote_latency_ns.is_some() {
        let regions = domains.llcs / domains.packages.max(1);
        for members in group_by_place(domains.packages, places, |p| p.package) {
            let first = places[members[0]].package * regions;
            let kib: f64 = (first..first + regions).map(|llc| chip.llc_kib(llc)).sum();
            let cache = (3, kib * KIB, line);
            all.push(unified_cache(cache, running, &members, &twins.times));
        }
    }
    all
}

/// L1 caches for data and for instructions.
fn push_l1_caches(
    chip: &Chip,
    running: &[RunningThread<'_>],
    places: &[PuPlace],
    once: &[f64],
    all: &mut Vec<SharedCache>,
) {
    for code in [false, true] {
        let owner = |i: usize| {
            let core = chip.core_spec(places[i]);
            let cache = if code { &core.l1i } else { &core.l1d };
            match cache.per {
                Scope::Pu => (true, running[i].pu),
                Scope::Core => (false, places[i].core),
            }
        };
        for members in groups(running.len(), |i| Some(owner(i))) {
            let core = chip.core_spec(places[members[0]]);
            let cache = if code { &core.l1i } else { &core.l1d };
            let parts = match code {
                true => CacheSets::from_ways(cache.ways).capacities().collect(),
                false => vec![1.0],
            };
            let users = users(running, &members, once, code);
            for (part, share) in parts.into_iter().enumerate() {
                all.push(SharedCache {
                    bytes: cache.size_kib * KIB * share,
                    level: 0,
                    part,
                    users: users.clone(),
                });
            }
        }
    }
}

/// A cache for data and instructions.
fn unified_cache(
    (level, bytes, line_bytes): (usize, f64, f64),
    running: &[RunningThread<'_>],
    members: &[usize],
    times: &[f64],
) -> SharedCache {
    let mut all = users(running, members, times, false);
    let with_code: Vec<usize> = members
        .iter()
        .copied()
        .filter(|&i| !running[i].demand.phase.code_for(line_bytes).is_flat_zero())
        .collect();
    all.extend(users(running, &with_code, times, true));
    SharedCache {
        bytes,
        level,
        part: 0,
        users: all,
    }
}

fn users(
    running: &[RunningThread<'_>],
    members: &[usize],
    times: &[f64],
    code: bool,
) -> Vec<CacheUser> {
    let share = |i: usize| {
        let demand = running[i].demand;
        if code {
            demand.shared_code
        } else {
            demand.shared_data
        }
    };
    // Data is a program's own; of code the system maps one copy for all that run it.
    let owner = |i: usize| {
        let demand = running[i].demand;
        if code { demand.text } else { demand.program }
    };
    let siblings = |i: usize| {
        let same = members.iter().filter(|&&j| owner(j) == owner(i));
        same.map(|&j| times[j]).sum()
    };
    let user = |&i: &usize| CacheUser {
        thread: i,
        code,
        charge: if share(i) > 0.0 {
            charge(share(i), siblings(i))
        } else {
            1.0
        },
        times: times[i],
    };
    members.iter().map(user).collect()
}

fn predictors(settings: &[ThreadSetting<'_>], cores: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let of_core = |members: &Vec<usize>| match settings[members[0]].core.branch_predictor.per {
        Scope::Core => vec![members.clone()],
        Scope::Pu => members.iter().map(|&i| vec![i]).collect(),
    };
    cores.iter().flat_map(of_core).collect()
}

fn stations(chip: &Chip, running: &[RunningThread<'_>], places: &[PuPlace]) -> Vec<SharedStation> {
    let spec = chip.spec();
    let line = f64::from(spec.memory.line_bytes);
    let home = |i: usize| running[i].demand.home_node;
    let buses = f64::from(spec.interconnect.buses.unwrap_or(1));
    let mut all = Vec::new();
    let mut add = |gb_s: f64, servers: f64, carries_llc, visits: &dyn Fn(usize) -> bool| {
        all.push(SharedStation {
            station: QueueingStation {
                lines_per_s: gb_s * servers * GB / line,
                service_s: line / (gb_s * GB),
            },
            visitors: (0..running.len()).filter(|&i| visits(i)).collect(),
            carries_llc,
            slots_per_read: if carries_llc { buses } else { 1.0 },
        });
    };
    let domains = chip.domains();
    let controllers = f64::from(spec.memory.controllers_per_node);
    for node in 0..domains.nodes {
        let visits = |i: usize| home(i) == node;
        add(spec.memory.bandwidth_gb_s, controllers, false, &visits);
    }
    for package in 0..domains.packages {
        let visits = |i: usize| places[i].package == package;
        let each = spec.interconnect.bandwidth_gb_s / buses;
        add(each, buses, true, &visits);
    }
    if let Some(numa) = &spec.numa {
        for node in 0..domains.nodes {
            let visits = |i: usize| home(i) == node && places[i].node != node;
            add(numa.link_bandwidth_gb_s, 1.0, false, &visits);
        }
    }
    all
}

fn lockers(twins: &RepresentativeThreads<'_>) -> Vec<Vec<usize>> {
    let running = &twins.running;
    let program = |i: usize| running[i].demand.lock.map(|_| running[i].demand.program);
    let mut all = groups(running.len(), program);
    all.retain(|members| members.iter().map(|&i| twins.times[i]).sum::<f64>() > 1.0);
    all
}
