//! Gap between policies for pairs of programs and the best of all static mappings.
//!
//! Usage: [`search`], then the rows. Every mapping that the topology can tell from the others is
//! run; the named ones are among them, so none of these can be better than the best. Pitfall: a
//! policy that moves threads can be.

use super::super::mapping::{LINUX, all_pairs, chip, instances, workload};
use super::gaps::{PolicyGaps, missing_percent};
use crate::simulate::case::PreparedCase;
use crate::simulate::{map_jobs, part_error, run_every_case};
use crate::study::StudyError;
use consort_core::mapping::{ExhaustiveMappings, Mapping, MappingScheme};
use consort_core::stats::mean;
use consort_core::topology::Topology;
use consort_experiment::Contender;
use consort_experiment::ExperimentContext;

/// Group of the rows.
const GROUP: &str = "core2-pairs";
/// The row of the mean over all mappings.
const ANY: &str = "any mapping";
/// The row of the worst mapping.
const WORST: &str = "worst mapping";
/// The policy that tries things out.
pub(super) const UMBRELLA: &str = "holistic";
/// Stride through the pairs, at the quick and the full scale: one of so many is run.
const EVERY: [usize; 2] = [12, 3];
/// Time of a program's work alone, s: the umbrella policy takes about four to try things out.
const ALONE_S: [f64; 2] = [1.0, 4.0];
/// Runs of each mapping and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [1, 2];
/// Mappings at most.
const MOST: usize = 100;

/// All pairs.
pub(super) struct MappingGrid {
    /// Policies, the mappings first.
    policies: Vec<String>,
    mappings: usize,
    /// Number of runs of each mapping and policy.
    pub runs: usize,
    /// System throughput by pair, then policy, mean over runs.
    stp: Vec<Vec<f64>>,
}

/// Runs every pair under every mapping and policy, with the same seeds.
///
/// # Errors
/// Machines and programs that are not there, what fails in a run.
pub(super) fn search(context: &ExperimentContext<'_>) -> Result<MappingGrid, StudyError> {
    let cases = cases(context)?;
    let mut policies = cases.first().map_or_else(|| Ok(Vec::new()), mappings)?;
    let mappings = policies.len();
    policies.extend([LINUX, UMBRELLA].map(str::to_owned));
    let each = policies.iter();
    let contenders: Vec<Contender> = each
        .map(|policy| Contender::new(policy, LINUX).map_err(part_error(policy)))
        .collect::<Result<_, _>>()?;
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    let stp = run_every_case(context, (&cases, &contenders, runs), stp)?;
    let stp = stp.chunks(runs).map(|runs| mean(runs).unwrap_or(f64::NAN));
    let stp: Vec<f64> = stp.collect();
    Ok(MappingGrid {
        stp: stp.chunks(policies.len()).map(<[f64]>::to_vec).collect(),
        policies,
        mappings,
        runs,
    })
}

/// The pairs of this scale.
fn cases(context: &ExperimentContext<'_>) -> Result<Vec<PreparedCase>, StudyError> {
    let (chip, instances) = (chip()?, instances()?);
    let pairs = all_pairs().into_iter();
    let pairs: Vec<_> = pairs
        .step_by(context.by_scale(EVERY[0], EVERY[1]))
        .collect();
    map_jobs(context, &pairs, |pair| {
        let workload = workload(pair, &instances);
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        PreparedCase::from_key(&pair.join("+"), &chip, workload, alone_s, context.seed())
    })
}

/// System throughput of a run.
fn stp(case: &PreparedCase, contender: &Contender, seed: u64) -> Result<f64, StudyError> {
    let part = format!("{} under {}", case.of.key, contender.name());
    let run = case.experiment.run(contender, &case.work, seed, None);
    Ok(run.map_err(part_error(&part))?.stp)
}

/// The policies that hold the mappings of a case's programs, one for each.
fn mappings(case: &PreparedCase) -> Result<Vec<String>, StudyError> {
    let topology = case.experiment.chip.topology();
    let entries = case.experiment.workload.entries.iter();
    let threads: Vec<usize> = entries.map(|entry| entry.threads as usize).collect();
    let all = ExhaustiveMappings::new(topology, &threads, MOST).map_err(part_error(GROUP))?;
    Ok(texts(&all, topology, &threads))
}

/// Names the mappings: by its scheme where one is that of a scheme, but for symmetry.
fn texts(all: &ExhaustiveMappings, topology: &Topology, threads: &[usize]) -> Vec<String> {
    let of =
        |scheme: &MappingScheme| all.position(&Mapping::from_scheme(*scheme, topology, threads));
    let text = |(number, mapping): (usize, Mapping)| {
        let mut schemes = MappingScheme::ALL.iter();
        match schemes.find(|scheme| of(scheme) == Some(number)) {
            Some(scheme) => policy(scheme.name()),
            None => policy(&mapping.to_string()),
        }
    };
    all.mappings().enumerate().map(text).collect()
}

