//! Notes on the conclusions that survive and those that do not.

use super::tested::{ConclusionTrials, ConclusionVerdict, JointResult, ParameterSwing};
use super::variation::ENDS;

/// Parameters that are named in a note.
const NAMED: usize = 5;

/// A note per conclusion.
pub(super) fn notes(all: &[ConclusionTrials<'_>]) -> Vec<String> {
    all.iter().map(note).collect()
}

fn note(tested: &ConclusionTrials<'_>) -> String {
    let plain = tested.plain();
    let is = match plain.verdict() {
        ConclusionVerdict::Holds => "holds",
        ConclusionVerdict::Unclear => "is unclear",
        ConclusionVerdict::Fails => "does not hold",
    };
    let ratio = plain.interval().map_or(f64::NAN, |ratio| ratio.mean);
    [
        format!("{}: this {is}, ratio {ratio:.4}.", tested.headline.sentence),
        alone(tested),
        largest(tested),
        together(tested),
    ]
    .join(" ")
}

fn alone(tested: &ConclusionTrials<'_>) -> String {
    let swings = tested.swings();
    let failing: Vec<String> = swings.iter().filter_map(failure).collect();
    let holding = swings.iter().filter(|swing| swing.holds()).count();
    let turned = match failing.len() {
        0 => "no parameter alone turns it round".to_owned(),
        n => format!("it fails with {n} of them: {}", first(&failing)),
    };
    let count = swings.len();
    format!(
        "Of {count} parameters alone, {holding} leave it standing beyond noise at both ends; {turned}."
    )
}

/// Names a parameter and the ends of its range at which it alone makes the conclusion fail.
fn failure(swing: &ParameterSwing<'_>) -> Option<String> {
    let fails = |end: &usize| swing.ends[*end].verdict() == ConclusionVerdict::Fails;
    let at: Vec<String> = [0, 1]
        .iter()
        .filter(|end| fails(end))
        .map(|&end| end_text(swing, end))
        .collect();
    (!at.is_empty()).then(|| format!("{} {}", swing.parameter.name(), at.join(" and ")))
}

fn end_text(swing: &ParameterSwing<'_>, end: usize) -> String {
    format!("times {} ({:.4})", ENDS[end], swing.ends[end].ratio())
}

fn largest(tested: &ConclusionTrials<'_>) -> String {
    let name =
        |swing: &ParameterSwing<'_>| format!("{} ({:.4})", swing.parameter.name(), swing.size());
    let names: Vec<String> = tested.swings().iter().take(NAMED).map(name).collect();
    format!("Largest swings: {}.", names.join(", "))
}

fn together(tested: &ConclusionTrials<'_>) -> String {
    let joint = JointResult::from_samples(tested.samples());
    let [low, high] = joint.percent_95;
    let [p5, median, p95] = joint.quantiles;
    format!(
        "With all varied at once it holds in {} of {} samples (95 percent interval {low:.0} to \
         {high:.0} percent); the ratio is {median:.4} in the median, {p5:.4} to {p95:.4} in nine \
         tenths of them.",
        joint.hold, joint.samples,
    )
}

fn first(all: &[String]) -> String {
    let shown = all
        .iter()
        .take(NAMED)
        .cloned()
        .collect::<Vec<_>>()
        .join(", ");
    match all.len().checked_sub(NAMED) {
        Some(more) if more > 0 => format!("{shown}, and {more} more"),
        _ => shown,
    }
}
