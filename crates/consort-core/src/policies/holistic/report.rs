//! The plan's report: per level the mappings that were considered, their costs by rule, and the
//! reason of the choice.

use super::active_programs::ActivePrograms;
use super::assignment::Assignment;
use super::candidate::MappingCandidate;
use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::levels::{ChoiceBasis, ChoiceLevel};
use super::load_stage::GuidelineStage;
use super::rules::unpriced_rules;
use super::trials::TrialOutcome;
use crate::plan::{Alternative, Decision, Fact, Placement, Reason};
use crate::sample::ThreadObservation;
use std::collections::BTreeSet;

/// Cycles in a million.
const MILLION: f64 = 1e6;

/// Leaves a thread that does not take part unrestricted, with the reason.
pub(super) fn leave_to_os(thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: "threads that want to run, program by program".to_owned(),
        chosen: format!("not placed: {why}"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

/// Notes on all levels, conflicts, the bases of prices above 0, and the rules without a price.
pub(super) fn describe_levels(
    levels: &[ChoiceLevel],
    known: &[ProgramCharacteristics],
) -> Vec<String> {
    let mut said: Vec<String> = levels.iter().map(describe_level).collect();
    said.extend(levels.iter().filter_map(describe_conflict));
    let mut bases: BTreeSet<String> = BTreeSet::new();
    for mapping in levels.iter().flat_map(|level| &level.weighed) {
        let priced = mapping.bill.items().filter(|(_, price)| *price > 0.0);
        bases.extend(priced.map(|(rule, _)| format!("{}: {}", rule.name, rule.basis)));
    }
    if !bases.is_empty() {
        let bases: Vec<String> = bases.into_iter().collect();
        said.push(format!("prices: {}", bases.join("; ")));
    }
    let unpriced = unpriced_rules(known);
    if !unpriced.is_empty() {
        said.push(format!(
            "not priced, because their needs are not known: {}",
            unpriced.join(", ")
        ));
    }
    said
}

/// The mappings of all levels with their predicted costs.
pub(super) fn compared_mappings(levels: &[ChoiceLevel]) -> Vec<Alternative> {
    let mut compared = Vec::new();
    for level in levels {
        for (at, mapping) in level.weighed.iter().enumerate() {
            compared.push(Alternative {
                place: format!("{}: {}", level.name, mapping.candidate),
                cost: mapping.bill.total() / MILLION,
                measure: "million cycles per s".into(),
                is_chosen: at == level.chosen,
            });
        }
    }
    compared
}

fn describe_level(level: &ChoiceLevel) -> String {
    let mut costs = Vec::new();
    for mapping in &level.weighed {
        let items = mapping.bill.items().filter(|(_, price)| *price > 0.0);
        let items: Vec<String> = items
            .map(|(rule, price)| format!("{} {:.1}", rule.name, price / MILLION))
            .collect();
        let by = if items.is_empty() {
            String::new()
        } else {
            format!(" ({})", items.join(", "))
        };
        let total = mapping.bill.total() / MILLION;
        costs.push(format!("{} {total:.1}{by}", mapping.candidate));
    }
    let how = match &level.how {
        ChoiceBasis::Predicted => "the cheapest".to_owned(),
        ChoiceBasis::Priority(resource) => format!("best for the {resource}, which comes first"),
        ChoiceBasis::Undecided => "nothing that is known distinguishes them".to_owned(),
    };
    format!(
        "{}: {} million cycles per s: {}, {how}",
        level.name,
        costs.join("; "),
        level.best().candidate
    )
}

/// The rules that would have chosen otherwise at a level, and why they were overruled.
fn describe_conflict(level: &ChoiceLevel) -> Option<String> {
    let mut overruled = Vec::new();
    for (rule, price) in level.best().bill.items() {
        let other = level.weighed.iter().filter_map(|w| {
            let (_, theirs) = w.bill.items().find(|(r, _)| r.name == rule.name)?;
            (theirs < price).then_some((w.candidate, price - theirs))
        });
        if let Some((candidate, saved)) = other.max_by(|a, b| a.1.total_cmp(&b.1)) {
            let saved = saved / MILLION;
            overruled.push(format!(
                "{} prefers {candidate}, by {saved:.1} ({})",
                rule.name, rule.sentence
            ));
        }
    }
    if overruled.is_empty() {
        return None;
    }
    let resolved = match level.how {
        ChoiceBasis::Priority(resource) => format!("the {resource} comes first"),
        _ => "the sum of all prices decides".to_owned(),
    };
    Some(format!(
        "conflict at the {}: {}; {resolved}",
        level.name,
        overruled.join(", ")
    ))
}

pub(super) fn describe_stage(stage: &GuidelineStage) -> String {
    match stage {
        GuidelineStage::Looking(_) => {
            "os: the programs are watched before anything is chosen".to_owned()
        }
        GuidelineStage::Trying(trials) => {
            let (round, most) = trials.round();
            format!(
                "{}: on trial, round {round} of at most {most}",
                trials.candidate()
            )
        }
        GuidelineStage::Settled(settled) => match &settled.outcome {
            None => format!(
                "{}: predicted; nothing counts instructions here, so that nothing can be tried",
                settled.candidate
            ),
            Some(outcome) => describe_outcome(outcome),
        },
    }
}

fn describe_outcome(outcome: &TrialOutcome) -> String {
    let mut gains = Vec::new();
    for (candidate, gain) in &outcome.results {
        if let Some(gain) = gain {
            let (mean, width) = (100.0 * gain.mean, 100.0 * gain.ci95.unwrap_or(0.0));
            gains.push(format!("{candidate} {mean:+.1} ± {width:.1}"));
        }
    }
    let why = if outcome.chosen == MappingCandidate::Os {
        "nothing surely beats it"
    } else {
        "the most that is sure"
    };
    format!(
        "{}: {why}; gain over os in percent after {} rounds: {}",
        outcome.chosen,
        outcome.rounds,
        gains.join(", ")
    )
}

/// Places every thread that takes part.
pub(super) fn place_threads(
    crowd: &ActivePrograms<'_>,
    candidate: MappingCandidate,
    known: &[ProgramCharacteristics],
    assignment: &Assignment,
    decision: &mut Decision,
) {
    for (at, group) in crowd.groups.iter().enumerate() {
        let facts = Characteristic::ALL.into_iter().filter_map(|what| {
            Some(Fact {
                name: what.name().into(),
                value: known.get(at)?.get(what)?,
                unit: "".into(),
            })
        });
        let reason = Reason {
            considered: format!("{} with {} threads", group.name, group.members.len()),
            chosen: match assignment.holds.get(at) {
                Some(hold) => format!("{candidate}: {}", hold.describe()),
                None => "not placed".to_owned(),
            },
            facts: facts.collect(),
        };
        for thread in &group.members {
            let placement = assignment.placements.get(&thread.id);
            let placement = placement.cloned().unwrap_or(Placement::Unrestricted);
            decision.place(thread.id, placement, reason.clone());
        }
    }
}
