//! X3: which conclusions hold when what the descriptions say is 30 percent off.
//!
//! A conclusion is a ratio of two policies' runs that is above 1. Every number of the machine's and
//! the programs' [`descriptions`] and the policies' quantum are varied by 30 percent to both sides,
//! one at a time and all at once by a Latin hypercube, and both policies run again with the seeds
//! that they had before.
//!
//! Pitfalls: a program's work is measured anew on every varied machine, so that it takes the same
//! time alone on each; a parameter that cannot go so far goes as far as it can; constants of the
//! models that are in no description, and options of the policies, are not varied. `symbiotic`
//! keeps the model that was trained on the machine as it is described.

mod descriptions;
mod report;
mod sampling;

pub(super) use report::run;
pub use sampling::hypercube;

use super::load::{ProgramLoad, workload};
use crate::simulate::case::PreparedCase;
use crate::simulate::{RunMeasurements, map_jobs, part_error, seeds};
use crate::study::StudyError;
use consort_core::stats::RatioInterval;
use consort_experiment::{Contender, ExperimentContext};
use consort_sim::chip::Chip;
use descriptions::{VariedDescriptions, VariedParameter};
use serde::Deserialize;
use std::sync::Arc;

/// The operating system beneath every policy.
const OS: &str = "linux";
/// A ratio above this is the conclusion, below it its opposite.
const THRESHOLD: f64 = 1.0;
/// The ends of every parameter's range, as factors.
const ENDS: [f64; 2] = [0.7, 1.3];

/// Metric by which two policies' runs are compared, as a ratio that is above 1 if ours is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Metric {
    /// System throughput, ours over theirs.
    Throughput,
    /// Time until the last program is done, theirs over ours.
    Speed,
    /// Largest over smallest slowdown, theirs over ours.
    Fairness,
}

/// A conclusion: a policy is better than another at something. Workloads are those that the sources
/// or studies have on such ground, chosen before their outcome was known or in spite of it; a
/// conclusion that does not hold to begin with stays, and a note says so.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StudyConclusion {
    /// Key of its tables and figures.
    key: String,
    /// The conclusion in words.
    sentence: String,
    /// The machine, for example `power7:smt=2`.
    machine: String,
    /// Cores in use by number; all when empty.
    cores: Vec<usize>,
    load: Vec<ProgramLoad>,
    /// The policy that is said to be better.
    policy: String,
    /// The policy that it is better than.
    over: String,
    metric: Metric,
    /// Time of a program's work alone, s, at the quick and the full scale.
    alone_s: [f64; 2],
    /// Runs of each policy in each trial; a conclusion with none is not put to the test.
    runs: [usize; 2],
}

impl StudyConclusion {
    /// True if both use the same runs.
    fn has_runs_of(&self, other: &Self) -> bool {
        self.machine == other.machine
            && self.cores == other.cores
            && self.load == other.load
            && self.policy == other.policy
            && self.over == other.over
    }

    /// The ratio of two runs of one seed.
    fn ratio(&self, ours: &RunMeasurements, theirs: &RunMeasurements) -> f64 {
        match self.metric {
            Metric::Throughput => ours.stp / theirs.stp,
            Metric::Speed => theirs.makespan_s / ours.makespan_s,
            Metric::Fairness => theirs.unfairness / ours.unfairness,
        }
    }
}

/// The conclusions, those that use the same runs next to each other. To add one takes an entry in
/// the file.
///
/// # Errors
/// A file that is none; the tests rule that out.
fn conclusions() -> Result<Vec<StudyConclusion>, StudyError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct ConclusionFile {
        headline: Vec<StudyConclusion>,
    }
    let text = include_str!("../../../studies/grounds/sensitivity.toml");
    let file: ConclusionFile = toml::from_str(text).map_err(part_error("conclusions"))?;
    Ok(file.headline)
}

/// Variation of a trial.
#[derive(Clone, Debug, PartialEq)]
enum Variation {
    /// Nothing is varied.
    None,
    /// One parameter, to one end: its number and that of the end.
    One(usize, usize),
    /// All parameters, each by its factor.
    All(Vec<f64>),
}

/// All trials: nothing, then each parameter at its low and its high end, then the samples.
fn list_variations(seed: u64, parameters: usize, samples: usize) -> Vec<Variation> {
    let mut all = vec![Variation::None];
    for parameter in 0..parameters {
        all.extend([0, 1].map(|end| Variation::One(parameter, end)));
    }
    let [low, high] = ENDS;
    for sample in hypercube(seed, samples, parameters) {
        let factors = sample.into_iter().map(|at| low + (high - low) * at);
        all.push(Variation::All(factors.collect()));
    }
    all
}