fn policy(map: &str) -> String {
    format!("mapping:map={map}")
}

impl MappingGrid {
    /// Mappings of each pair.
    pub fn mappings(&self) -> usize {
        self.mappings
    }

    /// Number of pairs of which each mapping is the best.
    pub fn best(&self) -> Vec<(&str, usize)> {
        let best = |pair: &Vec<f64>| {
            let mappings = pair[..self.mappings].iter().enumerate();
            mappings.max_by(|a, b| a.1.total_cmp(b.1)).map(|(at, _)| at)
        };
        let count = |at: usize| {
            { self.stp.iter() }
                .filter(|pair| best(pair) == Some(at))
                .count()
        };
        let mappings = self.policies[..self.mappings].iter().enumerate();
        mappings
            .map(|(at, policy)| (policy.as_str(), count(at)))
            .collect()
    }

    /// Rows: the system, the named mappings, the umbrella policy, all mappings on average and the
    /// worst.
    pub fn rows(&self) -> Vec<PolicyGaps> {
        let named = MappingScheme::ALL.map(|scheme| policy(scheme.name()));
        let names = std::iter::once(LINUX.to_owned()).chain(named);
        let names = names.chain([UMBRELLA.to_owned()]);
        let of_policy = |name: String| {
            let policy = self.policies.iter().position(|policy| *policy == name)?;
            Some(self.row(&name, |pair| pair[policy]))
        };
        let mut rows: Vec<PolicyGaps> = names.filter_map(of_policy).collect();
        rows.push(self.row(ANY, |pair| mean(&pair[..self.mappings]).unwrap_or(f64::NAN)));
        rows.push(self.row(WORST, |pair| {
            let mappings = pair[..self.mappings].iter().copied();
            mappings.fold(f64::INFINITY, f64::min)
        }));
        rows
    }

    fn row(&self, policy: &str, value: impl Fn(&[f64]) -> f64) -> PolicyGaps {
        let best = |pair: &[f64]| pair[..self.mappings].iter().copied().fold(0.0, f64::max);
        let gap = |pair: &Vec<f64>| missing_percent(value(pair), best(pair));
        PolicyGaps {
            group: GROUP.to_owned(),
            policy: policy.to_owned(),
            gaps_percent: self.stp.iter().map(gap).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn no_mapping_is_better_than_the_best_and_the_named_ones_are_among_all() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let mapped = search(&context).unwrap();
        assert_eq!((mapped.mappings(), mapped.stp.len()), (5, 3));
        let rows = mapped.rows();
        let of = |policy: &str| {
            &rows
                .iter()
                .find(|row| row.policy == policy)
                .unwrap()
                .gaps_percent
        };
        for pair in 0..3 {
            let named = MappingScheme::ALL.map(|scheme| of(&policy(scheme.name()))[pair]);
            let (any, worst) = (of(ANY)[pair], of(WORST)[pair]);
            assert!(
                named.iter().all(|gap| (0.0..=worst).contains(gap)),
                "{named:?} {worst}"
            );
            assert!(0.0 < any && any < worst, "{any} {worst}");
        }
        assert!(rows.iter().any(|row| row.policy == UMBRELLA));
    }

    #[test]
    fn each_mapping_has_one_policy_and_those_with_a_name_have_it() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let case = cases(&context).unwrap().remove(0);
        let mut texts = mappings(&case).unwrap();
        for scheme in MappingScheme::ALL {
            let named = policy(scheme.name());
            assert_eq!(texts.iter().filter(|text| **text == named).count(), 1);
            texts.retain(|text| *text != named);
        }
        // By hand: cores of their own in one domain alone, and 3 + 1 threads in each domain.
        assert_eq!(texts.len(), 2);
        for text in texts {
            let map = text.strip_prefix("mapping:map=").unwrap();
            assert_eq!(map.parse::<Mapping>().unwrap().loads().len(), 4);
        }
    }

    #[test]
    fn gaps_are_to_the_best_mapping_alone() {
        let mapped = MappingGrid {
            policies: vec![policy("iso"), policy("int"), LINUX.to_owned()],
            mappings: 2,
            runs: 1,
            stp: vec![vec![2.0, 1.0, 2.5]],
        };
        let rows = mapped.rows();
        let gaps: Vec<(&str, f64)> = { rows.iter() }
            .map(|row| (row.policy.as_str(), row.gaps_percent[0]))
            .collect();
        let expect = [
            (LINUX, -25.0),
            ("mapping:map=iso", 0.0),
            ("mapping:map=int", 50.0),
            (ANY, 25.0),
            (WORST, 50.0),
        ];
        assert_eq!(gaps, expect);
        assert_eq!(
            mapped.best(),
            [("mapping:map=iso", 1), ("mapping:map=int", 0)]
        );
    }
}
