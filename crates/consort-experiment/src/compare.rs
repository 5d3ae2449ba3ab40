//! Many runs under several contenders.

use super::alone::{AloneWork, RunUntil};
use super::contender::Contender;
use super::error::ExperimentError;
use super::result::RunResult;
use super::run::Experiment;
use crate::ExperimentContext;
use consort_core::policy::published_name;
use consort_core::stats::{ConfidenceInterval, RatioInterval};
use consort_core::trial::{EffectEstimate, Verdict};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// The contender whose gain is the most that pairing can attain.
const ORACLE: &str = "oracle";
/// Threads whose pairs are solved and searched without a request, at most.
const MOST_PAIRED: usize = 64;

/// A mean with the half width of its 95 percent interval; a single run has none.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct MeanEstimate {
    /// Mean over the runs.
    pub mean: f64,
    /// Half width of the 95 percent interval, Student's t.
    pub ci95: Option<f64>,
}

/// One contender.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ContenderRow {
    /// The contender.
    pub policy: String,
    /// System throughput.
    pub stp: MeanEstimate,
    /// Average normalised turnaround time.
    pub antt: MeanEstimate,
    /// Largest over smallest slowdown.
    pub unfairness: MeanEstimate,
    /// Makespan, s.
    pub makespan_s: MeanEstimate,
    /// Energy, J.
    pub energy_j: MeanEstimate,
    /// Energy times delay, J·s.
    pub ed: MeanEstimate,
    /// Mean over the programs of the time from start to end, s.
    pub turnaround_s: MeanEstimate,
    /// Throughput over the baseline's, run by run: geometric mean, with the longer half of its
    /// interval. For a single program this is the ratio of times. If whole programs run once, the
    /// baseline's makespan over the contender's.
    pub speedup: MeanEstimate,
    /// Masks changed per run.
    pub moves: MeanEstimate,
    /// Gain over the baseline as a share of the oracle's; `None` if the oracle's is unknown or not
    /// above zero by its interval.
    pub attainable_share: Option<f64>,
}

/// All contenders.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PolicyComparison {
    /// The best policy compared with the baseline, as a sentence; `None` if there is no other. Its
    /// interval is wider than the one in `results` if it is the best of several by the same runs.
    pub answer: Option<String>,
    /// Name of the machine.
    pub machine: String,
    /// The workload.
    pub workload: String,
    /// Work of each program, and the end of a run.
    pub until: RunUntil,
    /// Runs of each contender.
    pub runs: usize,
    /// The contender to which speedups refer.
    pub baseline: String,
    /// Seed of the first run; the others follow it.
    pub seed: u64,
    /// One row per contender.
    pub results: Vec<ContenderRow>,
    /// Throughput of the oracle over the baseline's, if its search is exact here.
    pub attainable: Option<MeanEstimate>,
    /// Reason why no row has a share of what is attainable.
    pub attainable_reason: Option<String>,
    /// Policies that did not do what a comparison is for, one sentence each.
    pub warnings: Vec<String>,
}

/// A comparison, and what it was made of.
#[derive(Clone, Debug, PartialEq)]
pub struct ComparedRuns {
    /// The rows.
    pub comparison: PolicyComparison,
    /// Every run, contender by contender, in the order of their seeds.
    pub runs: Vec<RunResult>,
}

/// Position of the contender to which speedups refer: the one of that name; if there is no name,
/// `linux` if it takes part, else the first.
///
/// # Errors
/// A name that is none of the contenders', with the nearest one.
pub fn find_baseline(contenders: &[Contender], name: Option<&str>) -> Result<usize, String> {
    let find = |name: &str| {
        let name = published_name(name);
        contenders.iter().position(|c| c.name() == name)
    };
    let Some(name) = name else {
        return Ok(find("linux").unwrap_or(0));
    };
    find(name).ok_or_else(|| {
        let hint = consort_core::hint(name, contenders.iter().map(Contender::name));
        format!("baseline '{name}' is none of the policies; {hint}")
    })
}