impl Variation {
    /// The varied descriptions, and the factor that the one parameter reached, if it is one.
    fn apply_to(
        &self,
        subject: &VariedDescriptions,
        parameters: &[VariedParameter],
    ) -> (VariedDescriptions, f64) {
        let mut varied = subject.clone();
        let reached = match self {
            Self::None => 1.0,
            Self::One(parameter, end) => varied.vary(&parameters[*parameter], ENDS[*end]),
            Self::All(factors) => {
                for (parameter, factor) in parameters.iter().zip(factors) {
                    varied.vary(parameter, *factor);
                }
                1.0
            }
        };
        (varied, reached)
    }
}

/// Repetitions of a trial, and their seeds.
#[derive(Clone, Copy, Debug)]
struct Repeats {
    /// Seed of the first run; the others follow.
    seed: u64,
    /// Runs of each policy.
    runs: usize,
    /// Time of a program's work alone, s.
    alone_s: f64,
}

/// Runs both policies with the same seeds; the ratios of each of the conclusions, which use the same
/// runs, run by run.
///
/// # Errors
/// Policies that are unknown or of no use there, runs that do not end.
fn run_ratios(
    conclusions: &[StudyConclusion],
    subject: &VariedDescriptions,
    repeats: Repeats,
) -> Result<Vec<Vec<f64>>, StudyError> {
    let first = &conclusions[0];
    let used = |core: usize| first.cores.is_empty() || first.cores.contains(&core);
    let chip = Chip::with_cores(&subject.machine()?, subject.smt, &used);
    let chip = Arc::new(chip.map_err(part_error(&first.key))?);
    let load = workload(&first.load, |name| subject.program(name))?;
    let case = PreparedCase::from_key(&first.key, &chip, load, repeats.alone_s, repeats.seed)?;
    let run = |policy: &str| -> Result<Vec<RunMeasurements>, StudyError> {
        let contender = Contender::new(policy, OS).map_err(part_error(policy))?;
        // Each policy has a quantum of its own, which the factor scales.
        let usual = case
            .experiment
            .quantum_under(&contender)
            .map_err(part_error(policy))?;
        let mut case = case.clone();
        case.experiment.quantum = Some(usual.mul_f64(subject.quantum));
        let seeds = seeds(repeats.seed, repeats.runs);
        seeds.map(|seed| case.run(policy, seed)).collect()
    };
    let (ours, theirs) = (run(&first.policy)?, run(&first.over)?);
    let ratios = conclusions.iter().map(|conclusion| {
        let pairs = ours.iter().zip(&theirs);
        pairs
            .map(|(ours, theirs)| conclusion.ratio(ours, theirs))
            .collect()
    });
    Ok(ratios.collect())
}

/// Verdict of a trial on a conclusion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ConclusionVerdict {
    /// The whole interval of the ratio lies above the threshold.
    Holds,
    /// The threshold lies in the interval, or there is none.
    Unclear,
    /// The whole interval lies below the threshold.
    Fails,
}

/// The ratios of a trial, and the distance that the parameter went.
#[derive(Clone, Debug, PartialEq)]
struct SensitivityTrial {
    /// Ratio of every run.
    ratios: Vec<f64>,
    /// Factor of the one parameter that was varied; 1 if none or all were.
    reached: f64,
}

impl SensitivityTrial {
    /// Geometric mean over the runs.
    fn ratio(&self) -> f64 {
        self.interval().map_or(f64::NAN, |ratio| ratio.mean)
    }

    fn interval(&self) -> Option<RatioInterval> {
        RatioInterval::from_ratios(&self.ratios)
    }

    fn verdict(&self) -> ConclusionVerdict {
        match self.interval() {
            Some(ratio) if ratio.low() > THRESHOLD => ConclusionVerdict::Holds,
            Some(ratio) if ratio.high() < THRESHOLD => ConclusionVerdict::Fails,
            _ => ConclusionVerdict::Unclear,
        }
    }
}

/// A conclusion with its trials, in the order of [`list_variations`].
struct ConclusionTrials<'a> {
    conclusion: &'a StudyConclusion,
    parameters: Vec<VariedParameter>,
    trials: Vec<SensitivityTrial>,
}

/// Conclusions that use the same runs, and the descriptions that are varied beneath them.
struct SensitivityGroup<'a> {
    conclusions: &'a [StudyConclusion],
    subject: VariedDescriptions,
    parameters: Vec<VariedParameter>,
    variations: Vec<Variation>,
}

