//! Inference of groups from evidence about pairs.

use crate::pu_set::PuSet;
use crate::sharing::evidence::{PairEvidence, PairVerdict, SharingAnswer, SharingVerdict, Stress};
use crate::sharing::groups::{SharingLevel, level};
use crate::stats::{ConfidenceInterval, RatioInterval};
use serde::Serialize;

/// Least slowdown of two CPUs that share the part that a kernel loads.
///
/// Two copies of a kernel that fills all units of a kind, or more than half of a cache, take 1.3 to
/// 2 times as long or more if they share it. Otherwise a turbo that sinks with the number of busy
/// cores and a noisy host leave up to 1.1. (Estimated: the second from pairs on different cores of
/// a virtual machine, 1.00 to 1.08; the first from unit counts.)
pub const SLOWED: f64 = 1.15;

/// Parts that CPUs share, by the measurements.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inference {
    /// Every measured pair, in the given order.
    pub pairs: Vec<PairVerdict>,
    /// CPUs that share a core.
    pub cores: SharingLevel,
    /// CPUs that share a level 2 cache.
    pub l2s: SharingLevel,
    /// CPUs that share an LLC domain.
    pub llcs: SharingLevel,
}

/// Infers from evidence about pairs which of `pus` share which parts. Pairs may be missing. Pairs
/// of a CPU outside `pus`, or of a CPU with itself, are ignored.
///
/// *Cores.* Integer and floating-point kernels load units that only CPUs of one core share, so a
/// clear slowdown of one of them is enough. CPUs are apart if neither they nor the level 1 kernel
/// are slowed. *Level 2.* CPUs of a core share it; others do if the level 2 kernel is slowed. *LLC
/// domains.* Lines travel faster inside one than out of it: see [`FARTHER`].
pub fn infer(pus: &PuSet, evidence: &[PairEvidence]) -> Inference {
    let known =
        |pair: &&PairEvidence| pair.a != pair.b && pus.contains(pair.a) && pus.contains(pair.b);
    let evidence: Vec<&PairEvidence> = evidence.iter().filter(known).collect();
    let cores: Vec<SharingVerdict> = evidence.iter().map(|pair| core_verdict(pair)).collect();
    let between = evidence.iter().zip(&cores);
    let transfers = Transfers::from_times(
        between
            .filter(|(_, core)| core.sharing != SharingAnswer::Shared)
            .filter_map(|(pair, _)| pair.round_trip_ns),
    );
    let pairs: Vec<PairVerdict> = evidence
        .iter()
        .zip(cores)
        .map(|(pair, core)| PairVerdict {
            a: pair.a,
            b: pair.b,
            l2: l2_verdict(pair, &core),
            llc: llc_verdict(pair, &core, &transfers),
            core,
        })
        .collect();
    Inference {
        cores: level(pus, &pairs, |pair| &pair.core),
        l2s: level(pus, &pairs, |pair| &pair.l2),
        llcs: level(pus, &pairs, |pair| &pair.llc),
        pairs,
    }
}

fn core_verdict(pair: &PairEvidence) -> SharingVerdict {
    let units = [Stress::Int, Stress::Fp];
    let slowed = units.into_iter().filter_map(|stress| {
        let slowdown = pair.slowdown(stress)?;
        match side_of_ratio(slowdown, SLOWED) {
            ThresholdSide::Above(confidence) => Some((stress, slowdown, confidence)),
            _ => None,
        }
    });
    if let Some((stress, slowdown, confidence)) = slowed.max_by(|a, b| a.2.total_cmp(&b.2)) {
        return SharingVerdict {
            sharing: SharingAnswer::Shared,
            confidence: Some(confidence),
            why: describe_slowdown(stress, slowdown),
        };
    }
    apart_verdict(pair, &[Stress::Int, Stress::Fp, Stress::L1])
}

fn l2_verdict(pair: &PairEvidence, core: &SharingVerdict) -> SharingVerdict {
    if core.sharing == SharingAnswer::Shared {
        return same_core_verdict(core);
    }
    match pair
        .slowdown(Stress::L2)
        .map(|s| (s, side_of_ratio(s, SLOWED)))
    {
        // CPUs that may share a core are excluded, because the shared core alone slows the kernel.
        Some((slowdown, ThresholdSide::Above(confidence)))
            if core.sharing == SharingAnswer::Apart =>
        {
            SharingVerdict {
                sharing: SharingAnswer::Shared,
                confidence: Some(confidence),
                why: describe_slowdown(Stress::L2, slowdown),
            }
        }
        _ => apart_verdict(pair, &[Stress::L2]),
    }
}

fn llc_verdict(
    pair: &PairEvidence,
    core: &SharingVerdict,
    transfers: &Transfers,
) -> SharingVerdict {
    if core.sharing == SharingAnswer::Shared {
        return same_core_verdict(core);
    }
    match &pair.round_trip_ns {
        Some(time) => transfers.verdict(time),
        None => SharingVerdict::unclear("the line transfer was not measured"),
    }
}

fn same_core_verdict(core: &SharingVerdict) -> SharingVerdict {
    SharingVerdict {
        why: format!("share a core: {}", core.why),
        ..core.clone()
    }
}

