//! Groups onto cores with the fewest moves, and members onto PUs.

use super::GroupedThreads;
use crate::ids::PuId;
use crate::matching::{Seat, assign, assign_priced};
use crate::plan::{Decision, Placement, Reason};
use crate::sample::ThreadObservation;
use crate::topology::{Core, Topology};

/// Places every group on a core of its own and every member on a PU of its own, so that as few
/// threads as possible change their core; `reason` tells of a member, by its index in the crew,
/// why it is in its group. `wanted` tells on which cores a group, by number, is wanted; it is left
/// aside where not all can have such a core. Members that cannot be placed are left to the
/// operating system.
pub fn place_groups(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    wanted: impl Fn(usize, usize) -> bool,
    decision: &mut Decision,
    reason: impl Fn(&[usize], usize) -> Reason,
) {
    let cores = choose_cores(topology, crew, groups, wanted, None);
    place_groups_on(
        topology,
        crew,
        groups,
        &cores,
        decision,
        |group, member, _| reason(group, member),
    );
}

/// Cost for groups of being on cores and of coming there.
#[derive(Clone, Copy)]
pub struct CorePrices<'a> {
    /// Cost of a thread that moves to another core.
    pub move_cost: u32,
    /// Price of a group (by number) on a core.
    pub of: &'a dyn Fn(usize, usize) -> u32,
}

/// The core of each group at the least sum of prices; none for any where the masks do not let all
/// have one.
pub fn priced_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    prices: CorePrices<'_>,
) -> Vec<Option<usize>> {
    choose_cores(topology, crew, groups, |_, _| true, Some(prices))
}

/// Places every group on the core that it is given and every member on a PU of its own there;
/// `reason` tells of a member of a group on a core why. Members that cannot be placed are left to
/// the operating system.
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
        let seats =
            core.and_then(|core| Some((core, choose_pus(&topology.cores()[core], &members)?)));
        let Some((core, pus)) = seats else {
            let why = "no core is left on which its whole group may run";
            members.iter().for_each(|m| leave_to_os(m, why, decision));
            continue;
        };
        for (&member, (thread, pu)) in group.iter().zip(members.iter().zip(pus)) {
            let mut reason = reason(group, member, core);
            reason.chosen = format!("PU {pu}: {}", reason.chosen);
            decision.place(thread.id, Placement::Restricted(pu.into()), reason);
        }
    }
}

/// Leaves a thread to the operating system.
pub fn leave_to_os(thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: "not grouped".to_owned(),
        chosen: format!("left to the OS: {why}"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

/// The core of each group; none for any where the masks do not let all have one.
fn choose_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    wanted: impl Fn(usize, usize) -> bool,
    prices: Option<CorePrices<'_>>,
) -> Vec<Option<usize>> {
    let at = |thread: &&ThreadObservation| topology.core_of(thread.last_pu?);
    let on: Vec<Option<usize>> = crew.members.iter().map(at).collect();
    let seat = |core: &Core| Seat {
        pus: core.pus.len(),
        move_cost: prices.map_or(1, |prices| prices.move_cost),
    };
    let seats: Vec<Seat> = topology.cores().iter().map(seat).collect();
    let allowed = |group: usize, core: usize| {
        let mut members = groups[group].iter().map(|&i| crew.members[i]);
        members.all(|member| may_use(member, &topology.cores()[core]))
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

fn may_use(thread: &ThreadObservation, core: &Core) -> bool {
    core.pus.iter().any(|&pu| thread.original.contains(pu))
}

/// A PU of the core for each member: its own where it has one, else the first that is free. Those
/// with the least choice come first.
fn choose_pus(core: &Core, members: &[&ThreadObservation]) -> Option<Vec<PuId>> {
    let mut free = core.pus.clone();
    let mut given: Vec<Option<PuId>> = vec![None; members.len()];
    let stays = |member: &ThreadObservation, free: &[PuId]| {
        let here = |pu: &PuId| free.contains(pu) && member.original.contains(*pu);
        member.last_pu.filter(here)
    };
    for (member, given) in members.iter().zip(&mut given) {
        *given = stays(member, &free);
        free.retain(|pu| Some(*pu) != *given);
    }
    let choice = |&i: &usize| usable_pus(members[i], &core.pus).count();
    let mut waiting: Vec<usize> = (0..members.len()).filter(|&i| given[i].is_none()).collect();
    waiting.sort_by_key(choice);
    for i in waiting {
        let pu = usable_pus(members[i], &free).next()?;
        free.retain(|&other| other != pu);
        given[i] = Some(pu);
    }
    given.into_iter().collect()
}

fn usable_pus<'a>(
    member: &'a ThreadObservation,
    pus: &'a [PuId],
) -> impl Iterator<Item = PuId> + 'a {
    let may = |pu: &&PuId| member.original.contains(**pu);
    pus.iter().filter(may).copied()
}
