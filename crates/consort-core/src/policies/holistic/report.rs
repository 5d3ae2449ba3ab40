//! The plan's report: per level the mappings that were considered, their costs by rule, and the
//! reason of the choice.

use super::assignment::Assignment;
use super::candidate::Candidate;
use super::characteristics::{Characteristic, Characteristics};
use super::crowd::{Crowd, Group};
use super::hold::Hold;
use super::levels::{How, Level};
use super::rules::blind;
use super::stage::{Settled, Stage};
use super::trials::Outcome;
use crate::plan::{Decision, Fact, Placement, Reason};
use crate::sample::ThreadObservation;
use std::collections::BTreeSet;

/// Cycles in a million.
const MILLION: f64 = 1e6;

/// Leaves a thread that does not take part unrestricted, with the reason.
pub(super) fn leave(thread: &ThreadObservation, why: &str, decision: &mut Decision) {
    let reason = Reason {
        considered: "threads that want to run, program by program".to_owned(),
        chosen: format!("left to the OS: {why}"),
        facts: Vec::new(),
    };
    decision.place(thread.id, Placement::Unrestricted, reason);
}

/// Notes on all levels, conflicts, and the rules that are blind.
pub(super) fn levels(levels: &[Level], known: &[Characteristics]) -> Vec<String> {
    let mut said: Vec<String> = levels.iter().map(level).collect();
    said.extend(levels.iter().filter_map(conflict));
    said.extend(prices(levels));
    let blind = blind(known);
    if !blind.is_empty() {
        said.push(format!(
            "not priced, since nothing tells what they need: {}",
            blind.join(", ")
        ));
    }
    said
}

/// Bases of the prices, of the rules whose price is above 0.
fn prices(levels: &[Level]) -> Option<String> {
    let weighed = levels.iter().flat_map(|level| &level.weighed);
    let said = weighed.flat_map(|w| w.bill.items());
    let said = said.filter(|(_, price)| *price > 0.0);
    let bases: BTreeSet<String> = said
        .map(|(rule, _)| format!("{}: {}", rule.name, rule.basis))
        .collect();
    let bases: Vec<String> = bases.into_iter().collect();
    (!bases.is_empty()).then(|| format!("prices: {}", bases.join("; ")))
}

fn level(level: &Level) -> String {
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
        How::Predicted => "the cheapest".to_owned(),
        How::Priority(resource) => format!("best for the {resource}, which comes first"),
        How::Undecided => "nothing that is known tells them apart".to_owned(),
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
fn conflict(level: &Level) -> Option<String> {
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
        How::Priority(resource) => format!("the {resource} comes first"),
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
pub(super) fn stage(stage: &Stage) -> String {
    match stage {
        Stage::Looking(_) => "os: the programs are watched before anything is chosen".to_owned(),
        Stage::Trying(trials) => {
            let (round, most) = trials.round();
            format!(
                "{}: on trial, round {round} of at most {most}",
                trials.candidate()
            )
        }
        Stage::Settled(settled) => chosen(settled),
    }
}

fn chosen(settled: &Settled) -> String {
    match &settled.outcome {
        None => format!(
            "{}: predicted; nothing counts instructions here, so that nothing can be tried",
            settled.candidate
        ),
        Some(outcome) => measured(outcome),
    }
}

fn measured(outcome: &Outcome) -> String {
    let gain = |(candidate, gain): &(Candidate, Option<crate::stats::Interval>)| {
        let gain = gain.as_ref()?;
        let width = 100.0 * gain.ci95.unwrap_or(0.0);
        Some(format!(
            "{candidate} {:+.1} ± {width:.1}",
            100.0 * gain.mean
        ))
    };
    let gains: Vec<String> = outcome.results.iter().filter_map(gain).collect();
    let why = if outcome.chosen == Candidate::Os {
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
pub(super) fn place(
    crowd: &Crowd<'_>,
    candidate: Candidate,
    known: &[Characteristics],
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
    group: &Group<'_>,
    candidate: Candidate,
    hold: Option<Hold>,
    known: Option<&Characteristics>,
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
            Some(hold) => format!("{candidate}: {}", hold.sentence()),
            None => "left to the OS".to_owned(),
        },
        facts: Characteristic::ALL.into_iter().filter_map(fact).collect(),
    }
}
