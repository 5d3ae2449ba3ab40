//! X1: the umbrella policy against each source's own policy on each source's own ground.
//!
//! Keys. Table `best`: a row per ground; `best` is the single-purpose policy that did best by the
//! ground's aim, `over_best` and `over_system` the umbrella's value over that policy's and over the
//! system scheduler's. Table `policies`: rows `GROUND/POLICY`.
//!
//! Pitfall: the same runs decide which policy is best, which favours it, the more the more policies
//! there are and the less they differ.

use super::load::{ProgramLoad, workload};
use super::output::OutputBuilder;
use crate::frame::{CellQuery, Frame, IntervalBasis};
use crate::simulate::case::PreparedCase;
use crate::simulate::{self, DescriptionSource as _, Presets, part_error};
use crate::study::file::StudyFile;
use crate::study::{StudyError, StudyOutput};
use consort_data::Cell;
use consort_experiment::ExperimentContext;
use consort_experiment::slots::cut_into_frames;
use consort_sim::program::presets;
use serde::Deserialize;

/// A machine, a workload, and the policies that were proposed for such.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct UmbrellaCase {
    /// Key of its rows.
    key: String,
    /// Description in a few words.
    title: String,
    /// The machine, for example `power7:smt=2`.
    machine: String,
    load: Vec<ProgramLoad>,
    /// True if serial sections come in frames: see [`cut_into_frames`].
    framed: bool,
    /// The system's own scheduler first, then the policies.
    policies: Vec<String>,
    aim: SourceAim,
    /// Time of a program's work alone, s, at the quick and the full scale.
    alone_s: [f64; 2],
    /// Runs of each policy, at the quick and the full scale; without runs it is left out.
    runs: [usize; 2],
}

/// Aim of a ground's source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum SourceAim {
    /// System throughput.
    Throughput,
    /// Time until all programs are done.
    Makespan,
}

impl SourceAim {
    /// The umbrella policy with the option for this aim.
    fn umbrella(self) -> &'static str {
        match self {
            Self::Throughput => "holistic",
            Self::Makespan => "holistic:objective=fairness",
        }
    }

    /// Name of the aim, and the measure that is larger if a run is better.
    fn measure(self) -> (&'static str, &'static str) {
        match self {
            Self::Throughput => ("throughput", "stp"),
            Self::Makespan => ("speed until all are done", "speed_hz"),
        }
    }
}

/// The grounds, in the order of rows. To add one takes an entry in the file.
///
/// # Errors
/// A file that is none; the tests rule that out.
fn grounds() -> Result<Vec<UmbrellaCase>, StudyError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct UmbrellaCaseFile {
        ground: Vec<UmbrellaCase>,
    }
    let text = include_str!("../../studies/grounds/umbrella.toml");
    let file: UmbrellaCaseFile = toml::from_str(text).map_err(part_error("grounds"))?;
    Ok(file.ground)
}

impl UmbrellaCase {
    fn prepare(&self, context: &ExperimentContext<'_>) -> Result<PreparedCase, StudyError> {
        let chip = { Presets.load_chip(&self.machine) }.map_err(part_error(&self.key))?;
        let workload = workload(&self.load, |name| {
            let whole = presets::find(name).map_err(part_error(&self.key))?;
            Ok(if self.framed {
                cut_into_frames(&whole)
            } else {
                whole
            })
        })?;
        let alone_s = context.by_scale(self.alone_s[0], self.alone_s[1]);
        PreparedCase::from_key(&self.key, &chip, workload, alone_s, context.seed())
    }

    fn run(
        self,
        runs: usize,
        context: &ExperimentContext<'_>,
    ) -> Result<UmbrellaResult, StudyError> {
        let mut policies = self.policies.clone();
        policies.push(self.aim.umbrella().to_owned());
        let frame = simulate::run_cases(context, &[self.prepare(context)?], &policies, runs)?;
        Ok(UmbrellaResult {
            ground: self,
            frame,
        })
    }
}

/// A ground with its runs; the umbrella policy is the last.
struct UmbrellaResult {
    ground: UmbrellaCase,
    frame: Frame,
}

impl UmbrellaResult {
    /// A measure of a policy, or that over another policy's.
    fn cell(&self, policy: usize, over: Option<usize>, measure: &str) -> Cell {
        let what = CellQuery {
            measure,
            policy: self.policy(policy),
            over: over.map(|over| self.policy(over)),
            ..CellQuery::default()
        };
        let all = self.frame.group_all("", IntervalBasis::Cases, |_| true);
        self.frame.cell(&what, &all)
    }

    /// The ground's aim under a policy over that under another.
    fn aim_over(&self, policy: usize, over: usize) -> Cell {
        self.cell(policy, Some(over), self.ground.aim.measure().1)
    }

    /// Position of the umbrella policy.
    fn umbrella(&self) -> usize {
        self.frame.policies.len() - 1
    }

    /// Name of a policy.
    fn policy(&self, policy: usize) -> &str {
        &self.frame.policies[policy]
    }

