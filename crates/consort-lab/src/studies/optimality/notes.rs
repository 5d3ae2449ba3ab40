//! What the gaps say.

use super::gaps::Row;
use super::searched::Searches;

/// Notes of the runs: one per ground, and what a gap is.
pub(super) fn of_runs(all: &[Searches<'_>]) -> Vec<String> {
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

fn ground(searches: &Searches<'_>) -> String {
    format!(
        "{}: {:.0} placements of each workload. Gap of throughput to the best of them, mean and \
         worst: {}.",
        searches.ground.title,
        searches.placements(),
        listed(&searches.throughput()),
    )
}

/// Means and worst gaps of some rows.
pub(super) fn listed(rows: &[Row]) -> String {
    let one = |row: &Row| {
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
pub(super) fn of_pairing(rows: &[Row]) -> String {
    let way = |policy: &str| {
        let of = rows.iter().filter(|row| row.policy == policy);
        let one = |row: &Row| {
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
pub(super) fn of_fours(rows: &[Row]) -> String {
    let one = |row: &Row| format!("{} {}", row.group, listed(std::slice::from_ref(row)));
    format!(
        "Groups of four on a POWER8 in SMT4, by the simulation's own slowdowns, mean and worst gap of \
         their sum: {}.",
        rows.iter().map(one).collect::<Vec<_>>().join(", "),
    )
}

/// Note of a large core that is shared by time.
pub(super) fn of_sharing(speed: &[Row], shared: &[Row]) -> String {
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
