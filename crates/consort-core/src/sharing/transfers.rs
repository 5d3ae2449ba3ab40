//! LLC domains from the times that lines travel.

use super::evidence::{SharingAnswer, SharingVerdict};
use super::threshold_side::{ThresholdSide, side_of};
use crate::stats::ConfidenceInterval;

/// Ratio of a round trip to the next shorter one from which on its line counts as going out of an
/// LLC domain.
///
/// Within a domain times differ with the places of cores on its ring or mesh, by a third at most;
/// to another domain they are twice as long or more. (Estimated from published core-to-core
/// latencies of server chips.)
pub const FARTHER: f64 = 1.5;

/// Round trips between cores, parted into near and far ones where a gap parts them.
pub(super) struct Transfers {
    /// Border between near and far round trips, ns.
    border_ns: Option<f64>,
    /// The shortest and the longest, ns; none without any.
    range_ns: Option<(f64, f64)>,
}

impl Transfers {
    /// Looks for the first gap: a round trip that takes [`FARTHER`] times as long as the next
    /// shorter one, with intervals that do not touch.
    pub(super) fn from_times(times: impl Iterator<Item = ConfidenceInterval>) -> Self {
        let mut times: Vec<ConfidenceInterval> = times.collect();
        times.sort_by(|a, b| a.mean.total_cmp(&b.mean));
        let range_ns = times
            .first()
            .zip(times.last())
            .map(|(a, b)| (a.mean, b.mean));
        let mut pairs = times.windows(2);
        let gap = pairs.find(|pair| pair[1].mean > FARTHER * pair[0].mean);
        let apart = gap.filter(|pair| pair[0].high() < pair[1].low());
        Self {
            border_ns: apart.map(|pair| (pair[0].mean * pair[1].mean).sqrt()),
            range_ns,
        }
    }

    /// Verdict on a common LLC domain of a pair with this round trip.
    pub(super) fn verdict(&self, time: &ConfidenceInterval) -> SharingVerdict {
        let Some(border_ns) = self.border_ns else {
            return SharingVerdict::unclear(self.describe_missing_gap());
        };
        let (sharing, confidence) = match side_of(time, border_ns) {
            ThresholdSide::Below(confidence) => (SharingAnswer::Shared, confidence),
            ThresholdSide::Above(confidence) => (SharingAnswer::Apart, confidence),
            ThresholdSide::Both => return SharingVerdict::unclear(describe_round_trip(time)),
        };
        SharingVerdict {
            sharing,
            confidence: Some(confidence),
            why: describe_round_trip(time),
        }
    }

    fn describe_missing_gap(&self) -> String {
        match self.range_ns {
            Some((low, high)) if low < high => format!(
                "round trips between cores take {low:.0} to {high:.0} ns, with no gap between them"
            ),
            _ => "there is one round trip between cores, so no other to compare with".to_owned(),
        }
    }
}

fn describe_round_trip(time: &ConfidenceInterval) -> String {
    let (mean, low, high) = (time.mean, time.low(), time.high());
    format!(
        "round trip {mean:.0} ns ({low:.0} to {high:.0}, {} runs)",
        time.n
    )
}