    /// Position of the single-purpose policy with the largest mean; the system's own scheduler is
    /// none.
    fn best(&self) -> usize {
        let mean = |&policy: &usize| {
            let cell = self.cell(policy, None, self.ground.aim.measure().1);
            cell.value().unwrap_or(f64::NEG_INFINITY)
        };
        // The first policy is the system's scheduler, the last the umbrella.
        let own = 1..self.umbrella();
        own.max_by(|a, b| mean(a).total_cmp(&mean(b))).unwrap_or(0)
    }

    /// 1 if the umbrella is better than the best beyond the interval, −1 if it is worse.
    fn sign(&self) -> i32 {
        let cell = self.aim_over(self.umbrella(), self.best());
        let (ratio, half) = (cell.value().unwrap_or(1.0), cell.ci95().unwrap_or(0.0));
        if (ratio - 1.0).abs() <= half {
            0
        } else if ratio > 1.0 {
            1
        } else {
            -1
        }
    }
}

/// Runs every ground.
pub(super) fn run(
    context: &ExperimentContext<'_>,
    file: &StudyFile,
) -> Result<StudyOutput, StudyError> {
    let mut results = Vec::new();
    for ground in grounds()? {
        let runs = context.by_scale(ground.runs[0], ground.runs[1]);
        if runs > 0 {
            results.push(ground.run(runs, context)?);
        }
    }
    let runs = results.iter().map(|one| one.frame.runs).max().unwrap_or(0);
    let mut output = OutputBuilder::new(file, runs)?;
    let signs = |sign| results.iter().filter(|one| one.sign() == sign).count();
    output.note(format!(
        "Of {} grounds holistic is beyond the interval better than the best single-purpose policy \
         on {}, worse on {}, and within it on {}. The same runs choose the best, which favours it.",
        results.len(),
        signs(1),
        signs(-1),
        signs(0)
    ));
    let (mut best_rows, mut policy_rows) = (Vec::new(), Vec::new());
    for one in &results {
        let (umbrella, best, key) = (one.umbrella(), one.best(), &one.ground.key);
        for over in [best, 0] {
            let row = format!("holistic over {}, {}", one.policy(over), one.ground.title);
            output.headline_gain(&row, one.aim_over(umbrella, over))?;
        }
        let verdict = match one.sign() {
            1 => "better",
            0 => "as good within the interval",
            _ => "worse",
        };
        let cells = vec![
            one.policy(best).into(),
            one.aim_over(umbrella, best),
            one.aim_over(umbrella, 0),
            one.aim_over(best, 0),
            verdict.into(),
        ];
        best_rows.push((key, cells));
        for (policy, name) in one.frame.policies.iter().enumerate() {
            let mut cells = vec![one.aim_over(policy, 0)];
            for measure in ["stp", "makespan_s", "unfairness", "antt", "moves_hz"] {
                cells.push(one.cell(policy, None, measure));
            }
            policy_rows.push((format!("{key}/{name}"), cells));
        }
        let means = |measure| [best, umbrella].map(|p| one.cell(p, None, measure).text());
        let [their_moves, our_moves] = means("moves_hz");
        let [theirs, ours] = means("unfairness");
        output.note(format!(
            "{}: {} of holistic over {} {}; unfairness {ours} against {theirs}, moves {our_moves} \
             against {their_moves} per s.",
            one.ground.title,
            one.ground.aim.measure().0,
            one.policy(best),
            one.aim_over(umbrella, best).text(),
        ));
    }
    output.table("best", best_rows)?;
    output.table("policies", policy_rows)?;
    let over_system = |policy: fn(&UmbrellaResult) -> usize| -> Vec<Cell> {
        results
            .iter()
            .map(|one| one.aim_over(policy(one), 0))
            .collect()
    };
    let series = [
        (
            "best single-purpose policy",
            over_system(UmbrellaResult::best),
        ),
        ("holistic", over_system(UmbrellaResult::umbrella)),
    ];
    output.bars("best", results.iter().map(|one| &one.ground.key), series)?;
    Ok(output.finish())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;
    use std::collections::BTreeSet;

    #[test]
    fn every_ground_has_programs_and_known_policies() {
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
            let case = few.prepare(&context).unwrap();
            let threads: usize = ground.load.iter().map(|p| p.0 * p.2 as usize).sum();
            let pus = case.experiment.chip.topology().pus().len();
            assert!(threads >= pus, "{}: {threads} on {pus}", ground.key);
        }
    }

    #[test]
    fn best_policy_is_neither_system_nor_umbrella() {
        let context = ExperimentContext::new(1, Scale::Quick, workers(2), &|_| ());
        let one = grounds().unwrap().remove(0).run(2, &context).unwrap();
        let best = one.best();
        assert!(best > 0 && best < one.umbrella());
        assert_eq!(one.policy(one.umbrella()), one.ground.aim.umbrella());
        assert_eq!(one.aim_over(best, best).value(), Some(1.0));
        assert!(one.aim_over(one.umbrella(), best).ci95().is_some());
    }
}
