//! Judgements on events, and the rows of a check that bear them: right within a tolerance, or wrong
//! with a guess at the mistake.

use serde::Serialize;

/// Outcome of a check of one event over one loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase", tag = "verdict", content = "reason")]
pub enum EventVerdict {
    /// The count is within the tolerance.
    Ok,
    /// The count is outside the tolerance; the text has a guess at the cause.
    Wrong(String),
    /// The event was not measured; the text has the reason.
    Skipped(String),
}

/// One event over one loop.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckRow {
    /// The event, with its PMU for hardware events.
    pub event: String,
    /// The loop.
    pub kernel: String,
    /// Count that is right for the loop; `None` where nothing exact is known.
    pub expected: Option<f64>,
    /// Count that was read; `None` when skipped.
    pub measured: Option<f64>,
    /// Error of the count: (measured - expected) / expected.
    pub relative_error: Option<f64>,
    /// Judgement of the event by this loop.
    #[serde(flatten)]
    pub verdict: EventVerdict,
}

impl CheckRow {
    pub(crate) fn from_reason(event: String, kernel: &str, reason: String) -> Self {
        Self {
            event,
            kernel: kernel.to_owned(),
            expected: None,
            measured: None,
            relative_error: None,
            verdict: EventVerdict::Skipped(reason),
        }
    }

    pub(crate) fn from_counts(
        event: String,
        kernel: &str,
        expected: f64,
        measured: f64,
        tolerance: f64,
    ) -> Self {
        let (error, verdict) = judge(expected, measured, tolerance);
        Self {
            event,
            kernel: kernel.to_owned(),
            expected: Some(expected),
            measured: Some(measured),
            relative_error: Some(error),
            verdict,
        }
    }
}

/// Ratios of measured to expected that betray a known mistake.
const SUSPECTS: [(f64, &str); 3] = [
    (
        0.5,
        "half of it: a large-increment event without its paired counter?",
    ),
    (
        2.0,
        "twice as much: both threads of the core counted, or fused operations as two?",
    ),
    (0.0, "nothing at all: wrong encoding?"),
];

/// Largest distance of a measured ratio from a suspect's at which the suspect is named.
const NEAR: f64 = 0.05;

/// Compares counts; returns the relative error and the judgement. `tolerance` is relative to
/// `expected`.
pub(crate) fn judge(expected: f64, measured: f64, tolerance: f64) -> (f64, EventVerdict) {
    let error = (measured - expected) / expected.max(1.0);
    if error.abs() <= tolerance {
        return (error, EventVerdict::Ok);
    }
    let ratio = measured / expected.max(1.0);
    let near = |(suspect, _): &&(f64, &str)| (ratio - suspect).abs() <= NEAR;
    let named = SUSPECTS.iter().find(near).map(|(_, what)| *what);
    let what = match named {
        Some(what) => what.to_owned(),
        None => format!("off by {:+.1} percent", 100.0 * error),
    };
    (error, EventVerdict::Wrong(format!("counts {what}")))
}

/// Instructions per cycle that no processor leaves on a loop in registers: the
/// widest retires 12, and the longest chain of divisions takes fewer than 64
/// cycles for each instruction.
const PLAUSIBLE_IPC: std::ops::RangeInclusive<f64> = 1.0 / 64.0..=12.0;

/// Judges cycles, which have no known count. They must be plausible, and not equal to the known
/// count of instructions while the instructions event counts something else, as happens when the
/// two events are exchanged.
pub(crate) fn judge_cycles(cycles: f64, known: f64, counted: f64) -> EventVerdict {
    let exact = |value: f64| (value - known).abs() <= 0.002 * known;
    if exact(cycles) && !exact(counted) {
        let what = "counts instructions, while instructions does not: exchanged?";
        return EventVerdict::Wrong(what.to_owned());
    }
    let ipc = known / cycles.max(1.0);
    if PLAUSIBLE_IPC.contains(&ipc) {
        EventVerdict::Ok
    } else {
        EventVerdict::Wrong(format!("{ipc:.3} instructions per cycle cannot be"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(expected: f64, measured: f64, words: Option<&str>) {
        match (judge(expected, measured, 0.01).1, words) {
            (EventVerdict::Ok, None) => {}
            (EventVerdict::Wrong(what), Some(words)) => assert!(what.contains(words), "{what}"),
            (verdict, words) => panic!("{verdict:?}, expected {words:?}"),
        }
    }

    #[test]
    fn mistakes_are_named() {
        check(1e6, 1e6, None);
        check(1e6, 1.009e6, None);
        check(1e6, 0.5e6, Some("half"));
        check(1e6, 2e6, Some("twice"));
        check(1e6, 0.0, Some("nothing"));
        check(1e6, 1.3e6, Some("+30.0 percent"));
    }

    #[test]
    fn exchanged_cycles_and_instructions_are_found() {
        assert_eq!(judge_cycles(400.0, 1000.0, 1000.0), EventVerdict::Ok);
        assert_eq!(judge_cycles(1000.0, 1000.0, 1000.0), EventVerdict::Ok);
        let exchanged = judge_cycles(1000.0, 1000.0, 400.0);
        assert!(matches!(exchanged, EventVerdict::Wrong(what) if what.contains("exchanged")));
        assert!(matches!(
            judge_cycles(1.0, 1000.0, 1000.0),
            EventVerdict::Wrong(_)
        ));
    }

    proptest! {
        #[test]
        fn ok_is_exactly_within_the_tolerance(expected in 1.0..1e12_f64, off in -1.0..3.0_f64) {
            let (error, verdict) = judge(expected, expected * (1.0 + off), 0.01);
            prop_assert!((error - off).abs() < 1e-6);
            prop_assert_eq!(verdict == EventVerdict::Ok, error.abs() <= 0.01);
        }
    }
}
