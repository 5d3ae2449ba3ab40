//! What came out and by which mechanism, put into words from what was measured.

use super::classes::Class;
use super::once::end_s;
use super::runs::Outcome;
use super::{AGGREGATE, LINUX, Measured, POLICIES, WORKOVER};
use crate::experiment::Counters;
use crate::report::Cell;
use consort_core::stats::{Interval, RatioInterval, mean};
use consort_sim::contention::Stack;
use std::ops::Range;

/// Share of the pipes in use from which operations wait for each other longer than half of their
/// service (M/D/1 on one pipe).
const CROWDED: f64 = 0.5;
/// Causes that are named for a change.
const NAMED: usize = 3;

pub(super) fn notes(once: &[Measured<'_>], equal: &[Measured<'_>]) -> Vec<String> {
    let once = once.iter().map(time);
    once.chain(equal.iter().flat_map(of_case)).collect()
}

/// Each program once: who is done first, and what follows from it.
fn time(m: &Measured<'_>) -> String {
    let others: Vec<String> = { m.policies().filter(|p| *p != WORKOVER) }
        .map(|p| {
            let longer = RatioInterval::paired(&makespans(m, p), &makespans(m, WORKOVER));
            format!(
                "{} needs {} times workover's",
                POLICIES[p].name,
                ratio_text(longer)
            )
        })
        .collect();
    let end = |(name, programs): &(&str, Range<usize>)| {
        let end = mean(&m.over(WORKOVER, |o| end_s(o, programs))).unwrap_or(f64::NAN);
        format!("the last of class '{name}' ends after {end:.0} s")
    };
    let ends: Vec<String> = m.case.classes().iter().map(end).collect();
    format!(
        "{}, each program once: of the time until all have finished {}. Under workover {}.",
        m.case.key,
        others.join(", "),
        ends.join(", "),
    )
}

fn of_case(m: &Measured<'_>) -> Vec<String> {
    let mut notes = vec![throughput(m), pipes(m)];
    for (name, programs) in m.case.classes() {
        let class = |policy| Class {
            measured: m,
            policy,
            programs: programs.clone(),
        };
        notes.extend(cycles(m.case.key, name, &class(worst(m)), &class(WORKOVER)));
    }
    notes
}

/// The policy that crowds FPUs most: like with like, where it is run.
fn worst(m: &Measured<'_>) -> usize {
    if m.policies().contains(&AGGREGATE) {
        AGGREGATE
    } else {
        LINUX
    }
}

fn throughput(m: &Measured<'_>) -> String {
    let against = |over: usize| {
        let stp = |p| m.over(p, |o| o.result.stp);
        let ratio = RatioInterval::paired(&stp(WORKOVER), &stp(over));
        format!("{} times {}'s", ratio_text(ratio), POLICIES[over].name)
    };
    let others = m.policies().filter(|p| *p != WORKOVER);
    format!(
        "{}, equal work: workover's system throughput is {}.",
        m.case.key,
        others.map(against).collect::<Vec<_>>().join(", "),
    )
}

fn makespans(m: &Measured<'_>, policy: usize) -> Vec<f64> {
    m.over(policy, |o| o.result.makespan_s)
}

fn ratio_text(ratio: Option<RatioInterval>) -> String {
    ratio.map_or_else(|| "-".to_owned(), |r| Cell::from(r).text())
}

fn pipes(m: &Measured<'_>) -> String {
    let share = |policy: usize, value: fn(&Outcome) -> f64| {
        mean(&m.over(policy, value)).unwrap_or(f64::NAN)
    };
    let used = |policy: usize| {
        format!(
            "{:.0} % (idlest {:.0} %) under {}",
            100.0 * share(policy, |o| o.fpu.busiest),
            100.0 * share(policy, |o| o.fpu.idlest),
            POLICIES[policy].name,
        )
    };
    let policies: Vec<String> = m.policies().map(used).collect();
    let crowded = share(worst(m), |o| o.fpu.busiest) > CROWDED;
    let name = POLICIES[worst(m)].name;
    let meaning = if crowded {
        format!("under {name} threads compete for more than half of them")
    } else {
        format!(
            "even under {name} the pipes have room, so that spreading FPU-heavy threads frees no \
             unit that they wait for"
        )
    };
    format!(
        "{}, equal work: on the busiest core at each moment the FPU's pipes are in use to {}: \
         {meaning}.",
        m.case.key,
        policies.join(", "),
    )
}

/// How a class's cycles change from one extreme of placement to the other.
fn cycles(key: &str, name: &str, from: &Class<'_>, to: &Class<'_>) -> Option<String> {
    let cpi = |class: &Class<'_>| Some(class.mean(|c| c.cycles / c.instructions)?.mean);
    let changes = changes(from, to)?;
    let named: Vec<String> = changes
        .iter()
        .take(NAMED)
        .map(|(cause, change)| format!("{cause} {change:+.4}"))
        .collect();
    Some(format!(
        "{key}, equal work: from {} to workover the cycles per instruction of class '{name}' go from \
         {:.4} to {:.4}, by cause mostly {}.",
        POLICIES[from.policy].name,
        cpi(from)?,
        cpi(to)?,
        named.join(", "),
    ))
}

/// Changes of cycles per instruction by cause, the largest first.
fn changes(from: &Class<'_>, to: &Class<'_>) -> Option<Vec<(&'static str, f64)>> {
    let before = stack(from)?;
    let after = stack(to)?;
    let change = |(cause, (before, after))| (cause, after - before);
    let pairs = before.into_iter().zip(after);
    let mut changes: Vec<(&str, f64)> = Stack::NAMES.into_iter().zip(pairs).map(change).collect();
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    Some(changes)
}

fn stack(class: &Class<'_>) -> Option<Vec<f64>> {
    let causes = 0..Stack::NAMES.len();
    let mean = |cause: usize| class.mean(|c: &Counters| c.stack()[cause]);
    causes
        .map(|cause| mean(cause).map(|i: Interval| i.mean))
        .collect()
}
