//! Random stimuli for a unit and its policy.

use crate::compare::{ComparisonSummary, LockstepPair};
use crate::error::RtlError;
use crate::model::RtlModel;
use crate::stimuli::Stimuli;
use crate::unit_parameters::{UnitParameters, UnitPolicy};

/// Drives a unit and its policy for so many quanta.
///
/// # Errors
/// [`RtlError::Differs`] at the first exchange that is not the same, and when tcs does not decide in
/// time.
pub fn run_random_quanta(
    setting: &UnitParameters,
    model: &mut RtlModel,
    quanta: u64,
    seed: u64,
) -> Result<ComparisonSummary, RtlError> {
    let mut pair = LockstepPair::new(setting, model)?;
    let mut stimuli = Stimuli::new(setting, seed);
    while pair.summary.quanta < quanta {
        let standing: Vec<bool> = pair.standing.iter().map(Option::is_some).collect();
        let inputs = stimuli.next_cycle(&pair.reference, &standing);
        if setting.policy != UnitPolicy::Tcs {
            pair.run_ahead(inputs)?;
            continue;
        }
        let outputs = pair.step(&inputs)?;
        stimuli.note_outputs(&outputs);
        if stimuli.is_between_quanta() && stimuli.draw_bool(0.9) {
            wait_for_decisions(setting, &mut pair, &mut stimuli)?;
        }
    }
    pair.catch_up()?;
    Ok(pair.summary)
}

/// Most cycles from the end of a quantum to a decision of tcs: slots that are still full from
/// before and those of the quantum, 49 cycles each, then a scan, which may have to begin once more.
fn most_cycles(setting: &UnitParameters) -> u32 {
    let members = setting.members() as u32;
    2 * (49 * members + 1) + 2 * (members + 3)
}

/// Lets tcs decide: nothing happens until all groups have.
fn wait_for_decisions(
    setting: &UnitParameters,
    pair: &mut LockstepPair<'_>,
    stimuli: &mut Stimuli,
) -> Result<(), RtlError> {
    let most = most_cycles(setting);
    let mut decided = vec![false; setting.groups];
    let begin = pair.summary.cycles;
    let quiet = pair.standing.iter().all(Option::is_none);
    while decided.contains(&false) {
        let standing: Vec<bool> = pair.standing.iter().map(Option::is_some).collect();
        let waited = (pair.summary.cycles - begin) as u32;
        let left = most.saturating_sub(waited);
        if left == 0 {
            return Err(pair.difference_error(format!(
                "no decision within {most} cycles of the end of a quantum"
            )));
        }
        let inputs = stimuli.quiet_cycle(&pair.reference, &standing, left);
        let outputs = pair.step(&inputs)?;
        stimuli.note_outputs(&outputs);
        for (group, now) in outputs.decided.iter().enumerate() {
            decided[group] |= now;
        }
    }
    if quiet {
        let took = pair.summary.cycles - begin;
        pair.summary.longest_decision = pair.summary.longest_decision.max(took);
    }
    Ok(())
}