/// Runs every contender `runs` times, with the seeds `seed`, `seed + 1`, and so on.
///
/// # Errors
/// See [`Experiment::run`].
pub fn compare_runs(
    experiment: &Experiment,
    contenders: &[Contender],
    baseline: usize,
    runs: usize,
    context: &ExperimentContext<'_>,
) -> Result<ComparedRuns, ExperimentError> {
    let ready = |c: &Contender| c.prepare(&experiment.chip, &experiment.workload, context);
    let ready: Result<Vec<Contender>, _> = contenders.iter().map(ready).collect();
    let mut all = ready?;
    let mut attainable_reason = no_exact_search(experiment);
    if attainable_reason.is_none() {
        all.push(Contender::new(ORACLE, contenders[baseline].os())?);
    }
    let work = experiment.measure_work(context.seed())?;
    let mut results = run_all(experiment, &all, &work, runs, context)?;
    let best = results.split_off(contenders.len()).pop();
    let contenders = &all[..contenders.len()];
    let base = &results[baseline];
    let attainable = best.map(|runs| row(&all[all.len() - 1], &runs, base).speedup);
    let gain = attainable.map_or(0.0, |speedup| speedup.mean - 1.0);
    let is_certain = attainable.is_some_and(|speedup| gain > speedup.ci95.unwrap_or(0.0));
    if attainable.is_some() && !is_certain {
        attainable_reason = Some(format!(
            "by its interval the best pairing gains nothing over {}",
            contenders[baseline].name()
        ));
    }
    let mut rows = Vec::new();
    let mut warnings = Vec::new();
    for (contender, runs) in contenders.iter().zip(&results) {
        let mut row = row(contender, runs, base);
        row.attainable_share = is_certain.then(|| (row.speedup.mean - 1.0) / gain);
        rows.push(row);
        warnings.extend(idle_warning(experiment, contender, runs)?);
    }
    let base = contenders[baseline].name();
    let others = { contenders.iter().zip(&rows) }.filter(|(one, _)| one.name() != base);
    let (bounds, policies): (Vec<_>, Vec<_>) = others.partition(|(one, _)| one.is_bound());
    let policies = policies.into_iter().map(|(_, row)| row);
    let answer = answer(&policies.collect::<Vec<_>>(), base, runs).or_else(|| {
        let bounds = bounds.into_iter().map(|(_, row)| row);
        let answer = answer(&bounds.collect::<Vec<_>>(), base, runs);
        answer.map(|answer| format!("{answer}; a bound, which needs the simulation"))
    });
    let comparison = PolicyComparison {
        answer,
        machine: experiment.chip.spec().name.clone(),
        workload: experiment.workload.text.clone(),
        until: experiment.until,
        runs,
        baseline: base.to_owned(),
        seed: context.seed(),
        results: rows,
        attainable,
        attainable_reason,
        warnings,
    };
    Ok(ComparedRuns {
        comparison,
        runs: results.concat(),
    })
}

/// The sentence about the policy with the highest speedup over the baseline, with the interval that
/// all of them have at once with 95 percent confidence (Bonferroni), because it is chosen by the
/// runs that measure it.
fn answer(policies: &[&ContenderRow], base: &str, runs: usize) -> Option<String> {
    let best = { policies.iter() }.max_by(|a, b| a.speedup.mean.total_cmp(&b.speedup.mean))?;
    let ratio = best.speedup.mean;
    let effect = match best.speedup.ci95 {
        // Runs of one seed are pairs.
        Some(half) => {
            let wider = t_quantile(policies.len(), runs) / t_quantile(1, runs);
            let factor = libm::pow(1.0 + half / ratio, wider);
            let effect = EffectEstimate {
                ratio,
                low: ratio / factor,
                high: ratio * factor,
                pairs: runs,
            };
            Verdict::from_named(Some(effect), runs, "simulated").text
        }
        None => format!("{:+.1} % (one run, so no interval)", 100.0 * (ratio - 1.0)),
    };
    let best_of = match policies.len() {
        1 => String::new(),
        n => format!("best of {n} policies, "),
    };
    Some(format!(
        "{best_of}{} compared with {base}: {effect}",
        best.policy
    ))
}

