//! X1: the umbrella policy against each source's own policy on each source's own ground.
//!
//! Keys. Table `best`: a row per ground; columns `best` (the single-purpose policy that did best by
//! the ground's aim), `over_best`, `over_system` (the umbrella's value over that policy's and over
//! the system's scheduler), `best_over_system`, `verdict`. Table `policies`: rows `GROUND/POLICY`;
//! columns `over_system`, `stp`, `makespan_s`, `unfairness`, `antt`, `moves_hz`. Figure `best`.
//!
//! Pitfall: which policy is best is told by the same runs, which favours it, the more the more
//! policies there are and the less they differ.

mod ground;
mod judged;

use super::load::workload;
use crate::simulate::case::PreparedCase;
use crate::simulate::{self, DescriptionSource as _, Presets, part_error};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::{Cell, Figure, HeadlineTable, ReportTable};
use consort_experiment::ExperimentContext;
use consort_experiment::slots::cut_into_frames;
use consort_sim::program::presets;
use ground::{UmbrellaCase, grounds};
use judged::UmbrellaResult;

/// The policy.
const UMBRELLA: &str = "holistic";

/// Runs every ground.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let runs = |ground: &UmbrellaCase| context.by_scale(ground.runs[0], ground.runs[1]);
    let grounds = grounds()?.into_iter().filter(|ground| runs(ground) > 0);
    let judged = grounds.map(|ground| {
        let runs = runs(&ground);
        judge(ground, runs, context)
    });
    let judged: Vec<UmbrellaResult> = judged.collect::<Result<_, _>>()?;
    let runs = judged.iter().map(|one| one.frame.runs).max().unwrap_or(0);
    Ok(StudyOutput {
        tables: vec![
            headline(&judged)?,
            best(file, &judged)?,
            policies(file, &judged)?,
        ],
        figures: vec![figure(file, &judged, runs)?],
        notes: notes(&judged),
        runs,
    })
}

fn judge(
    ground: UmbrellaCase,
    runs: usize,
    context: &ExperimentContext<'_>,
) -> Result<UmbrellaResult, StudyError> {
    let mut policies = ground.policies.clone();
    policies.push(ground.aim.umbrella().to_owned());
    let frame = simulate::run_cases(context, &[case(&ground, context)?], &policies, runs)?;
    Ok(UmbrellaResult { ground, frame })
}

fn case(
    ground: &UmbrellaCase,
    context: &ExperimentContext<'_>,
) -> Result<PreparedCase, StudyError> {
    let chip = Presets
        .load_chip(&ground.machine)
        .map_err(part_error(&ground.key))?;
    let workload = workload(&ground.load, |name| {
        let whole = presets::find(name).map_err(part_error(&ground.key))?;
        Ok(if ground.framed {
            cut_into_frames(&whole)
        } else {
            whole
        })
    })?;
    let alone_s = context.by_scale(ground.alone_s[0], ground.alone_s[1]);
    PreparedCase::from_key(&ground.key, &chip, workload, alone_s, context.seed())
}

/// Gains of `holistic` on each ground.
fn headline(judged: &[UmbrellaResult]) -> Result<ReportTable, StudyError> {
    let mut headline = HeadlineTable::new()?;
    for one in judged {
        for over in [one.best(), 0] {
            let row = format!("holistic over {}, {}", one.policy(over), one.ground.title);
            headline.add_gain(&row, one.umbrella_over(over))?;
        }
    }
    Ok(headline.into_table())
}

fn best(file: &StudyFile, judged: &[UmbrellaResult]) -> Result<ReportTable, StudyError> {
    let row = |one: &UmbrellaResult| {
        let best = one.best();
        let cells: Vec<Cell> = vec![
            one.policy(best).into(),
            one.umbrella_over(best),
            one.umbrella_over(0),
            one.over_system(best),
            one.verdict().into(),
        ];
        (one.ground.key.clone(), cells)
    };
    file.fill_table("best", judged.iter().map(row))
}

fn policies(file: &StudyFile, judged: &[UmbrellaResult]) -> Result<ReportTable, StudyError> {
    let mut rows = Vec::new();
    for one in judged {
        for policy in 0..one.frame.policies.len() {
            let mean = |measure| one.cell(policy, None, measure);
            let cells = vec![
                one.over_system(policy),
                mean("stp"),
                mean("makespan_s"),
                mean("unfairness"),
                mean("antt"),
                mean("moves_hz"),
            ];
            rows.push((format!("{}/{}", one.ground.key, one.policy(policy)), cells));
        }
    }
    file.fill_table("policies", rows)
}

fn figure(file: &StudyFile, judged: &[UmbrellaResult], runs: usize) -> Result<Figure, StudyError> {
    let series = |name: &str, of: fn(&UmbrellaResult) -> usize| {
        let cells = judged.iter().map(|one| one.over_system(of(one)));
        (name.to_owned(), cells.collect())
    };
    let both = [
        series("best single-purpose policy", UmbrellaResult::best),
        series(UMBRELLA, UmbrellaResult::umbrella),
    ];
    let groups = judged.iter().map(|one| one.ground.key.clone()).collect();
    file.bar_figure("best", runs, groups, both)
}

fn notes(judged: &[UmbrellaResult]) -> Vec<String> {
    let better = |sign| judged.iter().filter(|one| one.sign() == sign).count();
    let all = format!(
        "Of {} grounds holistic is beyond the interval better than the best single-purpose policy \
         on {}, worse on {}, and within it on {}. The best is told by the same runs, which favours \
         it.",
        judged.len(),
        better(1),
        better(-1),
        better(0)
    );
    let each = judged.iter().map(UmbrellaResult::sentence);
    std::iter::once(all).chain(each).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;
    use std::collections::BTreeSet;

    #[test]
    fn every_ground_has_programs_for_its_machine_and_policies_that_are_there() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(1), &|_| ());
        let mut keys = BTreeSet::new();
        for ground in grounds().unwrap() {
            assert!(keys.insert(ground.key.clone()));
            assert!(ground.policies.len() > 1, "{}", ground.key);
            for policy in &ground.policies {
                consort_experiment::Contender::new(policy, "linux").unwrap();
            }
            let few = UmbrellaCase {
                alone_s: [0.01; 2],
                ..ground.clone()
            };
            let case = case(&few, &context).unwrap();
            let threads: usize = ground.load.iter().map(|p| p.0 * p.2 as usize).sum();
            let pus = case.experiment.chip.topology().pus().len();
            assert!(threads >= pus, "{}: {threads} on {pus}", ground.key);
        }
    }

    #[test]
    fn the_best_single_purpose_policy_is_neither_the_system_nor_the_umbrella() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(2), &|_| ());
        let one = judge(grounds().unwrap().remove(0), 2, &context).unwrap();
        let best = one.best();
        assert!(best > 0 && best < one.umbrella());
        assert_eq!(one.policy(one.umbrella()), one.ground.aim.umbrella());
        let same = one.cell(best, Some(best), one.ground.aim.measure());
        assert_eq!(same.value(), Some(1.0));
        assert!(one.umbrella_over(best).ci95().is_some());
    }
}
