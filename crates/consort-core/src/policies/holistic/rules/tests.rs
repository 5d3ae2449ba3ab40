//! Each guideline on a machine on which it decides.

use super::super::candidate::{ISO, MappingCandidate, NodeDivision, ProgramDivision, SPR};
use super::super::characteristics::{
    Characteristic::{self, *},
    ProgramCharacteristics,
};
use super::super::levels::{
    ChoiceBasis, ChoiceLevel, MappingContext, PinningScope, choose_pinning,
};
use super::super::shape::MappingShape;
use super::*;
use crate::ids::PuId;
use crate::topology::{CoreType, PuFacts, Topology};

/// Nodes of LLC domains of two cores with one CPU each.
pub(in crate::policies::holistic) fn machine(nodes: u32, llcs_per_node: u32) -> Topology {
    let facts = (0..2 * nodes * llcs_per_node).map(|pu| PuFacts {
        pu: PuId(pu),
        package: 0,
        node: pu / 2 / llcs_per_node,
        core: pu,
        llc: pu / 2,
        l2: None,
        core_type: 0,
    });
    Topology::new(facts.collect(), vec![CoreType::uniform()]).unwrap()
}

fn known(values: &[(Characteristic, f64)]) -> ProgramCharacteristics {
    let mut known = ProgramCharacteristics::default();
    for &(what, value) in values {
        known.set(what, Some(value));
    }
    known
}

/// The choices for programs of so many threads.
fn levels(
    topology: &Topology,
    counts: &[usize],
    known: &[ProgramCharacteristics],
) -> Vec<ChoiceLevel> {
    let now = MappingShape::from_even_spread(topology, counts);
    let scene = MappingContext {
        topology,
        counts,
        known,
        now: &now,
    };
    scene.choose_levels()
}

fn last(levels: &[ChoiceLevel]) -> &ChoiceLevel {
    levels.last().unwrap()
}

fn inside(level: &ChoiceLevel) -> NodeDivision {
    match level.best().candidate {
        MappingCandidate::Placed { inside, .. } => inside,
        MappingCandidate::Os => panic!("levels place"),
    }
}

/// The only rules whose prices differ at a level.
fn deciding(level: &ChoiceLevel) -> Vec<&'static str> {
    let prices = |at: usize| level.weighed.iter().map(move |w| w.bill.prices[at]);
    let differs = |at: &usize| prices(*at).any(|p| p != prices(*at).next().unwrap());
    let rules = (0..RULES.len()).filter(differs);
    rules.map(|at| RULES[at].name).collect()
}

/// Choice at the LLC level for two programs of four threads on two LLC domains of two cores, and
/// the rules that decided it.
fn two_domains(both: &[(Characteristic, f64)]) -> (NodeDivision, Vec<&'static str>) {
    let known = [known(both), known(both)];
    let levels = levels(&machine(1, 2), &[4, 4], &known);
    (inside(&levels[0]), deciding(&levels[0]))
}

#[test]
fn siblings_with_shared_data_stay_together() {
    let shared = two_domains(&[(LlcMisses, 1e6), (Sharing, 0.5)]);
    assert_eq!(shared, (ISO, vec!["data sharing"]));
}

#[test]
fn strangers_with_high_cache_demand_are_separated() {
    let demand = [(LlcAccesses, 1e8), (LlcMisses, 1e7), (Sharing, 0.0)];
    assert_eq!(two_domains(&demand), (ISO, vec!["cache demand"]));
}

#[test]
fn high_cache_demand_gets_the_larger_domain() {
    let heavy = known(&[(LlcAccesses, 1e8), (LlcMisses, 1e7), (Sharing, 0.0)]);
    let light = known(&[(LlcAccesses, 1e3), (LlcMisses, 1e1), (Sharing, 0.0)]);
    let sizes = |llcs: [u64; 2]| {
        let llcs = [(0, llcs[0]), (1, llcs[1])].into();
        machine(1, 2).with_cache_sizes(&llcs, &Default::default())
    };
    for (llcs, domain) in [([32 << 20, 96 << 20], 1), ([96 << 20, 32 << 20], 0)] {
        let topology = sizes(llcs);
        let known = [heavy.clone(), light.clone()];
        let levels = levels(&topology, &[2, 2], &known);
        let best = last(&levels).best().candidate;
        let places = best.places(&topology, &[2, 2], &known).unwrap();
        let there = &topology.llcs()[domain].pus;
        assert!(places[0].iter().all(|&pu| there.contains(pu)), "{places:?}");
    }
    let unknown = levels(&machine(1, 2), &[2, 2], &[heavy.clone(), light.clone()]);
    let equal = levels(&sizes([64, 64]), &[2, 2], &[heavy, light]);
    assert_eq!(
        last(&unknown).best().bill,
        last(&equal).best().bill,
        "equal capacities decide as unknown ones do"
    );
}