/// Half width in standard errors of intervals from `runs` values that hold for `several` at once.
fn t_quantile(several: usize, runs: usize) -> f64 {
    let distribution = StudentsT::new(0.0, 1.0, runs as f64 - 1.0);
    distribution.map_or(f64::NAN, |t| t.inverse_cdf(1.0 - 0.025 / several as f64))
}

/// Reason why the oracle's pairing is not the best for throughput, found by exact search; `None` if
/// it is.
fn no_exact_search(experiment: &Experiment) -> Option<String> {
    let entries = &experiment.workload.entries;
    let threads: usize = entries.iter().map(|entry| entry.threads as usize).sum();
    let places = experiment.chip.places();
    let cores = experiment.chip.topology().cores();
    if experiment.until == RunUntil::AllFinished {
        return Some("the oracle pairs for throughput, not for the last end".to_owned());
    }
    if places.iter().any(|p| p.core_type != places[0].core_type) {
        return Some(
            "the oracle solves pairs on one type of core, and there are several".to_owned(),
        );
    }
    if cores.iter().any(|core| core.pus.len() < 2) {
        return Some("a core has one CPU, so that there is nothing to pair".to_owned());
    }
    if threads <= cores.len() {
        let (cores, plural) = (cores.len(), if threads == 1 { "" } else { "s" });
        return Some(format!(
            "{threads} thread{plural} on {cores} cores can have a core each, so that there is nothing to \
             pair"
        ));
    }
    if threads > 2 * cores.len() {
        return Some(
            "with more than two threads per core the search for groups is not exact".to_owned(),
        );
    }
    (threads > MOST_PAIRED)
        .then(|| format!("an exact search takes too long for more than {MOST_PAIRED} threads"))
}

/// Warning that a contender's policy decided at most once in each of these runs, or moved nothing.
/// `None` if it did more, or if the contender is an operating system alone.
///
/// # Errors
/// Needs of the policy that the machine does not meet.
pub fn idle_warning(
    experiment: &Experiment,
    contender: &Contender,
    runs: &[RunResult],
) -> Result<Option<String>, ExperimentError> {
    let decisions: u64 = runs.iter().map(|run| run.decision_us.n).sum();
    let moves: u64 = runs.iter().map(|run| run.moves).sum();
    let once = decisions <= runs.len() as u64;
    if contender.leaves_all_to_os() || (moves > 0 && !once) {
        return Ok(None);
    }
    let name = contender.name();
    if !once {
        return Ok(Some(format!(
            "{name} moved nothing in {decisions} decisions: threads stayed where {} had put them",
            contender.os()
        )));
    }
    let quantum_s = experiment.quantum_under(contender)?.as_secs_f64();
    let longest_s = runs.iter().map(|run| run.makespan_s).fold(0.0, f64::max);
    let decided = match (decisions, moves) {
        (0, _) => "made no decision",
        (_, 0) => "decided once and moved nothing",
        _ => "decided once",
    };
    Ok(Some(format!(
        "{name} {decided}: its quantum is {quantum_s} s, and the programs need \
         {longest_s:.3} s; let them run longer, or set a shorter interval"
    )))
}

fn run_all(
    experiment: &Experiment,
    contenders: &[Contender],
    work: &[AloneWork],
    runs: usize,
    context: &ExperimentContext<'_>,
) -> Result<Vec<Vec<RunResult>>, ExperimentError> {
    let seeds = (0..runs as u64).map(|i| context.seed().wrapping_add(i));
    let seeds: Vec<u64> = seeds.collect();
    // Every contender has the same seeds, so that ratios can be taken run by run.
    let jobs: Vec<(usize, u64)> = (0..contenders.len())
        .flat_map(|c| seeds.iter().map(move |&seed| (c, seed)))
        .collect();
    let results = context.map(&jobs, |&(c, seed)| {
        experiment.run(&contenders[c], work, seed, None)
    })?;
    let results: Vec<RunResult> = results.into_iter().collect::<Result<_, _>>()?;
    Ok(results
        .chunks(runs.max(1))
        .map(<[RunResult]>::to_vec)
        .collect())
}

