//! The runs of the drawn workloads as frames: labels `cores` and `number`.

use super::super::s6::charged;
use super::mixes::DrawnMix;
use super::outcome::{SymbiosisOutcome, SymbiosisValue};
use super::prepare::PreparedMix;
use super::{NEAR_FIRST_HALF, chip_with_memory};
use crate::frame::{Case, Frame};
use crate::simulate::{CaseSpec, ExperimentSpec, map_jobs, run_every_case};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::watch::RemoteMemoryWatch;
use consort_sim::contention::CpiStack;

/// Values of a run by the key of the measure.
const VALUES: &[(&str, SymbiosisValue)] = &[
    ("stp", |o| o.stp),
    ("antt", |o| o.antt),
    ("unfairness", |o| o.unfairness),
    ("makespan_s", |o| o.makespan_s),
    ("largest_slowdown", |o| slowdowns(o).fold(0.0, f64::max)),
    ("smallest_slowdown", |o| {
        slowdowns(o).fold(f64::INFINITY, f64::min)
    }),
    ("migrations_hz", |o| o.migration_hz),
    ("away_percent", |o| 100.0 * o.away),
    ("decision_us", |o| o.decision_us),
    ("cpi", SymbiosisOutcome::cpi),
    // Cycles on a PU that no cause of the stack explains are those of switches and moves.
    ("cpi_moves", |o| {
        o.cpi() - o.counters.stack().iter().sum::<f64>()
    }),
];

fn slowdowns(outcome: &SymbiosisOutcome) -> impl Iterator<Item = f64> {
    outcome.slowdowns.iter().copied()
}

/// Drawn workloads with memory near the first half of the cores: `drawn` workloads of the size of
/// each of the experiment's cases, in cores.
pub(in crate::studies) fn near(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, NEAR_FIRST_HALF)
}

/// Drawn workloads, as [`near`] has them, with memory evenly placed.
pub(in crate::studies) fn even(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, None)
}

/// The drawn workloads of an experiment.
pub(super) fn mixes(context: &ExperimentContext<'_>, spec: &ExperimentSpec) -> Vec<DrawnMix> {
    let here = |case: &&CaseSpec| !case.full_only || context.by_scale(false, true);
    let draw = |case: &CaseSpec| {
        let count = case.drawn.map_or(1, |drawn| drawn.at_scale(context));
        DrawnMix::draw_all(context.seed(), case.size, count)
    };
    spec.cases.iter().filter(here).flat_map(draw).collect()
}

fn frame(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    memory: Option<&[u32]>,
) -> Result<Frame, StudyError> {
    let mixes = mixes(context, spec);
    let prepared = map_jobs(context, &mixes, |mix| {
        let near = PreparedMix::new(mix, spec.alone_s(context), context)?;
        Ok(near.on(&chip_with_memory(mix.cores, memory)?))
    })?;
    let runs = spec.runs(context);
    let run = |prepared: &PreparedMix, policy: &String, seed| {
        let away = RemoteMemoryWatch::new(&prepared.experiment.chip);
        let run = prepared.run(policy, seed, Box::new(away.clone()))?;
        Ok(SymbiosisOutcome::new(&run, away.share()))
    };
    let outcomes = run_every_case(context, (&prepared, &spec.policies, runs), run)?;
    let frame = Frame::new(
        mixes.iter().map(case).collect(),
        spec.policies.clone(),
        runs,
    );
    Ok(filled(frame, &outcomes, spec.alone_s(context)))
}

fn case(mix: &DrawnMix) -> Case {
    let labels = [("cores", mix.cores), ("number", mix.number)];
    let labels = labels.map(|(label, value)| (label.to_owned(), value.to_string()));
    Case {
        key: mix.key(),
        labels: labels.into(),
        programs: mix.names(),
    }
}

fn filled(mut frame: Frame, outcomes: &[SymbiosisOutcome], alone_s: f64) -> Frame {
    for (measure, value) in VALUES {
        frame.set_run_values(measure, outcomes.iter().map(value).collect());
    }
    // Linux decides in the kernel.
    let policies = frame.policies.clone();
    let is_linux = |n: usize| policies[n / frame.runs % policies.len()] == "linux";
    let charge = |n: usize| {
        if is_linux(n) {
            0.0
        } else {
            outcomes[n].decision_us
        }
    };
    let charged = |us: &dyn Fn(usize) -> f64| {
        let numbered = outcomes.iter().enumerate();
        numbered.map(|(n, o)| charged(o.stp, us(n))).collect()
    };
    let (measured, set) = (charged(&charge), charged(&|_| 1000.0));
    frame.set_run_values("stp_charged", measured);
    frame.set_run_values("stp_at_1000_us", set);
    frame.set_run_values("alone_s", vec![alone_s; outcomes.len()]);
    for (cause, name) in CpiStack::NAMES.iter().enumerate() {
        let of = outcomes.iter().map(|o| o.counters.stack()[cause]);
        frame.set_run_values(&format!("cpi_{name}"), of.collect());
    }
    let slowdowns = outcomes.iter().map(|o| o.slowdowns.clone());
    frame.set_program_values("slowdown", slowdowns.collect());
    frame
}

#[cfg(test)]
mod tests {
    use super::super::SEED;
    use super::*;
    use crate::simulate::ScaledValue;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn unfairness_is_made_of_the_ends() {
        let context = ExperimentContext::new(SEED, Scale::Quick, workers(2), &|_| ());
        let case = CaseSpec {
            size: 4,
            ..CaseSpec::default()
        };
        let second = ScaledValue {
            quick: 0.5,
            full: 0.5,
        };
        let spec = ExperimentSpec {
            policies: vec!["symbiotic".to_owned()],
            alone_s: Some(second),
            cases: vec![case],
            ..ExperimentSpec::default()
        };
        let frame = near(&context, &spec).unwrap();
        let of = |measure| frame.run_values(0, 0, measure)[0];
        let ends = of("largest_slowdown") / of("smallest_slowdown");
        assert!((of("unfairness") - ends).abs() < 1e-12);
        assert_eq!(frame.program_values(0, 0, "slowdown")[0].len(), 8);
    }
}
