//! The runs of the drawn workloads as frames: labels `cores` and `number`.

use super::super::s6::charged;
use super::mixes::Mix;
use super::outcome::{Outcome, Value};
use super::prepare::Prepared;
use super::{NEAR_FIRST_HALF, chip_with_memory};
use crate::frame::{Case, Frame};
use crate::simulate::{CaseSpec, ExperimentSpec, each, every};
use crate::study::StudyError;
use consort_experiment::Context;
use consort_experiment::watch::Away;
use consort_sim::contention::Stack;

/// Values of a run by the key of the measure.
const VALUES: &[(&str, Value)] = &[
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
    ("cpi", Outcome::cpi),
    // Cycles on a PU that no cause of the stack explains are those of switches and moves.
    ("cpi_moves", |o| {
        o.cpi() - o.counters.stack().iter().sum::<f64>()
    }),
];

fn slowdowns(outcome: &Outcome) -> impl Iterator<Item = f64> {
    outcome.slowdowns.iter().copied()
}

/// Drawn workloads with memory near the first half of the cores: `drawn` workloads of the size of
/// each of the experiment's cases, in cores.
pub(in crate::studies) fn near(
    context: &Context<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, NEAR_FIRST_HALF)
}

/// Drawn workloads, as [`near`] has them, with memory evenly placed.
pub(in crate::studies) fn even(
    context: &Context<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    frame(context, spec, None)
}

/// The drawn workloads of an experiment.
pub(super) fn mixes(context: &Context<'_>, spec: &ExperimentSpec) -> Vec<Mix> {
    let here = |case: &&CaseSpec| !case.full_only || context.by_scale(false, true);
    let draw = |case: &CaseSpec| {
        let count = case.drawn.map_or(1, |drawn| drawn.at(context));
        Mix::draw_all(context.seed(), case.size, count)
    };
    spec.cases.iter().filter(here).flat_map(draw).collect()
}

fn frame(
    context: &Context<'_>,
    spec: &ExperimentSpec,
    memory: Option<&[u32]>,
) -> Result<Frame, StudyError> {
    let mixes = mixes(context, spec);
    let prepared = each(context, &mixes, |mix| {
        let near = Prepared::new(mix, spec.alone_s(context), context)?;
        Ok(near.on(&chip_with_memory(mix.cores, memory)?))
    })?;
    let runs = spec.runs(context);
    let run = |prepared: &Prepared, policy: &String, seed| {
        let away = Away::new(&prepared.experiment.chip);
        let run = prepared.run(policy, seed, Box::new(away.clone()))?;
        Ok(Outcome::new(&run, away.share()))
    };
    let outcomes = every(context, (&prepared, &spec.policies, runs), run)?;
    let frame = Frame::new(
        mixes.iter().map(case).collect(),
        spec.policies.clone(),
        runs,
    );
    Ok(filled(frame, &outcomes, spec.alone_s(context)))
}

fn case(mix: &Mix) -> Case {
    let labels = [("cores", mix.cores), ("number", mix.number)];
    let labels = labels.map(|(label, value)| (label.to_owned(), value.to_string()));
    Case {
        key: mix.key(),
        labels: labels.into(),
        programs: mix.names(),
    }
}

fn filled(mut frame: Frame, outcomes: &[Outcome], alone_s: f64) -> Frame {
    for (measure, value) in VALUES {
        frame.set(measure, outcomes.iter().map(value).collect());
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
    frame.set("stp_charged", measured);
    frame.set("stp_at_1000_us", set);
    frame.set("alone_s", vec![alone_s; outcomes.len()]);
    for (cause, name) in Stack::NAMES.iter().enumerate() {
        let of = outcomes.iter().map(|o| o.counters.stack()[cause]);
        frame.set(&format!("cpi_{name}"), of.collect());
    }
    let slowdowns = outcomes.iter().map(|o| o.slowdowns.clone());
    frame.set_of_programs("slowdown", slowdowns.collect());
    frame
}

#[cfg(test)]
mod tests {
    use super::super::SEED;
    use super::*;
    use crate::simulate::Scaled;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn unfairness_is_made_of_the_ends() {
        let context = Context::new(SEED, Scale::Quick, workers(2), &|_| ());
        let case = CaseSpec {
            size: 4,
            ..CaseSpec::default()
        };
        let second = Scaled {
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
        let of = |measure| frame.runs_of(0, 0, measure)[0];
        let ends = of("largest_slowdown") / of("smallest_slowdown");
        assert!((of("unfairness") - ends).abs() < 1e-12);
        assert_eq!(frame.programs_of(0, 0, "slowdown")[0].len(), 8);
    }
}
