//! Threads in groups, one group per core: which threads take part, and which core and CPU each
//! gets.
//!
//! `symbiotic`, `l1-bandwidth` and `sampling` differ in how they make groups. [`GroupedThreads`]
//! are the threads to group, and [`place_groups`] places the groups with the fewest moves. The
//! module is public because the oracle, which only a simulation can have, makes groups as well.

use crate::ids::{PuId, ThreadId};
use crate::matching::{Seat, assign, assign_priced};
use crate::plan::{Decision, Placement, Reason};
use crate::policy::View;
use crate::sample::ThreadObservation;
use crate::topology::{Core, Domain, Topology};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Factor by which a thread that is already placed leads one of equal activity that is not, so that
/// equal threads do not take turns if CPUs are short.
const INCUMBENT_ACTIVITY: f64 = 1.1;

/// The threads to group, and the threads that are left to the operating system.
pub struct GroupedThreads<'a> {
    /// Threads to group, by id.
    pub members: Vec<&'a ThreadObservation>,
    /// Threads that are left to the operating system, each with the reason.
    pub left: Vec<(&'a ThreadObservation, Cow<'static, str>)>,
}

impl<'a> GroupedThreads<'a> {
    /// Takes the most active threads that there is room for. A thread takes part from the share
    /// `active` of a CPU on. Threads for which `placed` is true were placed before.
    pub fn new(
        view: View<'a>,
        active: f64,
        room: usize,
        placed: impl Fn(&ThreadObservation) -> bool,
    ) -> Self {
        let (mut members, mut left) = (Vec::new(), Vec::new());
        for thread in view.observation.managed_threads() {
            let usable = thread.original.intersection(view.topology.pus());
            if let Some(why) = view.observation.reason_to_leave(thread, active) {
                left.push((thread, why));
            } else if usable.is_empty() {
                left.push((thread, "it may not run on any CPU that is online".into()));
            } else {
                members.push(thread);
            }
        }
        if members.len() > room {
            let activity = |thread: &ThreadObservation| {
                let lead = if placed(thread) {
                    INCUMBENT_ACTIVITY
                } else {
                    1.0
                };
                thread.sample.cpu_time_ns() * lead
            };
            members.sort_by(|a, b| activity(b).total_cmp(&activity(a)).then(a.id.cmp(&b.id)));
            for thread in members.split_off(room) {
                let why = "there are more active threads than places";
                left.push((thread, why.into()));
            }
            members.sort_by_key(|thread| thread.id);
        }
        Self { members, left }
    }
}

/// A part of the machine that gets threads of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FillDomain {
    /// Its threads, as ascending indices into [`GroupedThreads::members`].
    pub members: Vec<usize>,
    /// Its cores, as ascending indices into [`Topology::cores`].
    pub cores: Vec<usize>,
}

impl FillDomain {
    /// The whole machine, for all threads.
    pub fn from_topology(topology: &Topology, crew: &GroupedThreads<'_>) -> Self {
        Self {
            members: (0..crew.members.len()).collect(),
            cores: (0..topology.cores().len()).collect(),
        }
    }
}

/// Returns true if a core is in the domain of a group, which is given by its members.
pub fn is_in_own_domain(domains: &[FillDomain], group: &[usize], core: usize) -> bool {
    let domain = domains
        .iter()
        .find(|domain| domain.cores.binary_search(&core).is_ok());
    let both = domain.zip(group.first());
    both.is_some_and(|(domain, first)| domain.members.binary_search(first).is_ok())
}

/// The NUMA node on which each thread was first seen. The kernel allocates memory where a thread
/// first touches it, so the thread's memory is there.
#[derive(Debug, Default)]
pub struct HomeNodes(BTreeMap<ThreadId, usize>);

impl HomeNodes {
    /// Forgets exited threads.
    pub fn retain(&mut self, is_here: impl Fn(ThreadId) -> bool) {
        self.0.retain(|&id, _| is_here(id));
    }

    /// Divides the threads among the nodes: each to its own, as long as no node has more than its
    /// share of them by its cores. Threads in excess go to the node with the most room.
    pub fn divide_by_node(
        &mut self,
        topology: &Topology,
        crew: &GroupedThreads<'_>,
    ) -> Vec<FillDomain> {
        let cores = topology.cores().len().max(1);
        let nodes = topology.nodes();
        let share = |node: usize| (crew.members.len() * nodes[node].cores.len()).div_ceil(cores);
        let empty = |node: &Domain| FillDomain {
            members: Vec::new(),
            cores: node.cores.clone(),
        };
        let mut domains: Vec<FillDomain> = nodes.iter().map(empty).collect();
        let mut beyond = Vec::new();
        for (index, thread) in crew.members.iter().enumerate() {
            let here = thread.last_pu.and_then(|pu| topology.core_of(pu));
            let here = here.map(|core| topology.cores()[core].node);
            let home = match (self.0.get(&thread.id), here) {
                (Some(&home), _) => Some(home),
                (None, Some(here)) => Some(*self.0.entry(thread.id).or_insert(here)),
                (None, None) => None,
            };
            // A node number may be stale after hotplug.
            let has_room =
                |&node: &usize| node < domains.len() && domains[node].members.len() < share(node);
            match home.filter(has_room) {
                Some(node) => domains[node].members.push(index),
                None => beyond.push(index),
            }
        }
        for index in beyond {
            let room = |node: usize| share(node).saturating_sub(domains[node].members.len());
            let node = (0..nodes.len()).max_by_key(|&node| (room(node), usize::MAX - node));
            if let Some(node) = node {
                domains[node].members.push(index);
            }
        }
        for domain in &mut domains {
            domain.members.sort_unstable();
        }
        domains
    }
}