fn row(contender: &Contender, results: &[RunResult], base: &[RunResult]) -> ContenderRow {
    let over = |value: fn(&RunResult) -> f64| {
        let values: Vec<f64> = results.iter().map(value).collect();
        estimate(ConfidenceInterval::from_values(&values))
    };
    let speed = |run: &RunResult| match run.until {
        RunUntil::EqualWork => run.stp,
        RunUntil::AllFinished => 1.0 / run.makespan_s,
    };
    let speeds = |runs: &[RunResult]| -> Vec<f64> { runs.iter().map(speed).collect() };
    let speedup = RatioInterval::from_pairs(&speeds(results), &speeds(base));
    ContenderRow {
        policy: contender.name().to_owned(),
        stp: over(|r| r.stp),
        antt: over(|r| r.antt),
        unfairness: over(|r| r.unfairness),
        makespan_s: over(|r| r.makespan_s),
        energy_j: over(|r| r.energy_j),
        ed: over(|r| r.ed),
        turnaround_s: over(|r| {
            let times = r.programs.iter().map(|p| p.together_s);
            times.sum::<f64>() / r.programs.len() as f64
        }),
        speedup: estimate(speedup.map(|r| r.to_interval())),
        moves: over(|r| r.moves as f64),
        attainable_share: None,
    }
}

