//! The plan's report: per level the mappings that were considered, their costs by rule, and the
//! reason of the choice.

use super::active_programs::{ActiveProgram, ActivePrograms};
use super::assignment::Assignment;
use super::candidate::MappingCandidate;
use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::levels::{ChoiceBasis, ChoiceLevel};
use super::pinning_scope::PinningScope;
use super::rules::unpriced_rules;
use super::stage::{GuidelineStage, SettledMapping};
use super::trials::TrialOutcome;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::sample::ThreadObservation;
use std::collections::BTreeSet;

/// Cycles in a million.
const MILLION: f64 = 1e6;

/// Leaves a thread that does not take part unrestricted, with the reason.
pub(super) fn leave_to_os(thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: "threads that want to run, program by program".to_owned(),
        chosen: format!("left to the OS: {why}"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

/// Notes on all levels, conflicts, and the rules that are blind.
pub(super) fn describe_levels(
    levels: &[ChoiceLevel],
    known: &[ProgramCharacteristics],
) -> Vec<String> {
    let mut said: Vec<String> = levels.iter().map(describe_level).collect();
    said.extend(levels.iter().filter_map(describe_conflict));
    said.extend(describe_prices(levels));
    let blind = unpriced_rules(known);
    if !blind.is_empty() {
        said.push(format!(
            "not priced, since nothing tells what they need: {}",
            blind.join(", ")
        ));
    }
    said
}

/// Bases of the prices, of the rules whose price is above 0.
fn describe_prices(levels: &[ChoiceLevel]) -> Option<String> {
    let weighed = levels.iter().flat_map(|level| &level.weighed);
    let said = weighed.flat_map(|w| w.bill.items());
    let said = said.filter(|(_, price)| *price > 0.0);
    let bases: BTreeSet<String> = said
        .map(|(rule, _)| format!("{}: {}", rule.name, rule.basis))
        .collect();
    let bases: Vec<String> = bases.into_iter().collect();
    (!bases.is_empty()).then(|| format!("prices: {}", bases.join("; ")))
}

fn describe_level(level: &ChoiceLevel) -> String {
    let costs: Vec<String> = { level.weighed.iter() }
        .map(|w| {
            let items = w.bill.items().filter(|(_, price)| *price > 0.0);
            let items: Vec<String> = items
                .map(|(rule, price)| format!("{} {:.1}", rule.name, price / MILLION))
                .collect();
            let by = if items.is_empty() {
                String::new()
            } else {
                format!(" ({})", items.join(", "))
            };
            format!("{} {:.1}{by}", w.candidate, w.bill.total() / MILLION)
        })
        .collect();
    let how = match &level.how {
        ChoiceBasis::Predicted => "the cheapest".to_owned(),
        ChoiceBasis::Priority(resource) => format!("best for the {resource}, which comes first"),
        ChoiceBasis::Undecided => "nothing that is known tells them apart".to_owned(),
    };
    format!(
        "{}: {} million cycles per s: {}, {how}",
        level.name,
        costs.join("; "),
        level.best().candidate
    )
}

/// The rules that would have chosen otherwise at a level, and the ground on which they were
/// overruled.
fn describe_conflict(level: &ChoiceLevel) -> Option<String> {
    let chosen = level.best();
    let mut overruled = Vec::new();
    for (rule, price) in chosen.bill.items() {
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
    let resolved = match level.how {
        ChoiceBasis::Priority(resource) => format!("the {resource} comes first"),
        _ => "the sum of all prices decides".to_owned(),
    };
    (!overruled.is_empty()).then(|| {
        format!(
            "conflict at the {}: {}; {resolved}",
            level.name,
            overruled.join(", ")
        )
    })
}

/// Stage of the work on the load, in words.
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
        GuidelineStage::Settled(settled) => describe_settled(settled),
    }
}

fn describe_settled(settled: &SettledMapping) -> String {
    match &settled.outcome {
        None => format!(
            "{}: predicted; nothing counts instructions here, so that nothing can be tried",
            settled.candidate
        ),
        Some(outcome) => describe_outcome(outcome),
    }
}

fn describe_outcome(outcome: &TrialOutcome) -> String {
    let gain =
        |(candidate, gain): &(MappingCandidate, Option<crate::stats::ConfidenceInterval>)| {
            let gain = gain.as_ref()?;
            let width = 100.0 * gain.ci95.unwrap_or(0.0);
            Some(format!(
                "{candidate} {:+.1} ± {width:.1}",
                100.0 * gain.mean
            ))
        };
    let gains: Vec<String> = outcome.results.iter().filter_map(gain).collect();
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
        let hold = assignment.holds.get(at).copied();
        let reason = reason(group, candidate, hold, known.get(at));
        for thread in &group.members {
            let placement = assignment.placements.get(&thread.id);
            let placement = placement.cloned().unwrap_or(Placement::Unrestricted);
            decision.place(thread.id, placement, reason.clone());
        }
    }
}

fn reason(
    group: &ActiveProgram<'_>,
    candidate: MappingCandidate,
    hold: Option<PinningScope>,
    known: Option<&ProgramCharacteristics>,
) -> Reason {
    let fact = |what: Characteristic| {
        let value = known?.get(what)?;
        Some(Fact {
            name: what.name().into(),
            value,
            unit: "".into(),
        })
    };
    Reason {
        considered: format!("{} with {} threads", group.name, group.members.len()),
        chosen: match hold {
            Some(hold) => format!("{candidate}: {}", hold.describe()),
            None => "left to the OS".to_owned(),
        },
        facts: Characteristic::ALL.into_iter().filter_map(fact).collect(),
    }
}