/// Places every group on a core of its own and every member on a CPU of its own, so that as few
/// threads as possible change their core. `reason` returns why a member, given by its index, is in
/// its group. `wanted` returns whether a group, by number, should be on a core; it is ignored if
/// not all groups can have such a core. Members that cannot be placed are left to the operating
/// system.
pub fn place_groups(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    wanted: impl Fn(usize, usize) -> bool,
    decision: &mut Decision,
    reason: impl Fn(&[usize], usize) -> Reason,
) {
    let cores = choose_cores(topology, crew, groups, wanted, None);
    let reason = |group: &[usize], member: usize, _: usize| reason(group, member);
    place_groups_on(topology, crew, groups, &cores, decision, reason);
}

/// Prices of cores for groups.
#[derive(Clone, Copy)]
pub struct CorePrices<'a> {
    /// Price of each thread that moves to another core.
    pub move_cost: u32,
    /// Price of a group, by number, on a core.
    pub of: &'a dyn Fn(usize, usize) -> u32,
}

/// The core of each group at the least sum of prices; `None` for all groups if the affinity masks
/// leave a group without a core.
pub fn priced_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    prices: CorePrices<'_>,
) -> Vec<Option<usize>> {
    choose_cores(topology, crew, groups, |_, _| true, Some(prices))
}

/// Places every group on its core and every member on a CPU of its own there. `reason` returns why
/// a member of a group is on a core. Members that cannot be placed are left to the operating
/// system.
pub fn place_groups_on(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    cores: &[Option<usize>],
    decision: &mut Decision,
    reason: impl Fn(&[usize], usize, usize) -> Reason,
) {
    for (group, core) in groups.iter().zip(cores) {
        let members: Vec<&ThreadObservation> = group.iter().map(|&i| crew.members[i]).collect();
        let places = core.and_then(|core| {
            let pus = choose_pus(&topology.cores()[core], &members)?;
            Some((core, pus))
        });
        let Some((core, pus)) = places else {
            let why = "no core is left on which its whole group may run";
            members.iter().for_each(|m| leave_to_os(m, why, decision));
            continue;
        };
        for (&member, (thread, pu)) in group.iter().zip(members.iter().zip(pus)) {
            let mut reason = reason(group, member, core);
            reason.chosen = format!("CPU {pu}: {}", reason.chosen);
            decision.place(thread.id, Placement::Restricted(pu.into()), reason);
        }
    }
}

/// Leaves a thread to the operating system.
pub fn leave_to_os(thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: "not grouped".to_owned(),
        chosen: format!("not placed: {why}"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

/// The core of each group; `None` for all groups if the affinity masks leave a group without a
/// core.
fn choose_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    wanted: impl Fn(usize, usize) -> bool,
    prices: Option<CorePrices<'_>>,
) -> Vec<Option<usize>> {
    let members = crew.members.iter();
    let on: Vec<Option<usize>> = members
        .map(|thread| topology.core_of(thread.last_pu?))
        .collect();
    let seat = |core: &Core| Seat {
        pus: core.pus.len(),
        move_cost: prices.map_or(1, |prices| prices.move_cost),
    };
    let seats: Vec<Seat> = topology.cores().iter().map(seat).collect();
    let allowed = |group: usize, core: usize| {
        let pus = &topology.cores()[core].pus;
        let mut members = groups[group].iter().map(|&i| &crew.members[i].original);
        members.all(|original| pus.iter().any(|&pu| original.contains(pu)))
    };
    let both = |group, core| wanted(group, core) && allowed(group, core);
    let seating = match prices {
        Some(prices) => assign_priced(groups, &on, &seats, both, prices.of),
        None => assign(groups, &on, &seats, both),
    };
    match seating.or_else(|_| assign(groups, &on, &seats, allowed)) {
        Ok(seating) => seating.cores.into_iter().map(Some).collect(),
        Err(_) => vec![None; groups.len()],
    }
}

/// A CPU of the core for each member: its present one if possible, else the first that is free.
/// Members with the least choice come first, because others can use what they leave.
fn choose_pus(core: &Core, members: &[&ThreadObservation]) -> Option<Vec<PuId>> {
    let mut free = core.pus.clone();
    let mut given: Vec<Option<PuId>> = vec![None; members.len()];
    for (member, given) in members.iter().zip(&mut given) {
        let stays = |pu: &PuId| free.contains(pu) && member.original.contains(*pu);
        *given = member.last_pu.filter(stays);
        free.retain(|pu| Some(*pu) != *given);
    }
    let mut waiting: Vec<usize> = (0..members.len()).filter(|&i| given[i].is_none()).collect();
    waiting.sort_by_key(|&i| {
        let original = &members[i].original;
        core.pus.iter().filter(|pu| original.contains(**pu)).count()
    });
    for i in waiting {
        let pu = *free.iter().find(|pu| members[i].original.contains(**pu))?;
        free.retain(|&other| other != pu);
        given[i] = Some(pu);
    }
    given.into_iter().collect()
}
