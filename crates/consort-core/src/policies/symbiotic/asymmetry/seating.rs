//! Seating of groups: on the cores where they lose least, and on others to learn.

use super::super::objective::SlowdownObjective;
use super::super::partners::Partners;
use super::CoreDisadvantages;
use crate::plan::{Decision, Fact};
use crate::policies::grouping::{CorePrices, GroupedThreads, place_groups_on, priced_cores};
use crate::policy::PolicyRng;
use crate::topology::Topology;
use rand::RngExt;

/// Parts of a slowdown of 1 that prices are counted in.
const PARTS: f64 = 1e6;

/// Gain that a move must bring a thread, as a part of its slowdown: to fetch anew what an LLC
/// domain of 8 MB holds takes some 2 ms, which is this share of a quantum of 100 ms. An estimate.
const MOVE: f64 = 0.02;

/// A core for every group, all arrangements equally likely where masks allow all: the cheapest of
/// random prices.
pub(in super::super) fn random_cores(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    groups: &[Vec<usize>],
    rng: &mut PolicyRng,
) -> Vec<Option<usize>> {
    let cores = topology.cores().len();
    let drawn: Vec<u32> = (0..groups.len() * cores)
        .map(|_| rng.random::<u32>())
        .collect();
    let prices = CorePrices {
        move_cost: 0,
        of: &|group, core| drawn[group * cores + core],
    };
    priced_cores(topology, crew, groups, prices)
}

/// Places the groups where the slowdowns that cores and moves add are least.
pub(in super::super) fn place_groups(
    topology: &Topology,
    crew: &GroupedThreads<'_>,
    (partners, objective): (&Partners, SlowdownObjective),
    asymmetry: &CoreDisadvantages,
    decision: &mut Decision,
) {
    let groups = partners.groups();
    let best = asymmetry.best_core();
    let extra = |member: usize, core: usize| {
        let thread = crew.members[member].id;
        let slowdown = partners.slowdown(thread);
        let here = slowdown * asymmetry.slowdown(thread, core, best);
        objective.cost(here) - objective.cost(slowdown)
    };
    let price = |group: usize, core: usize| {
        let extra: f64 = groups[group]
            .iter()
            .map(|&member| extra(member, core))
            .sum();
        (extra.max(0.0) * PARTS) as u32
    };
    let prices = CorePrices {
        move_cost: (MOVE * PARTS) as u32,
        of: &price,
    };
    let cores = priced_cores(topology, crew, groups, prices);
    place_groups_on(
        topology,
        crew,
        groups,
        &cores,
        decision,
        |group, member, core| {
            let mut reason = partners.reason(crew, group, member);
            reason.facts.extend(facts(asymmetry, crew, member, core));
            reason
        },
    );
}

/// Name of the fact of a thread's core: logarithm of the ratio of the time that waiting for memory
/// takes there to that on the mean core.
pub const CORE_DISADVANTAGE: &str = "disadvantage of the core";

fn facts(
    asymmetry: &CoreDisadvantages,
    crew: &GroupedThreads<'_>,
    member: usize,
    core: usize,
) -> [Fact; 2] {
    let fact = |name: &'static str, value, unit: &'static str| Fact {
        name: name.into(),
        value,
        unit: unit.into(),
    };
    let thread = crew.members[member].id;
    [
        fact(
            "waiting for memory alone",
            asymmetry.shares.share(thread),
            "of cycles",
        ),
        fact(
            CORE_DISADVANTAGE,
            asymmetry.disadvantage(core),
            "of that, ln",
        ),
    ]
}
