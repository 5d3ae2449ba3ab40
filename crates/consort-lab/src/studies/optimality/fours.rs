//! Gap between the search for groups of more than two and exhaustive search.
//!
//! The costs are the simulation's own: slowdowns of the contender `oracle`, of each program in its
//! first phase, on one core of a POWER8 in SMT4.

use super::gaps::PolicyGaps;
use crate::simulate::mixes::draw_mixes;
use crate::simulate::programs::suite;
use crate::simulate::{map_jobs, part_error};
use crate::study::StudyError;
use consort_core::matching::{self, GroupRoom, MatchingError};
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;
use consort_experiment::GroupSlowdowns;
use consort_sim::chip::Chip;
use consort_sim::contention::Demand;
use consort_sim::machine::presets;
use consort_sim::phase::Phase;
use consort_sim::workload::Workload;
use std::sync::Arc;

/// The machine.
const MACHINE: &str = "power8";
/// Threads per core.
const WAYS: usize = 4;
/// Cores that are filled.
const CORES: [usize; 2] = [2, 3];
/// Draws of programs, at the quick and the full scale.
const DRAWS: [usize; 2] = [4, 40];
/// Swaps that the search tries per thread, as for `oracle`.
const SWAPS_PER_THREAD: usize = 50;

/// Rows `THREADS in fours/search` and `THREADS in fours/any grouping`: the sum of slowdowns over
/// the least that there is.
///
/// # Errors
/// Machines and programs that are not there.
pub(super) fn rows(context: &ExperimentContext<'_>) -> Result<Vec<PolicyGaps>, StudyError> {
    let spec = presets::find(MACHINE).map_err(part_error(MACHINE))?;
    let chip = Arc::new(Chip::new(&spec, Some(WAYS as u32)).map_err(part_error(MACHINE))?);
    let draws = context.by_scale(DRAWS[0], DRAWS[1]);
    let mut rows = Vec::new();
    for cores in CORES {
        let drawn = draw_mixes(
            context.seed(),
            &suite("spec2006", usize::MAX)?,
            (cores * WAYS, 1),
            draws,
        );
        let gaps = map_jobs(context, &drawn, |workload| {
            gaps(&chip, workload, cores).map_err(part_error("groups"))
        })?;
        for (way, policy) in ["search", "any grouping"].into_iter().enumerate() {
            rows.push(PolicyGaps {
                group: format!("{} in fours", cores * WAYS),
                policy: policy.to_owned(),
                gaps_percent: gaps.iter().map(|gaps| gaps[way]).collect(),
            });
        }
    }
    Ok(rows)
}

/// The gaps of the search and of all groupings on average, percent.
fn gaps(chip: &Arc<Chip>, workload: &Workload, cores: usize) -> Result<[f64; 2], MatchingError> {
    let demands = demands(workload);
    let mut slowdowns = GroupSlowdowns::new(chip);
    let mut cost = |group: &[usize]| -> f64 {
        let members: Vec<&Demand> = group.iter().map(|&thread| &demands[thread]).collect();
        slowdowns.group_slowdowns(&members).iter().sum()
    };
    let threads = demands.len();
    let shape = GroupRoom {
        cores,
        ways: WAYS,
        swaps: SWAPS_PER_THREAD * threads,
    };
    let found = matching::group_threads(threads, shape, &mut cost)?.cost;
    let least = matching::exhaustive_grouping(threads, shape, &mut cost)?.cost;
    let mut all = Vec::new();
    let visit = |groups: &[Vec<usize>]| all.push(groups.iter().map(|g| cost(g)).sum::<f64>());
    matching::visit_partitions(threads, shape, visit)?;
    let over = |cost: f64| 100.0 * (cost / least - 1.0);
    Ok([over(found), over(mean(&all).unwrap_or(f64::NAN))])
}

/// Demand of each program in its first phase.
fn demands(workload: &Workload) -> Vec<Demand> {
    let demand = |(entry, number): (&consort_sim::workload::ProgramInstance, u32)| {
        let phase = entry.program.phases.first()?;
        Some(Demand {
            phase: Arc::new(Phase::new(phase)),
            intensity: 1.0,
            program: number,
            text: number,
            shared_data: 0.0,
            shared_code: 0.0,
            lock: None,
            home_node: 0,
        })
    };
    workload
        .entries
        .iter()
        .zip(0..)
        .filter_map(demand)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn no_search_finds_less_than_the_least() {
        let context = ExperimentContext::new(3, Scale::Quick, workers(1), &|_| ());
        let rows = rows(&context).unwrap();
        assert_eq!(rows.len(), 4);
        for row in &rows {
            assert_eq!(row.gaps_percent.len(), 4);
            assert!(row.gaps_percent.iter().all(|gap| *gap >= -1e-9), "{row:?}");
        }
        // Blind choice costs something, so that there is something to find.
        assert!(rows[1].mean_percent() > rows[0].mean_percent());
    }
}