/// Puts conclusions to the test; those on the same runs next to each other.
///
/// # Errors
/// Descriptions or policies that are not there, runs that do not end.
fn test_conclusions<'a>(
    conclusions: &'a [StudyConclusion],
    context: &ExperimentContext<'_>,
) -> Result<Vec<ConclusionTrials<'a>>, StudyError> {
    let scale = context.by_scale(0, 1);
    let mut groups = Vec::new();
    for conclusions in conclusions.chunk_by(StudyConclusion::has_runs_of) {
        if conclusions[0].runs[scale] == 0 {
            continue;
        }
        let subject = VariedDescriptions::from_conclusion(&conclusions[0])?;
        let parameters = subject.parameters();
        let samples = context.by_scale(10, 60);
        groups.push(SensitivityGroup {
            variations: list_variations(context.seed(), parameters.len(), samples),
            conclusions,
            subject,
            parameters,
        });
    }
    // One list of jobs for all groups, so that no worker waits for the end of a group.
    let mut jobs = Vec::new();
    for group in &groups {
        jobs.extend(group.variations.iter().map(|variation| (group, variation)));
    }
    let made = map_jobs(context, &jobs, |(group, variation)| {
        let (subject, reached) = variation.apply_to(&group.subject, &group.parameters);
        let repeats = Repeats {
            seed: context.seed(),
            runs: group.conclusions[0].runs[scale],
            alone_s: group.conclusions[0].alone_s[scale],
        };
        Ok((run_ratios(group.conclusions, &subject, repeats)?, reached))
    })?;
    let mut made = &made[..];
    let mut tested = Vec::new();
    for group in &groups {
        let (own, others) = made.split_at(group.variations.len());
        made = others;
        for (number, conclusion) in group.conclusions.iter().enumerate() {
            let trials = own.iter().map(|(ratios, reached)| SensitivityTrial {
                ratios: ratios[number].clone(),
                reached: *reached,
            });
            tested.push(ConclusionTrials {
                conclusion,
                parameters: group.parameters.clone(),
                trials: trials.collect(),
            });
        }
    }
    Ok(tested)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPEATS: Repeats = Repeats {
        seed: 1,
        runs: 2,
        alone_s: 0.02,
    };

    #[test]
    fn every_parameter_has_both_ends_samples_between() {
        let all = list_variations(1, 3, 10);
        assert_eq!(all.len(), 1 + 2 * 3 + 10);
        assert_eq!(all[0], Variation::None);
        assert_eq!(all[6], Variation::One(2, 1));
        for sample in &all[7..] {
            let Variation::All(factors) = sample else {
                panic!("{sample:?} is no sample");
            };
            assert_eq!(factors.len(), 3);
            let between = factors.iter().all(|f| (0.7..=1.3).contains(f));
            assert!(between, "{factors:?}");
        }
    }

    #[test]
    fn verdicts_take_noise_into_account() {
        let check = |ratios: &[f64], expect| {
            let trial = SensitivityTrial {
                ratios: ratios.to_vec(),
                reached: 1.0,
            };
            assert_eq!(trial.verdict(), expect);
        };
        check(&[1.2, 1.21, 1.19], ConclusionVerdict::Holds);
        check(&[0.8, 1.3, 1.1], ConclusionVerdict::Unclear);
        check(&[0.8, 0.81, 0.79], ConclusionVerdict::Fails);
        check(&[1.0, 1.0], ConclusionVerdict::Unclear);
        check(&[], ConclusionVerdict::Unclear);
    }

    #[test]
    fn trial_depends_on_the_varied_parameter_only() {
        let mut all = conclusions().unwrap();
        all.retain(|conclusion| conclusion.key == "hrrs-speed");
        let subject = VariedDescriptions::from_conclusion(&all[0]).unwrap();
        let plain = run_ratios(&all, &subject, REPEATS).unwrap();
        assert_eq!((plain.len(), plain[0].len()), (1, 2));
        assert_eq!(plain, run_ratios(&all, &subject, REPEATS).unwrap());
        let with = |parameter: &VariedParameter, factor: f64| {
            let mut varied = subject.clone();
            varied.vary(parameter, factor);
            run_ratios(&all, &varied, REPEATS).unwrap()
        };
        assert_eq!(plain, with(&VariedParameter::Quantum, 1.0));
        assert_ne!(plain, with(&VariedParameter::Quantum, 1.3));
        let latency = ["memory", "latency_ns"].map(str::to_owned).to_vec();
        assert_ne!(plain, with(&VariedParameter::Machine(latency), 1.3));
        // No measure of time depends on energy.
        let energy = ["memory", "access_nj"].map(str::to_owned).to_vec();
        assert_eq!(plain, with(&VariedParameter::Machine(energy), 1.3));
    }

    #[test]
    fn conclusions_on_shared_runs_have_own_ratios() {
        let all = conclusions().unwrap();
        let shared = all.chunk_by(StudyConclusion::has_runs_of).next().unwrap();
        assert_eq!(shared.len(), 2);
        let subject = VariedDescriptions::from_conclusion(&shared[0]).unwrap();
        let repeats = Repeats {
            alone_s: 2.0,
            ..REPEATS
        };
        let ratios = run_ratios(shared, &subject, repeats).unwrap();
        assert_ne!(ratios[0], ratios[1]);
        let second = run_ratios(&shared[1..], &subject, repeats).unwrap();
        assert_eq!(second, ratios[1..]);
    }
}