/// Apart if no stress is slowed, else unclear; the least certain stress decides. A pair that ran
/// clearly faster together than alone was disturbed and decides nothing.
fn apart_verdict(pair: &PairEvidence, stresses: &[Stress]) -> SharingVerdict {
    let mut least: Option<(f64, String)> = None;
    for &stress in stresses {
        let Some(slowdown) = pair.slowdown(stress) else {
            return SharingVerdict::unclear(format!("{stress} was not measured"));
        };
        let why = describe_slowdown(stress, slowdown);
        if let ThresholdSide::Below(_) = side_of_ratio(slowdown, 1.0 / SLOWED) {
            return SharingVerdict::unclear(format!(
                "{why}: no CPU makes another faster, so something else did, and it was measured in vain"
            ));
        }
        match side_of_ratio(slowdown, SLOWED) {
            ThresholdSide::Below(confidence) => {
                if least.as_ref().is_none_or(|(least, _)| confidence < *least) {
                    least = Some((confidence, why));
                }
            }
            ThresholdSide::Above(_) => {
                return SharingVerdict::unclear(format!("{why}, which alone does not decide"));
            }
            ThresholdSide::Both => {
                return SharingVerdict::unclear(format!(
                    "{why}, which may be more or less than {SLOWED}"
                ));
            }
        }
    }
    let (confidence, why) = least.unwrap_or((0.0, String::new()));
    SharingVerdict {
        sharing: SharingAnswer::Apart,
        confidence: Some(confidence),
        why: format!("at most {why}"),
    }
}

fn describe_slowdown(stress: Stress, slowdown: &RatioInterval) -> String {
    let (mean, low, high, n) = (slowdown.mean, slowdown.low(), slowdown.high(), slowdown.n);
    format!("{stress} slowed {mean:.2} ({low:.2} to {high:.2}, {n} runs)")
}

/// The 97.5 percent point of the normal distribution.
const NORMAL_975: f64 = 1.959_963_984_540_054;

/// Least probability of a decided side: the 95 percent interval does not cross the threshold.
const DECIDED: f64 = 0.975;

/// Side of a threshold on which a value is.
///
/// The error is taken as normal, with the width of the 95 percent interval: at the ends of an
/// interval the probability of either side is 2.5 or 97.5 percent.
#[derive(Clone, Copy, Debug, PartialEq)]
enum ThresholdSide {
    /// Above, with this probability.
    Above(f64),
    /// Below, with this probability.
    Below(f64),
    /// The interval crosses the threshold, or its width is unknown.
    Both,
}

/// The side of `threshold` on which a ratio is.
fn side_of_ratio(value: &RatioInterval, threshold: f64) -> ThresholdSide {
    let width = value.factor95.map(libm::log);
    side(libm::log(value.mean), width, libm::log(threshold))
}

/// The side of `threshold` on which a quantity is.
fn side_of(value: &ConfidenceInterval, threshold: f64) -> ThresholdSide {
    side(value.mean, value.ci95, threshold)
}

fn side(mean: f64, width95: Option<f64>, threshold: f64) -> ThresholdSide {
    let Some(width) = width95 else {
        return ThresholdSide::Both;
    };
    let above = probability_above(mean, width, threshold);
    if above >= DECIDED {
        ThresholdSide::Above(above)
    } else if above <= 1.0 - DECIDED {
        ThresholdSide::Below(1.0 - above)
    } else {
        ThresholdSide::Both
    }
}

fn probability_above(mean: f64, width95: f64, threshold: f64) -> f64 {
    let distance = mean - threshold;
    if width95 <= 0.0 {
        return match distance.total_cmp(&0.0) {
            std::cmp::Ordering::Greater => 1.0,
            std::cmp::Ordering::Equal => 0.5,
            std::cmp::Ordering::Less => 0.0,
        };
    }
    let z = NORMAL_975 * distance / width95;
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}

/// Least ratio of a round trip to the next shorter one that marks the border of an LLC domain.
///
/// Within a domain times differ by the places of cores on its ring or mesh, by a third at most; to
/// another domain they are twice as long or more. (Estimated from published core-to-core latencies
/// of server chips.)
pub const FARTHER: f64 = 1.5;

/// Round trips between cores, split into near and far ones if there is a gap.
struct Transfers {
    /// Border between near and far round trips, ns.
    border_ns: Option<f64>,
    /// The shortest and the longest, ns; `None` without any.
    range_ns: Option<(f64, f64)>,
}

impl Transfers {
    /// Finds the first gap: a round trip that takes [`FARTHER`] times as long as the next shorter
    /// one, with intervals that do not touch.
    fn from_times(times: impl Iterator<Item = ConfidenceInterval>) -> Self {
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
    fn verdict(&self, time: &ConfidenceInterval) -> SharingVerdict {
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn interval_ends_are_decided_inside_is_not() {
        let at = |mean: f64| probability_above(mean, 0.1, 1.0);
        assert!((at(1.1) - 0.975).abs() < 1e-9);
        assert!((at(0.9) - 0.025).abs() < 1e-9);
        assert!((at(1.0) - 0.5).abs() < 1e-12);
        assert_eq!(side(1.05, Some(0.1), 1.0), ThresholdSide::Both);
        assert_eq!(side(9.0, None, 1.0), ThresholdSide::Both);
        assert_eq!(side(2.0, Some(0.0), 1.0), ThresholdSide::Above(1.0));
        assert_eq!(side(1.0, Some(0.0), 1.0), ThresholdSide::Both);
    }

    proptest! {
        #[test]
        fn nearer_values_are_never_more_certain(
            mean in 0.5f64..2.0, width in 0.001f64..1.0, by in 0.0f64..1.0,
        ) {
            let near = probability_above(mean, width, 1.0);
            let far = probability_above(mean + by, width, 1.0);
            prop_assert!(far >= near && (0.0..=1.0).contains(&near));
        }
    }
}