#[test]
fn heavy_single_thread_runs_beside_a_light_one() {
    let topology = machine(1, 2);
    let of = |accesses| known(&[(LlcAccesses, accesses), (LlcMisses, accesses / 10.0)]);
    // iso would put the first and the third together.
    let known = [of(1e8), of(1e6), of(1e8), of(1e6)];
    let counts = [1; 4];
    let levels = levels(&topology, &counts, &known);
    let best = last(&levels).best();
    let places = best.candidate.places(&topology, &counts, &known).unwrap();
    let domain = |program: usize| places[program][0].0 / 2;
    assert_ne!(domain(0), domain(2));
    assert_ne!(domain(1), domain(3));
    assert_eq!(deciding(last(&levels)), ["cache demand"]);
}

#[test]
fn with_high_sharing_siblings_share_a_prefetcher() {
    let sharing = two_domains(&[(Path, 0.1), (Sharing, 0.5), (Excess, 0.0)]);
    assert_eq!(sharing, (ISO, vec!["prefetcher"]));
}

#[test]
fn high_excess_siblings_share_a_prefetcher() {
    let excess = two_domains(&[(Path, 0.1), (Sharing, 0.0), (Excess, 0.8)]);
    assert_eq!(excess, (ISO, vec!["prefetcher"]));
}

#[test]
fn low_sharing_and_excess_reduce_misses() {
    let low = [(Path, 0.1), (Sharing, 0.0), (Excess, 0.0)];
    // The prefetcher says nothing.
    assert_eq!(two_domains(&low).1, [""; 0]);
    let misses = [(LlcAccesses, 1e8), (LlcMisses, 1e7)];
    let with: Vec<_> = low.into_iter().chain(misses).collect();
    assert_eq!(two_domains(&with), (ISO, vec!["cache demand"]));
}

/// Two programs of four threads that take turns on four cores with one memory path.
fn one_path(shares: [f64; 2]) -> (NodeDivision, Vec<&'static str>) {
    let topology = Topology::uniform(4, 1).unwrap();
    let known = shares.map(|share| known(&[(Path, share)]));
    let levels = levels(&topology, &[4, 4], &known);
    (inside(last(&levels)), deciding(last(&levels)))
}

#[test]
fn high_bandwidth_beside_heavier_is_spread_over_time() {
    // Over space both go at 1/2.6; over time the lighter one at 1/1.2, the heavier one at 1/4.
    assert_eq!(one_path([0.3, 1.0]), (SPR, vec!["bandwidth"]));
}

#[test]
fn high_bandwidth_beside_lighter_is_spread_over_space() {
    // Over space 0.7 is asked for; over time 1.2 in the turns of the heavier one.
    assert_eq!(one_path([0.3, 0.05]), (ISO, vec!["bandwidth"]));
}

#[test]
fn heavy_programs_are_spread_over_memory_paths() {
    // Whole in nodes, each heavy program would ask for 1.6 of a path.
    let of = |share| known(&[(Path, share)]);
    let known = [of(0.8), of(0.1)];
    let levels = levels(&machine(2, 1), &[2, 2], &known);
    let node = &levels[0];
    assert_eq!(node.name, "node");
    let spread = MappingCandidate::Placed {
        nodes: ProgramDivision::Spread,
        inside: ISO,
    };
    assert_eq!(node.best().candidate, spread);
    assert_eq!(deciding(node), ["bandwidth"]);
}

#[test]
fn siblings_share_a_branch_predictor() {
    let topology = Topology::uniform(2, 1).unwrap();
    let lost = [
        known(&[(BranchCycles, 0.3), (Path, 0.01)]),
        known(&[(Path, 0.01)]),
    ];
    let levels = levels(&topology, &[2, 2], &lost);
    assert_eq!(inside(last(&levels)), ISO);
    assert_eq!(deciding(last(&levels)), ["predictor"]);
}

#[test]
fn l1_bound_threads_take_no_turns_with_strangers() {
    let topology = Topology::uniform(2, 1).unwrap();
    let hits = known(&[(NearHits, 0.99), (Switches, 100.0), (Path, 0.01)]);
    let levels = levels(&topology, &[2, 2], &[hits.clone(), hits]);
    assert_eq!(inside(last(&levels)), ISO);
    assert_eq!(deciding(last(&levels)), ["level 1"]);
}

/// Holds on two programs of four threads in domains of their own.
fn held(first: &[(Characteristic, f64)]) -> Vec<PinningScope> {
    let topology = machine(1, 2);
    let known = [known(first), known(&[])];
    let candidate = MappingCandidate::Placed {
        nodes: ProgramDivision::Together,
        inside: ISO,
    };
    let places = candidate.places(&topology, &[4, 4], &known);
    let shape = candidate.shape(&topology, &[4, 4], places.as_deref());
    choose_pinning(candidate, &known, &shape)
}

