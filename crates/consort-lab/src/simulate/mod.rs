//! Simulated experiments that study files declare: cases under policies, and the frame they give.
//!
//! Usage: `frame` runs an [`ExperimentSpec`] on what a [`Ground`] describes. A `Case` is
//! a workload on a machine with its work measured.
//!
//! Pitfall: where work is measured on a large core, slowdowns are against the best that there is;
//! a program of several threads has the whole machine, under `linux`, to itself.

pub(crate) mod case;
mod cases;
pub(crate) mod chips;
mod entrant;
mod ground;
pub(crate) mod mixes;
mod observers;
mod outcome;
pub(crate) mod programs;
mod returns;
mod spec;
mod watch;

pub(crate) use cases::prepared;
pub(crate) use entrant::Entrant;
pub use ground::{Ground, Presets};
pub(crate) use outcome::Outcome;
pub use spec::{Again, Alone, CaseSpec, ExperimentSpec, Most, Scaled};

use crate::frame::Frame;
use crate::study::StudyError;
use case::Case;
use consort_experiment::Context;

/// Names what part of a study failed.
pub(crate) fn failed<E>(part: &str) -> impl Fn(E) -> StudyError
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
pub(crate) fn frame(
    context: &Context<'_>,
    spec: &ExperimentSpec,
    ground: &dyn Ground,
) -> Result<Frame, StudyError> {
    let cases = prepared(context, spec, ground)?;
    run(context, &cases, &spec.policies, spec.runs(context))
}

/// Runs every case under every policy with the seeds that follow the context's.
///
/// # Errors
/// Those of the runs.
pub(crate) fn run(
    context: &Context<'_>,
    cases: &[Case],
    policies: &[String],
    runs: usize,
) -> Result<Frame, StudyError> {
    let mut jobs: Vec<(&Case, &str, u64)> = Vec::new();
    for case in cases {
        for policy in policies {
            let seeds = (0..runs as u64).map(|run| context.seed().wrapping_add(run));
            jobs.extend(seeds.map(|seed| (case, policy.as_str(), seed)));
        }
    }
    let outcomes = context.map(&jobs, |(case, policy, seed)| case.run(policy, *seed))?;
    let outcomes: Vec<_> = outcomes.into_iter().collect::<Result<_, StudyError>>()?;
    let of = cases.iter().map(|case| case.of.clone()).collect();
    Ok(outcome::frame(of, policies, runs, &outcomes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    fn grid(count: usize) -> Frame {
        let context = Context::new(3, Scale::Quick, workers(count), &|_| ());
        let case = |workload: &str| CaseSpec {
            workload: Some(workload.to_owned()),
            ..CaseSpec::default()
        };
        let spec = ExperimentSpec {
            machine: "acmp-1+1".to_owned(),
            policies: ["linux", "hrrs"].map(str::to_owned).to_vec(),
            alone: Alone::LargeCore,
            alone_s: Some(Scaled {
                quick: 0.01,
                full: 1.0,
            }),
            runs: Some(Scaled { quick: 2, full: 9 }),
            cases: ["2*hmmer", "2*mcf"].map(case).to_vec(),
            ..ExperimentSpec::default()
        };
        frame(&context, &spec, &Presets).unwrap()
    }

    #[test]
    fn runs_are_the_same_whatever_the_workers() {
        let (one, three) = (grid(1), grid(3));
        assert_eq!(one, three);
        assert_eq!((one.runs, one.policies.len()), (2, 2));
        assert_eq!(one.cases[1].key, "2*mcf");
        // Round robin moves threads and this linux leaves both where they are.
        let moves = |policy| one.runs_of(0, policy, "moves_hz")[0];
        assert!(moves(1) > 100.0 && moves(0) < 100.0);
    }
}
