//! Gap between policies for pairs of programs and the best of all static mappings.
//!
//! Every mapping that differs from the others on the topology is run; the named ones are among them,
//! so none of these can be better than the best. Pitfall: a policy that moves threads can be.

use super::super::mapping::{all_pairs, chip, instances, workload};
use super::{PolicyGaps, gap_figure, gap_table, join_texts, list_gaps, missing_percent};
use crate::simulate::case::PreparedCase;
use crate::simulate::{map_jobs, part_error, run_every_case};
use crate::study::{StudyError, StudyOutput};
use consort_core::mapping::{ExhaustiveMappings, Mapping, MappingScheme};
use consort_core::stats::mean;
use consort_experiment::{Contender, ExperimentContext};

/// The operating system, and a row's name.
const LINUX: &str = "linux";
/// Group of the rows.
const GROUP: &str = "core2-pairs";
/// The policy that tries things out.
const UMBRELLA: &str = "holistic";
/// Stride through the pairs, at the quick and the full scale: one of so many is run.
const EVERY: [usize; 2] = [12, 3];
/// Time of a program's work alone, s: the umbrella policy takes about four to try things out.
const ALONE_S: [f64; 2] = [1.0, 4.0];
/// Runs of each mapping and policy, at the quick and the full scale.
const RUNS: [usize; 2] = [1, 2];
/// Mappings at most.
const MOST: usize = 100;

/// All pairs.
struct MappingGrid {
    /// Policies, the mappings first.
    policies: Vec<String>,
    mappings: usize,
    /// System throughput by pair, then policy, mean over runs.
    stp: Vec<Vec<f64>>,
}

/// Adds the system, the named mappings, the umbrella policy, all mappings on average and the worst.
pub(super) fn add_mappings(
    context: &ExperimentContext<'_>,
    output: &mut StudyOutput,
) -> Result<(), StudyError> {
    let runs = context.by_scale(RUNS[0], RUNS[1]);
    let mapped = MappingGrid::run(context, runs)?;
    let rows = mapped.rows();
    let mut better = Vec::new();
    for row in &rows {
        let beyond = row.gaps_percent.iter().filter(|gap| **gap < 0.0).count();
        if beyond > 0 {
            better.push(format!("{} of {beyond} pairs", row.policy));
        }
    }
    let best = mapped.count_best().into_iter();
    let best = best.map(|(mapping, count)| format!("{mapping} {count}"));
    output.notes.push(format!(
        "Core 2 Quad, pairs of programs with four threads each: {} mappings of each of {} \
         pairs. Gap of throughput to the best of them, mean and worst: {}. Number of pairs for \
         which each mapping is the best: {}. Better than every mapping, with a gap below 0: {}. A mapping leaves a CPU idle while all \
         threads that it put there wait; who may move threads can use it. What holistic tries out \
         before it settles is in its gap.",
        mapped.mappings,
        mapped.stp.len(),
        list_gaps(&rows),
        join_texts(best),
        join_texts(better),
    ));
    let title = "Throughput of pairs of programs missing to the best static mapping, over pairs";
    output.tables.push(gap_table("mappings", title, &rows)?);
    let title = "Core 2 Quad, pairs of programs: throughput missing to the best mapping";
    let text = "Below 0 a policy is better than every static mapping. Workloads are pairs.";
    let figure = gap_figure("mappings", title, text, runs, &rows)?;
    output.figures.push(figure);
    Ok(())
}

/// The pairs of this scale.
fn cases(context: &ExperimentContext<'_>) -> Result<Vec<PreparedCase>, StudyError> {
    let (chip, instances) = (chip()?, instances()?);
    let every = context.by_scale(EVERY[0], EVERY[1]);
    let pairs: Vec<_> = all_pairs().into_iter().step_by(every).collect();
    map_jobs(context, &pairs, |pair| {
        let workload = workload(pair, &instances);
        let alone_s = context.by_scale(ALONE_S[0], ALONE_S[1]);
        PreparedCase::from_key(&pair.join("+"), &chip, workload, alone_s, context.seed())
    })
}

/// The policies that hold the mappings of a case's programs, one for each: by the name of a scheme
/// if the mapping is that of a scheme, but for symmetry.
fn mapping_policies(case: &PreparedCase) -> Result<Vec<String>, StudyError> {
    let topology = case.experiment.chip.topology();
    let entries = case.experiment.workload.entries.iter();
    let threads: Vec<usize> = entries.map(|entry| entry.threads as usize).collect();
    let all = ExhaustiveMappings::new(topology, &threads, MOST).map_err(part_error(GROUP))?;
    let mut policies = Vec::new();
    for (n, mapping) in all.mappings().enumerate() {
        let mut schemes = MappingScheme::ALL.iter();
        let scheme = schemes.find(|scheme| {
            all.position(&Mapping::from_scheme(**scheme, topology, &threads)) == Some(n)
        });
        policies.push(match scheme {
            Some(scheme) => mapping_policy(scheme.name()),
            None => mapping_policy(&mapping.to_string()),
        });
    }
    Ok(policies)
}

