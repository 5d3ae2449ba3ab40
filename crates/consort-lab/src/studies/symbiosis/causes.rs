//! Changes of cycles from policy to policy, over all programs of all runs.

use crate::frame::Frame;
use crate::study::Frames;
use consort_core::stats::mean;
use consort_sim::contention::CpiStack;

/// Causes that are named for a change.
const NAMED: usize = 3;
/// The cause of cycles in which a thread was on a PU without progress.
const MOVES: &str = "moves";
/// Changes of policy, from the first to the second.
const CHANGES: [[&str; 2]; 4] = [
    ["random", "linux"],
    ["random", "symbiotic"],
    ["linux", "symbiotic"],
    ["symbiotic", "oracle"],
];

/// Notes on how cycles per instruction change from one policy to another in the experiment
/// `near`, over all workloads.
pub(in crate::studies) fn changes(frames: &Frames) -> Vec<String> {
    let frame = frames.get("near");
    let notes = CHANGES.iter().filter_map(|both| change(frame?, *both));
    notes.collect()
}

fn change(frame: &Frame, both: [&str; 2]) -> Option<String> {
    let of = |measure: &str| {
        let [from, to] = both.map(|policy| over(frame, policy, measure));
        Some((from?, to?))
    };
    let ((before, after), moved, away) = (of("cpi")?, of("migrations_hz")?, of("away_percent")?);
    let names = CpiStack::NAMES.into_iter().chain([MOVES]);
    let changes = names.map(|name| {
        let (before, after) = of(&format!("cpi_{name}"))?;
        Some((name, after - before))
    });
    let mut changes: Vec<(&str, f64)> = changes.collect::<Option<_>>()?;
    changes.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()));
    let named = changes.iter().take(NAMED);
    let named: Vec<String> = named
        .map(|(cause, change)| format!("{cause} {change:+.3}"))
        .collect();
    Some(format!(
        "From {} to {} the cycles per instruction of all programs together go from {before:.3} to \
         {after:.3}, by cause mostly {}; a thread comes onto another PU {:.2} and {:.2} times a second and \
         is away from the node of its memory for {:.0} and {:.0} % of its time.",
        both[0],
        both[1],
        named.join(", "),
        moved.0,
        moved.1,
        away.0,
        away.1,
    ))
}

/// Mean over all runs of all cases.
fn over(frame: &Frame, policy: &str, measure: &str) -> Option<f64> {
    let policy = frame.policy_index(policy)?;
    let cases = 0..frame.cases.len();
    let all = cases.flat_map(|case| frame.run_values(case, policy, measure).to_vec());
    mean(&all.collect::<Vec<_>>())
}
