//! Runs of each placement, among which exact search finds the best, and against which policies are
//! set.

use super::ground::OptimalityCase;
use super::placements;
use crate::simulate::RunMeasurements;
use crate::simulate::case::PreparedCase;
use crate::simulate::mixes::draw_mixes;
use crate::simulate::programs::suite;
use crate::simulate::{map_jobs, part_error};
use crate::study::StudyError;
use consort_core::stats::mean;
use consort_experiment::ExperimentContext;
use consort_sim::chip::Chip;
use consort_sim::machine::MachineRef;
use consort_sim::workload::ProgramInstance;
use std::sync::Arc;

/// The model of the operating system under which threads stay where they are: the nth to
/// arrive on PU n.
const STAYING: &str = "pinned";
/// Programs that start at one time arrive in an order by lot; so far apart they arrive in theirs.
const APART_MS: f64 = 1e-6;

/// The workloads of a ground, with their work measured; as many different programs as PUs.
///
/// # Errors
/// Machines and programs that are not there.
pub(super) fn cases(
    ground: &OptimalityCase,
    context: &ExperimentContext<'_>,
) -> Result<Vec<PreparedCase>, StudyError> {
    let machine: MachineRef = ground.machine.parse().map_err(part_error(ground.key))?;
    let loaded = machine.load(&[]).map_err(part_error(ground.key))?;
    let used = |core: usize| ground.cores.is_empty() || ground.cores.contains(&core);
    let chip = Chip::with_cores(&loaded.spec, loaded.smt, &used).map_err(part_error(ground.key))?;
    let chip = Arc::new(chip);
    let scale = context.by_scale(0, 1);
    let threads = chip.places().len();
    let drawn = draw_mixes(
        context.seed(),
        &suite("spec2006", usize::MAX)?,
        (threads, 1),
        ground.mixes[scale],
    );
    map_jobs(context, &drawn, |workload| {
        let key = workload.text.clone();
        let alone_s = ground.alone_s[scale];
        PreparedCase::from_key(&key, &chip, workload.clone(), alone_s, context.seed())
    })
}

/// The placements of a case, up to symmetry.
///
/// # Errors
/// More threads than can be searched.
pub(super) fn placements(
    ground: &OptimalityCase,
    case: &PreparedCase,
) -> Result<Vec<Vec<usize>>, StudyError> {
    let entries = case.experiment.workload.entries.iter();
    let kinds: Vec<&str> = entries.map(|entry| entry.program.name.as_str()).collect();
    let all = placements::all(&case.experiment.chip, ground.meeting, &kinds);
    all.map_err(part_error(ground.key))
}

/// One run of a placement.
///
/// # Errors
/// Runs that do not end.
pub(super) fn run(
    case: &PreparedCase,
    placement: &[usize],
    seed: u64,
) -> Result<RunMeasurements, StudyError> {
    let mut placed = case.clone();
    placed.work = placement.iter().map(|&thread| case.work[thread]).collect();
    let entries = &case.experiment.workload.entries;
    let on_pu = |(pu, &thread): (usize, &usize)| ProgramInstance {
        start_ms: pu as f64 * APART_MS,
        ..entries[thread].clone()
    };
    placed.experiment.workload.entries = placement.iter().enumerate().map(on_pu).collect();
    placed.run(STAYING, seed)
}

/// A placement with its runs.
pub(super) struct PlacementRuns {
    /// The thread of each PU.
    pub placement: Vec<usize>,
    /// Outcomes by run.
    pub outcomes: Vec<RunMeasurements>,
}

/// Mean of a value over runs.
pub(super) fn average(
    outcomes: &[RunMeasurements],
    value: impl Fn(&RunMeasurements) -> f64,
) -> f64 {
    let values: Vec<f64> = outcomes.iter().map(value).collect();
    mean(&values).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::super::ground::GROUNDS;
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;
    use std::collections::BTreeMap;

    /// Slowdowns of the first workload by placement, then PU.
    fn slowdowns(ground: &OptimalityCase) -> (Vec<Vec<usize>>, Vec<Vec<f64>>) {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let case = cases(ground, &context).unwrap().remove(0);
        let placements = placements(ground, &case).unwrap();
        let runs = placements
            .iter()
            .map(|p| run(&case, p, 1).unwrap().slowdowns);
        let runs = runs.collect();
        (placements, runs)
    }

    #[test]
    fn the_first_program_of_a_placement_has_the_large_core() {
        let (placements, slowdowns) = slowdowns(GROUNDS.last().unwrap());
        for (placement, slowdowns) in placements.iter().zip(slowdowns) {
            // Only the LLC and memory are shared with the others.
            assert!(slowdowns[0] < 1.2, "{placement:?}: {slowdowns:?}");
        }
    }

    #[test]
    fn programs_on_one_core_are_those_that_the_placement_puts_there() {
        let (placements, slowdowns) = slowdowns(&GROUNDS[1]);
        // Whom a program meets decides, not where: it is slowed down alike wherever the same
        // two are together, but for what others do to the memory that all share.
        let mut of_pairs = BTreeMap::<[usize; 2], Vec<f64>>::new();
        for (placement, slowdowns) in placements.iter().zip(&slowdowns) {
            for (pair, two) in placement.chunks(2).zip(slowdowns.chunks(2)) {
                of_pairs.entry([pair[0], pair[1]]).or_default().push(two[0]);
            }
        }
        assert_eq!(of_pairs.len(), 28);
        let within = of_pairs
            .values()
            .map(|values| reach(values))
            .fold(1.0, f64::max);
        let all: Vec<f64> = of_pairs.into_values().flatten().collect();
        assert!(
            within < 1.1 && reach(&all) > 1.3,
            "{within} {}",
            reach(&all)
        );
    }

    /// The largest over the smallest.
    fn reach(values: &[f64]) -> f64 {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        values.iter().copied().fold(0.0, f64::max) / low
    }
}