fn estimate(interval: Option<ConfidenceInterval>) -> MeanEstimate {
    MeanEstimate {
        mean: interval.map_or(f64::NAN, |i| i.mean),
        ci95: interval.and_then(|i| i.ci95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::testing::workers;
    use crate::testing::{chip, pair};
    use std::sync::Arc;

    fn comparison(count: usize) -> PolicyComparison {
        let experiment = Experiment::new(&chip("bulldozer-6282se"), pair(["mcf", "sphinx3"]), 1.0);
        let contenders = ["linux", "workover"].map(|p| Contender::new(p, "linux").unwrap());
        let context = ExperimentContext::new(5, Scale::Quick, workers(count), &|_| ());
        compare_runs(&experiment, &contenders, 0, 3, &context)
            .unwrap()
            .comparison
    }

    #[test]
    fn rows_are_contenders_with_baseline_one() {
        let comparison = comparison(1);
        let names: Vec<&str> = comparison
            .results
            .iter()
            .map(|r| r.policy.as_str())
            .collect();
        assert_eq!(names, ["linux", "workover"]);
        let header = (
            comparison.baseline.as_str(),
            comparison.runs,
            comparison.seed,
        );
        assert_eq!(header, ("linux", 3, 5));
        let base = comparison.results[0].speedup;
        assert!((base.mean - 1.0).abs() < 1e-12 && base.ci95.unwrap() < 1e-12);
        let ours = &comparison.results[1];
        let about = ours.stp.mean / comparison.results[0].stp.mean;
        assert!((ours.speedup.mean / about - 1.0).abs() < 0.01);
    }

    /// The ratio of makespans by hand, run by run.
    #[test]
    fn whole_programs_are_compared_by_last_end() {
        let mut workload = pair(["mcf", "sphinx3"]);
        for (entry, length) in workload.entries.iter_mut().zip([1.0, 4.0]) {
            let mut program = (*entry.program).clone();
            program.phases.truncate(1);
            program.phases[0].length_ginstr = length;
            entry.program = Arc::new(program);
        }
        let experiment = Experiment {
            until: RunUntil::AllFinished,
            ..Experiment::new(&chip("bulldozer-6282se"), workload, 1.0)
        };
        let contenders = ["linux", "aggregate"].map(|p| Contender::new(p, "linux").unwrap());
        let context = ExperimentContext::new(5, Scale::Quick, workers(1), &|_| ());
        let compared = compare_runs(&experiment, &contenders, 0, 2, &context).unwrap();
        let ends: Vec<f64> = compared.runs.iter().map(|run| run.makespan_s).collect();
        let by_hand = ((ends[0] / ends[2]) * (ends[1] / ends[3])).sqrt();
        let found = compared.comparison.results[1].speedup.mean;
        assert!((found - by_hand).abs() < 1e-12, "{found} {by_hand}");
    }

    /// The oracle's share is computed by hand from its own row.
    #[test]
    fn share_of_attainable_gain_refers_to_oracle() {
        let mut workload = pair(["mcf", "povray"]);
        workload.entries.extend(pair(["mcf", "povray"]).entries);
        let mut experiment = Experiment::new(&chip("power8:smt=2"), workload, 1.0);
        let context = ExperimentContext::new(5, Scale::Quick, workers(1), &|_| ());
        let compare = |experiment: &Experiment, policies: &[&str]| {
            let contenders: Vec<Contender> = { policies.iter() }
                .map(|p| Contender::new(p, "linux").unwrap())
                .collect();
            compare_runs(experiment, &contenders, 0, 1, &context)
                .unwrap()
                .comparison
        };
        let many_cores = compare(&experiment, &["linux", "none"]);
        assert_eq!(many_cores.results[0].attainable_share, None);
        let reason = many_cores.attainable_reason.unwrap();
        assert!(reason.starts_with("4 threads on 10 cores"), "{reason}");

        experiment.chip = chip("bulldozer-6282se");
        experiment.workload.entries.truncate(2);
        for copy in 0..6 {
            let entry = experiment.workload.entries[copy % 2].clone();
            experiment.workload.entries.push(entry);
        }
        let found = compare(&experiment, &["aggregate", "linux", "oracle"]);
        assert_eq!(found.attainable_reason, None);
        let answer = found.answer.unwrap();
        assert!(
            answer.starts_with("linux compared with aggregate: "),
            "{answer}"
        );
        let gain = found.results[2].speedup.mean - 1.0;
        assert!(gain > 0.0 && found.attainable == Some(found.results[2].speedup));
        let share = |row: usize| found.results[row].attainable_share.unwrap();
        assert_eq!((share(0), share(2)), (0.0, 1.0));
        let linux = (found.results[1].speedup.mean - 1.0) / gain;
        assert_eq!(share(1), linux);
    }

    #[test]
    fn policy_without_a_second_decision_is_warned_of() {
        let experiment = Experiment::new(&chip("bulldozer-6282se"), pair(["mcf", "povray"]), 0.2);
        let contenders = ["linux", "workover"].map(|p| Contender::new(p, "linux").unwrap());
        let context = ExperimentContext::new(5, Scale::Quick, workers(1), &|_| ());
        let compared = compare_runs(&experiment, &contenders, 0, 2, &context).unwrap();
        let [warning] = &compared.comparison.warnings[..] else {
            panic!("{:?}", compared.comparison.warnings)
        };
        assert!(
            warning.starts_with("workover decided once: its quantum is 1 s, and"),
            "{warning}"
        );
    }

    #[test]
    fn answer_is_about_the_best_other_policy() {
        let rows = |means: [f64; 3], ci95: Option<f64>| -> Vec<ContenderRow> {
            let named = ["linux", "a", "b"].into_iter().zip(means);
            named
                .map(|(policy, mean)| ContenderRow {
                    policy: policy.to_owned(),
                    speedup: MeanEstimate { mean, ci95 },
                    ..comparison(1).results[0].clone()
                })
                .collect()
        };
        let of = |rows: &[ContenderRow], runs| {
            answer(&rows.iter().skip(1).collect::<Vec<_>>(), "linux", runs)
        };
        // t of 9 degrees at 0.975 and 0.9875: 2.262 and 2.685 (R 4.2, qt); 1.0374^(2.685/2.262) is
        // 1.0445.
        let three = rows([1.0, 0.99, 1.07], Some(0.04));
        let expected = "best of 2 policies, b compared with linux: 7.0 % faster ± 4.7 (10 pairs)";
        assert_eq!(of(&three, 10).as_deref(), Some(expected));
        // From 0.99/1.0404 to 1.03: the table has the longer half, the sentence the mean of both.
        let expected = "a compared with linux: no difference found: -1.0 % ± 3.9 (10 pairs)";
        assert_eq!(of(&three[..2], 10).as_deref(), Some(expected));
        let one = rows([1.0, 0.9, 0.9], None);
        let expected = "a compared with linux: -10.0 % (one run, so no interval)";
        assert_eq!(of(&one[..2], 1).as_deref(), Some(expected));
        assert_eq!(of(&one[..1], 1), None);
    }

    #[test]
    fn any_number_of_workers_gives_the_same_rows() {
        assert_eq!(comparison(1), comparison(4));
    }
}
