//! Both policies of a conclusion on its machine with its programs, varied or not.

use super::super::load::workload;
use super::headlines::StudyConclusion;
use super::subject::VariedDescriptions;
use crate::simulate::RunMeasurements;
use crate::simulate::case::PreparedCase;
use crate::simulate::{part_error, seeds};
use crate::study::StudyError;
use consort_experiment::Contender;
use consort_sim::chip::Chip;
use std::sync::Arc;

/// The operating system beneath every policy.
const OS: &str = "linux";

/// Repetitions of a trial, and their seeds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Repeats {
    /// Seed of the first run; the others follow.
    pub seed: u64,
    /// Runs of each policy.
    pub runs: usize,
    /// Time of a program's work alone, s.
    pub alone_s: f64,
}

/// Runs both policies with the same seeds; the ratios of each of the headlines, run by run. The
/// headlines have the same runs.
///
/// # Errors
/// Policies that are unknown or of no use there, runs that do not end.
pub(super) fn ratios(
    headlines: &[StudyConclusion],
    subject: &VariedDescriptions,
    repeats: Repeats,
) -> Result<Vec<Vec<f64>>, StudyError> {
    let Some(first) = headlines.first() else {
        return Ok(Vec::new());
    };
    let case = case(first, subject, repeats)?;
    let ours = outcomes(&case, &first.policy, subject, repeats)?;
    let theirs = outcomes(&case, &first.over, subject, repeats)?;
    let of = |headline: &StudyConclusion| -> Vec<f64> {
        let pairs = ours.iter().zip(&theirs);
        pairs.map(|(o, t)| headline.metric.ratio(o, t)).collect()
    };
    Ok(headlines.iter().map(of).collect())
}

fn case(
    headline: &StudyConclusion,
    subject: &VariedDescriptions,
    repeats: Repeats,
) -> Result<PreparedCase, StudyError> {
    let used = |core: usize| headline.cores.is_empty() || headline.cores.contains(&core);
    let chip = Chip::with_cores(&subject.machine()?, subject.smt, &used);
    let chip = Arc::new(chip.map_err(part_error(&headline.key))?);
    let load = workload(&headline.load, |name| subject.program(name))?;
    PreparedCase::from_key(&headline.key, &chip, load, repeats.alone_s, repeats.seed)
}

fn outcomes(
    case: &PreparedCase,
    policy: &str,
    subject: &VariedDescriptions,
    repeats: Repeats,
) -> Result<Vec<RunMeasurements>, StudyError> {
    let contender = Contender::new(policy, OS).map_err(part_error(policy))?;
    let usual = case
        .experiment
        .quantum_under(&contender)
        .map_err(part_error(policy))?;
    let mut case = case.clone();
    case.experiment.quantum = Some(usual.mul_f64(subject.quantum));
    let seeds = seeds(repeats.seed, repeats.runs);
    seeds.map(|seed| case.run(policy, seed)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::headlines::headlines;
    use super::super::subject::VariedParameter;
    use super::*;

    const REPEATS: Repeats = Repeats {
        seed: 1,
        runs: 2,
        alone_s: 0.02,
    };

    fn hrrs() -> (Vec<StudyConclusion>, VariedDescriptions) {
        let mut all = headlines().unwrap();
        all.retain(|headline| headline.key == "hrrs-speed");
        let subject = VariedDescriptions::from_headline(&all[0]).unwrap();
        (all, subject)
    }

    #[test]
    fn a_trial_follows_from_what_is_varied() {
        let (headlines, subject) = hrrs();
        let headlines = headlines.as_slice();
        let plain = ratios(headlines, &subject, REPEATS).unwrap();
        assert_eq!((plain.len(), plain[0].len()), (1, 2));
        assert_eq!(plain, ratios(headlines, &subject, REPEATS).unwrap());
        let with = |parameter: &VariedParameter, factor: f64| {
            let mut varied = subject.clone();
            varied.vary(parameter, factor);
            ratios(headlines, &varied, REPEATS).unwrap()
        };
        assert_eq!(plain, with(&VariedParameter::Quantum, 1.0));
        assert_ne!(plain, with(&VariedParameter::Quantum, 1.3));
        let latency = ["memory", "latency_ns"].map(str::to_owned).to_vec();
        assert_ne!(plain, with(&VariedParameter::Machine(latency), 1.3));
        // No measure of time knows of energy.
        let energy = ["memory", "access_nj"].map(str::to_owned).to_vec();
        assert_eq!(plain, with(&VariedParameter::Machine(energy), 1.3));
    }

    #[test]
    fn conclusions_on_the_same_runs_have_their_own_ratios() {
        let all = headlines().unwrap();
        let headlines = all.chunk_by(StudyConclusion::has_runs_of).next().unwrap();
        assert_eq!(headlines.len(), 2);
        let subject = VariedDescriptions::from_headline(&headlines[0]).unwrap();
        let repeats = Repeats {
            alone_s: 2.0,
            ..REPEATS
        };
        let all = ratios(headlines, &subject, repeats).unwrap();
        assert_ne!(all[0], all[1]);
        assert_eq!(
            ratios(&headlines[1..], &subject, repeats).unwrap(),
            all[1..]
        );
    }
}
