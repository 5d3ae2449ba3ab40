//! Notes on the gaps.

use super::coschedules::{Coschedules, OBJECTIVES};
use super::gaps::PolicyGaps;
use super::mappings::MappingGrid;
use super::searched::PlacementSearches;

/// Notes on the runs: one per ground, and the definition of a gap.
pub(super) fn of_runs(all: &[PlacementSearches<'_>]) -> Vec<String> {
    let mut notes: Vec<String> = all.iter().map(ground).collect();
    notes.push(
        "The best placement is the one whose runs have the best mean, so it is the best of several \
         noisy means and a little better than it would be in other runs; a policy that finds it \
         and stays there has a gap of about 0 all the same, for it runs with the same seeds. A \
         policy that moves threads while programs go through their phases, or shares a core by \
         time, can be better than every placement: its gap is then below 0."
            .to_owned(),
    );
    notes
}

fn ground(searches: &PlacementSearches<'_>) -> String {
    format!(
        "{}: {:.0} placements of each workload. Gap of throughput to the best of them, mean and \
         worst: {}.",
        searches.ground.title,
        searches.placements(),
        listed(&searches.throughput()),
    )
}

/// Means and worst gaps of some rows.
pub(super) fn listed(rows: &[PolicyGaps]) -> String {
    let one = |row: &PolicyGaps| {
        format!(
            "{} {:.2} and {:.2} %",
            row.policy,
            row.mean_percent(),
            row.worst_percent()
        )
    };
    rows.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Note of the pairings.
pub(super) fn of_pairing(rows: &[PolicyGaps]) -> String {
    let way = |policy: &str| {
        let of = rows.iter().filter(|row| row.policy == policy);
        let one = |row: &PolicyGaps| {
            format!(
                "{:.3} and {:.3} % ({})",
                row.mean_percent(),
                row.worst_percent(),
                row.group
            )
        };
        of.map(one).collect::<Vec<_>>().join(", ")
    };
    format!(
        "Pairs on a POWER8 in SMT2, mean and worst gap of the sum of slowdowns for so many threads. \
         By the model's own predictions matching leaves {}: it is exact. At the slowdowns that \
         were measured its pairs cost {} more than the best pairs; that is what errors of the model \
         cost. All pairings on average: {}.",
        way("own model"),
        way("truth"),
        way("any pairing"),
    )
}

/// Note of groups of four.
pub(super) fn of_fours(rows: &[PolicyGaps]) -> String {
    let one = |row: &PolicyGaps| format!("{} {}", row.group, listed(std::slice::from_ref(row)));
    format!(
        "Groups of four on a POWER8 in SMT4, by the simulation's own slowdowns, mean and worst gap of \
         their sum: {}.",
        rows.iter().map(one).collect::<Vec<_>>().join(", "),
    )
}

/// Note of a large core that is shared by time.
pub(super) fn of_sharing(speed: &[PolicyGaps], shared: &[PolicyGaps]) -> String {
    format!(
        "One large core: behind the placement under which all are done soonest: {}. Behind the best \
         schedule that shares the large core by time, moves for nothing: {}. Round robin gives every \
         thread the same share of the large core, where the best schedule gives most to those that \
         a small core slows down most, and it pays for its moves; pie goes for throughput, and whom \
         it leaves on a small core is done late. These programs do not enter the kernel, so kuths \
         decides as hrrs does.",
        listed(speed),
        listed(shared),
    )
}

/// Note of pairs of programs.
pub(super) fn of_mappings(mapped: &MappingGrid, rows: &[PolicyGaps]) -> String {
    let beyond = |row: &PolicyGaps| row.gaps_percent.iter().filter(|gap| **gap < 0.0).count();
    let pairs = rows.first().map_or(0, |row| row.gaps_percent.len());
    let better = { rows.iter() }
        .filter(|row| beyond(row) > 0)
        .map(|row| format!("{} of {} pairs", row.policy, beyond(row)));
    let best = mapped.best().into_iter();
    let best = best.map(|(mapping, count)| format!("{mapping} {count}"));
    format!(
        "Core 2 Quad, pairs of programs with four threads each: {} mappings of each of {pairs} \
         pairs. Gap of throughput to the best of them, mean and worst: {}. Number of pairs of \
         which each mapping is the best: {}. Better than every mapping, with a gap below 0: {}. A mapping leaves a PU idle while all \
         threads that it put there wait; who may move threads can use it. What holistic tries out \
         before it settles is in its gap.",
        mapped.mappings(),
        listed(rows),
        joined(best),
        joined(better),
    )
}

/// Note of co-schedulers.
pub(super) fn of_coschedules(coschedules: &Coschedules, rows: &[PolicyGaps]) -> String {
    let (suites, slots) = coschedules.size();
    let group = |(key, _): &(&str, _)| {
        let of: Vec<PolicyGaps> = rows
            .iter()
            .filter(|row| row.group == *key)
            .cloned()
            .collect();
        format!("by {key} {}", listed(&of))
    };
    let per_round = coschedules.slots().into_iter();
    let per_round = per_round.map(|(name, slots)| format!("{name} {slots:.1}"));
    let [energy_delay, throughput] = coschedules.again_percent();
    format!(
        "Xeon E5320, {suites} suites of programs of PARSEC with eight threads each, all {slots:.0} \
         slots of each simulated. What rounds are worse than the best of all, mean and worst: {}. \
         Slots of a round on average: {}. oracle-coschedule estimates slots, since twelve programs \
         have too many to simulate, and simulates those of the rounds that it takes for the best; \
         with members=all its gap, by its own objective, is what that costs; else it leaves programs \
         that scale nearly linearly alone and lets nobody lose. The best rounds have nearly all programs in one slot, where all \
         quanta are everyone's and what each cannot use of the machine goes to others; greedy packs \
         programs at the numbers of cores that suit them by themselves, the fair ones add a program \
         only where every member's energy-delay stays below that in the gang. The best rounds are the best by the trials by which \
         they were chosen: measured for longer with another seed, their energy-delay changes by \
         {energy_delay:+.2} % and their throughput by {:+.2} %.",
        joined(OBJECTIVES.iter().map(group)),
        joined(per_round),
        -throughput,
    )
}

fn joined(texts: impl Iterator<Item = String>) -> String {
    let texts: Vec<String> = texts.collect();
    if texts.is_empty() {
        return "none".to_owned();
    }
    texts.join(", ")
}