#[test]
fn siblings_that_synchronise_often_are_pinned() {
    assert_eq!(
        held(&[(Syncs, 1000.0), (Lag, 0.3)]),
        [PinningScope::Pu, PinningScope::Domain]
    );
    // Not when they never wait for each other.
    assert_eq!(held(&[(Syncs, 0.0), (Lag, 0.3)])[0], PinningScope::Domain);
}

#[test]
fn synchronising_siblings_take_no_turns_with_strangers() {
    let topology = Topology::uniform(4, 1).unwrap();
    let syncs = known(&[(Syncs, 1000.0), (Lag, 0.0), (Path, 0.01)]);
    let levels = levels(&topology, &[4, 4], &[syncs.clone(), syncs]);
    assert_eq!(inside(last(&levels)), ISO);
    assert_eq!(deciding(last(&levels)), ["synchronisation"]);
    // In turns each of three siblings is off its CPU half of the time: 1 - 1/8 of all cycles.
    let turns = last(&levels).weighed[1].bill.items();
    let price = turns.filter(|(rule, _)| rule.name == "synchronisation");
    let price: f64 = price.map(|(_, price)| price).sum();
    assert_eq!(price, 2.0 * 2.0 * 2e9 * 0.875);
}

#[test]
fn threads_with_frequent_io_are_free() {
    let topology = machine(1, 2);
    let known = [known(&[(Inputs, 500.0)]), known(&[])];
    let candidate = MappingCandidate::Placed {
        nodes: ProgramDivision::Together,
        inside: ISO,
    };
    // Three threads on two cores and one on the other two: those that share wait for each other
    // while a core is idle.
    let counts = [3, 1];
    let places = candidate.places(&topology, &counts, &known);
    let mut shape = candidate.shape(&topology, &counts, places.as_deref());
    shape.groups[0].others = 1.0;
    shape.groups[0].running = 2.0;
    assert_eq!(
        choose_pinning(candidate, &known, &shape)[0],
        PinningScope::Free
    );
    // Where all CPUs are taken anyway, nothing is gained by being free.
    assert_eq!(held(&[(Inputs, 500.0)])[0], PinningScope::Domain);
}

#[test]
fn no_core_is_without_work_while_threads_wait() {
    let topology = machine(1, 2);
    let known = [known(&[]), known(&[])];
    let case_of = |places: &[Vec<PuId>]| {
        let shape = MappingShape::from_places(&topology, places, false);
        let case = PricingCase::new(&known, &shape, &shape);
        RULES[8].price(&case).unwrap()
    };
    let doubled = case_of(&[vec![PuId(0), PuId(0)], vec![PuId(1)]]);
    let apart = case_of(&[vec![PuId(0), PuId(2)], vec![PuId(1)]]);
    assert!(doubled > 0.0);
    assert_eq!(apart, 0.0);
}

#[test]
fn extreme_bandwidth_puts_the_memory_path_first() {
    let topology = Topology::uniform(4, 1).unwrap();
    let known = [known(&[(Waits, 0.6), (BranchCycles, 0.2)]), known(&[])];
    let levels = levels(&topology, &[4, 4], &known);
    assert_eq!(last(&levels).how, ChoiceBasis::Priority("memory path"));
    assert_eq!(inside(last(&levels)), SPR);
}

#[test]
fn predictor_comes_first_without_a_prediction() {
    let topology = Topology::uniform(4, 1).unwrap();
    let known = [known(&[(BranchCycles, 0.2)]), known(&[])];
    let levels = levels(&topology, &[4, 4], &known);
    assert_eq!(last(&levels).how, ChoiceBasis::Priority("predictor"));
    assert_eq!(inside(last(&levels)), ISO);
}

#[test]
fn l1_comes_first_without_a_prediction() {
    let topology = Topology::uniform(4, 1).unwrap();
    let known = [known(&[(NearHits, 0.995)]), known(&[])];
    let levels = levels(&topology, &[4, 4], &known);
    assert_eq!(last(&levels).how, ChoiceBasis::Priority("level 1"));
    assert_eq!(inside(last(&levels)), ISO);
}

#[test]
fn where_a_prediction_exists_no_priority_is_asked() {
    let topology = Topology::uniform(4, 1).unwrap();
    let known = [0.3, 0.05].map(|share| known(&[(Path, share), (Waits, 0.9)]));
    let levels = levels(&topology, &[4, 4], &known);
    assert_eq!(last(&levels).how, ChoiceBasis::Predicted);
    assert_eq!(inside(last(&levels)), ISO);
}

#[test]
fn what_nothing_tells_is_blind_and_costs_nothing() {
    let unknown = [known(&[]), known(&[])];
    let topology = machine(1, 2);
    let levels = levels(&topology, &[4, 4], &unknown);
    assert!(
        levels
            .iter()
            .all(|level| level.how == ChoiceBasis::Undecided)
    );
    let rules = unpriced_rules(&unknown);
    assert_eq!(rules.len(), RULES.len() - 1);
    assert!(!rules.contains(&"utilisation"));
}