fn mapping_policy(map: &str) -> String {
    format!("mapping:map={map}")
}

impl MappingGrid {
    /// Runs every pair under every mapping and policy, with the same seeds.
    fn run(context: &ExperimentContext<'_>, runs: usize) -> Result<Self, StudyError> {
        let cases = cases(context)?;
        let mut policies = match cases.first() {
            Some(case) => mapping_policies(case)?,
            None => Vec::new(),
        };
        let mappings = policies.len();
        policies.extend([LINUX, UMBRELLA].map(str::to_owned));
        let contenders = policies.iter();
        let contenders: Vec<Contender> = contenders
            .map(|policy| Contender::new(policy, LINUX).map_err(part_error(policy)))
            .collect::<Result<_, _>>()?;
        let jobs = (&cases[..], &contenders[..], runs);
        let stp = run_every_case(context, jobs, |case, contender, seed| {
            let part = format!("{} under {}", case.of.key, contender.name());
            let run = case.experiment.run(contender, &case.work, seed, None);
            Ok(run.map_err(part_error(&part))?.stp)
        })?;
        let means = stp.chunks(runs).map(|runs| mean(runs).unwrap_or(f64::NAN));
        let means: Vec<f64> = means.collect();
        Ok(Self {
            stp: means.chunks(policies.len()).map(<[f64]>::to_vec).collect(),
            policies,
            mappings,
        })
    }

    /// Number of pairs for which each mapping is the best.
    fn count_best(&self) -> Vec<(&str, usize)> {
        let mut counts: Vec<(&str, usize)> = Vec::new();
        for policy in &self.policies[..self.mappings] {
            counts.push((policy, 0));
        }
        for pair in &self.stp {
            let mappings = pair[..self.mappings].iter().enumerate();
            if let Some((best, _)) = mappings.max_by(|a, b| a.1.total_cmp(b.1)) {
                counts[best].1 += 1;
            }
        }
        counts
    }

    fn rows(&self) -> Vec<PolicyGaps> {
        let schemes = MappingScheme::ALL.map(|scheme| mapping_policy(scheme.name()));
        let mut rows = Vec::new();
        for name in [LINUX]
            .into_iter()
            .chain(schemes.iter().map(String::as_str))
            .chain([UMBRELLA])
        {
            if let Some(policy) = self.policies.iter().position(|policy| policy == name) {
                rows.push(self.row(name, |pair| pair[policy]));
            }
        }
        rows.push(self.row("any mapping", |pair| {
            mean(&pair[..self.mappings]).unwrap_or(f64::NAN)
        }));
        rows.push(self.row("worst mapping", |pair| {
            let mappings = pair[..self.mappings].iter().copied();
            mappings.fold(f64::INFINITY, f64::min)
        }));
        rows
    }

    fn row(&self, policy: &str, value: impl Fn(&[f64]) -> f64) -> PolicyGaps {
        let gaps = self.stp.iter().map(|pair| {
            let best = pair[..self.mappings].iter().copied().fold(0.0, f64::max);
            missing_percent(value(pair), best)
        });
        PolicyGaps::new(GROUP, policy, gaps)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn no_mapping_is_better_than_the_best() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let mapped = MappingGrid::run(&context, 1).unwrap();
        assert_eq!((mapped.mappings, mapped.stp.len()), (5, 3));
        let rows = mapped.rows();
        let gaps = |policy: &str| {
            let row = rows.iter().find(|row| row.policy == policy);
            &row.unwrap().gaps_percent
        };
        for pair in 0..3 {
            let named = MappingScheme::ALL.map(|scheme| gaps(&mapping_policy(scheme.name()))[pair]);
            let (any, worst) = (gaps("any mapping")[pair], gaps("worst mapping")[pair]);
            assert!(
                named.iter().all(|gap| (0.0..=worst).contains(gap)),
                "{named:?} {worst}"
            );
            assert!(0.0 < any && any < worst, "{any} {worst}");
        }
        assert!(rows.iter().any(|row| row.policy == UMBRELLA));
    }

    #[test]
    fn each_mapping_has_one_policy() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let case = cases(&context).unwrap().remove(0);
        let mut texts = mapping_policies(&case).unwrap();
        for scheme in MappingScheme::ALL {
            let named = mapping_policy(scheme.name());
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
    fn gaps_are_to_the_best_mapping() {
        let mapped = MappingGrid {
            policies: vec![
                mapping_policy("iso"),
                mapping_policy("int"),
                LINUX.to_owned(),
            ],
            mappings: 2,
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
            ("any mapping", 25.0),
            ("worst mapping", 50.0),
        ];
        assert_eq!(gaps, expect);
        let best = [("mapping:map=iso", 1), ("mapping:map=int", 0)];
        assert_eq!(mapped.count_best(), best);
    }
}
