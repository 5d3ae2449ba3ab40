//! `oracle-coschedule`: the best round of all co-schedules, by simulation.
//!
//! Not in the registry of policies, since it can only be had on a simulated machine, and for few
//! programs and cores. Before the run it searches through every slot ([`super::slots`]); then the
//! slots run in turn as those of the policies do. As in the source, programs that scale nearly
//! linearly run alone, and no program is worse off than in the gang; `members=all` has neither rule,
//! which is a bound. The search uses the mean behaviour of programs, so it does not see phases that are
//! longer than a quantum.

use super::error::ExperimentError;
use super::slots::{SearchGoal, SlotMembers, Suite, TrialLengths, best_rounds};
use crate::ExperimentContext;
use consort_core::coscheduling::{CoscheduleSlot, RoundObjective};
use consort_core::policy::PolicyError;
use consort_sim::chip::Chip;
use consort_sim::workload::Workload;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The contender's name.
pub(super) const NAME: &str = "oracle-coschedule";
/// Its quantum, that of the policies, ms.
pub(super) const QUANTUM_MS: u64 = 2000;

/// Simulated time of slots in the search.
const QUANTUM: TrialLengths = TrialLengths {
    warm_s: 0.3,
    length_s: 2.0,
};

/// The search that the options ask for.
pub(super) fn parse_goal(options: &BTreeMap<String, String>) -> Result<SearchGoal, PolicyError> {
    let mut goal = SearchGoal::default();
    for (key, value) in options {
        let bad = |key, expected| PolicyError::BadValue {
            policy: NAME,
            key,
            value: value.clone(),
            expected,
        };
        match key.as_str() {
            "objective" => {
                let named = RoundObjective::from_name(value);
                goal.objective = named.ok_or_else(|| bad("objective", RoundObjective::NAMES))?;
            }
            "members" => {
                let named = SlotMembers::from_name(value);
                goal.members = named.ok_or_else(|| bad("members", SlotMembers::NAMES))?;
            }
            _ => {
                return Err(PolicyError::UnknownOption {
                    policy: NAME,
                    key: key.clone(),
                    known: "objective, members".to_owned(),
                });
            }
        }
    }
    Ok(goal)
}

/// The slots of the best round, programs numbered in the order of the workload.
pub(super) fn search_slots(
    chip: &Arc<Chip>,
    workload: &Workload,
    goal: SearchGoal,
    context: &ExperimentContext<'_>,
) -> Result<Vec<CoscheduleSlot>, ExperimentError> {
    let suite = Suite::new(chip, workload);
    let found = best_rounds(&suite, &[goal], &[], QUANTUM, context)?;
    let slots = found.into_iter().map(|best| best.round.slots);
    Ok(slots.flatten().collect())
}

#[cfg(test)]
mod tests {
    use super::super::contender::Contender;
    use super::super::run::Experiment;
    use super::*;
    use crate::Scale;
    use crate::testing::workers;
    use crate::testing::{chip, pair};

    #[test]
    fn options_other_than_its_objectives_are_refused() {
        let error = |text| Contender::new(text, "linux").err().unwrap().to_string();
        let text = error("oracle-coschedule:objective=speed");
        assert!(
            text.ends_with("expected energy-delay, throughput or speedup"),
            "{text}"
        );
        assert!(error("oracle-coschedule:members=none").ends_with("expected gaining or all"));
        assert!(error("oracle-coschedule:quantum=1").contains("objective"));
    }

    /// Two programs of eight threads that leave much of the machine idle when they are alone.
    #[test]
    fn best_round_is_faster_than_the_gang() {
        let mut workload = pair(["streamcluster", "bodytrack"]);
        for entry in &mut workload.entries {
            entry.threads = 8;
            entry.program = Arc::new(super::super::slots::cut_into_frames(&entry.program));
        }
        let experiment = Experiment::new(&chip("xeon-e5320"), workload, 8.0);
        let work = experiment.measure_work(1).unwrap();
        let context = ExperimentContext::new(1, Scale::Quick, workers(2), &|_| ());
        let run = |name| {
            let contender = Contender::new(name, "linux").unwrap();
            let contender = contender
                .prepare(&experiment.chip, &experiment.workload, &context)
                .unwrap();
            experiment.run(&contender, &work, 1, None).unwrap()
        };
        let (gang, best) = (run("gang"), run("oracle-coschedule:objective=throughput"));
        assert!(best.stp > 1.1 * gang.stp, "{} {}", best.stp, gang.stp);
    }
}
