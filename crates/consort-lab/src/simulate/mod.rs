//! Simulated experiments that study files declare: cases under policies, and the frame they give.
//!
//! `run_experiment` runs an [`ExperimentSpec`] on the machines and programs of a
//! [`DescriptionSource`]. A `PreparedCase` is a workload on a machine with its work measured. If work
//! is measured on a large core, slowdowns are against the fastest core of the machine; a program of
//! several threads has the whole machine, under `linux`, to itself.

pub(crate) mod case;
mod cases;
pub(crate) mod chips;
mod measurements;
pub(crate) mod mixes;
pub(crate) mod programs;
mod spec;

pub(crate) use case::StudyContender;
pub(crate) use cases::prepare_cases;
pub use chips::{DescriptionSource, Presets};
pub(crate) use measurements::RunMeasurements;
pub use spec::{AlonePlace, CaseSpec, ExperimentSpec, RestartKind, ScaledLimit, ScaledValue};

use crate::frame::Frame;
use crate::study::StudyError;
use case::PreparedCase;
use consort_experiment::ExperimentContext;

/// Names what part of a study failed.
pub(crate) fn part_error<E>(part: &str) -> impl Fn(E) -> StudyError
where
    E: std::error::Error + Send + Sync + 'static,
{
    let part = part.to_owned();
    move |error| StudyError::part(part.as_str(), error)
}

/// Runs every case of an experiment under every policy.
///
/// # Errors
/// Those of the cases and of the runs.
pub(crate) fn run_experiment(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    ground: &dyn DescriptionSource,
) -> Result<Frame, StudyError> {
    let cases = prepare_cases(context, spec, ground)?;
    run_cases(context, &cases, &spec.policies, spec.runs(context))
}

/// Runs every case under every policy with the seeds that follow the context's.
///
/// # Errors
/// Those of the runs.
pub(crate) fn run_cases(
    context: &ExperimentContext<'_>,
    cases: &[PreparedCase],
    policies: &[String],
    runs: usize,
) -> Result<Frame, StudyError> {
    let run = |case: &PreparedCase, policy: &String, seed| case.run(policy, seed);
    let outcomes = run_every_case(context, (cases, policies, runs), run)?;
    let of = cases.iter().map(|case| case.of.clone()).collect();
    let mut frame = measurements::measurements_to_frame(of, policies, runs, &outcomes);
    frame.warnings = idle_policies(policies, runs, &outcomes);
    Ok(frame)
}

/// Warns of policies that never decided twice in a run, or changed nothing: their results are those
/// of the operating system beneath. Outcomes are by case, then policy, then run.
fn idle_policies(policies: &[String], runs: usize, outcomes: &[RunMeasurements]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (number, policy) in policies.iter().enumerate() {
        let Ok(entrant) = StudyContender::new(policy, LINUX) else {
            continue;
        };
        if entrant.contender.leaves_all_to_os() {
            continue;
        }
        let own = outcomes.chunks(runs.max(1)).skip(number);
        let own: Vec<&RunMeasurements> = own.step_by(policies.len()).flatten().collect();
        let most = own.iter().map(|one| one.decisions).max().unwrap_or(0);
        let masks: u64 = own.iter().map(|one| one.masks).sum();
        if most <= 1 {
            let moved = if masks == 0 { " and moved nothing" } else { "" };
            warnings.push(format!(
                "warning: {policy} decided at most once in each run{moved}, because its quantum is \
                 about as long as the programs: let them run longer (alone_s), or set a shorter quantum"
            ));
        } else if masks == 0 {
            warnings.push(format!(
                "warning: {policy} moved nothing in any run: threads stayed where the operating \
                 system had put them"
            ));
        }
    }
    warnings
}

/// The operating system by which names of policies are read here.
const LINUX: &str = "linux";

/// Results of so many runs of every case under every policy, with the seeds that follow the
/// context's: by case, then policy, then run.
///
/// # Errors
/// The first of the runs'.
pub(crate) fn run_every_case<C: Sync, P: Sync, R: Send>(
    context: &ExperimentContext<'_>,
    (cases, policies, runs): (&[C], &[P], usize),
    run: impl Fn(&C, &P, u64) -> Result<R, StudyError> + Sync,
) -> Result<Vec<R>, StudyError> {
    let mut jobs: Vec<(&C, &P, u64)> = Vec::new();
    for case in cases {
        for policy in policies {
            let seeds = seeds(context.seed(), runs);
            jobs.extend(seeds.map(|seed| (case, policy, seed)));
        }
    }
    map_jobs(context, &jobs, |(case, policy, seed)| {
        run(case, policy, *seed)
    })
}

/// Results of independent jobs on the context's workers, in the order of the jobs.
///
/// # Errors
/// The first of the jobs'.
pub(crate) fn map_jobs<T: Sync, R: Send>(
    context: &ExperimentContext<'_>,
    jobs: &[T],
    work: impl Fn(&T) -> Result<R, StudyError> + Sync,
) -> Result<Vec<R>, StudyError> {
    context.map(jobs, work)?.into_iter().collect()
}

/// Seeds of so many runs, the first one's given.
pub(crate) fn seeds(first: u64, runs: usize) -> impl Iterator<Item = u64> + Clone {
    (0..runs as u64).map(move |run| first.wrapping_add(run))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    fn grid(count: usize) -> Frame {
        let context = ExperimentContext::new(3, Scale::Quick, workers(count), &|_| ());
        let case = |workload: &str| CaseSpec {
            workload: Some(workload.to_owned()),
            ..CaseSpec::default()
        };
        let spec = ExperimentSpec {
            machine: "acmp-1+1".to_owned(),
            policies: ["linux", "hrrs"].map(str::to_owned).to_vec(),
            alone: AlonePlace::LargeCore,
            alone_s: Some(ScaledValue {
                quick: 0.01,
                full: 1.0,
            }),
            runs: Some(ScaledValue { quick: 2, full: 9 }),
            cases: ["2*hmmer", "2*mcf"].map(case).to_vec(),
            ..ExperimentSpec::default()
        };
        run_experiment(&context, &spec, &Presets).unwrap()
    }

    #[test]
    fn runs_are_the_same_whatever_the_workers() {
        let (one, three) = (grid(1), grid(3));
        assert_eq!(one, three);
        assert_eq!((one.runs, one.policies.len()), (2, 2));
        assert_eq!(one.cases[1].key, "2*mcf");
        // Round robin moves threads and this linux leaves both where they are.
        let moves = |policy| one.run_values(0, policy, "moves_hz")[0];
        assert!(moves(1) > 100.0 && moves(0) < 100.0);
    }
}
