//! Inference of groups from the evidence of pairs.

use super::evidence::{PairEvidence, PairVerdict, SharingAnswer, SharingVerdict, Stress};
use super::groups::{SharingLevel, level};
use super::threshold_side::{ThresholdSide, side_of_ratio};
use super::transfers::Transfers;
use crate::pu_set::PuSet;
use crate::stats::RatioInterval;
use serde::Serialize;

/// Slowdown from which on two PUs are said to share what a kernel loads.
///
/// Two copies of a kernel that fills all units of a kind, or more than half of a cache, take 1.3 to
/// 2 times as long or more where that is shared. Where it is not, a turbo that sinks with the
/// number of busy cores and a noisy host leave up to 1.1. (Estimated: the second from pairs on
/// different cores of a virtual machine, 1.00 to 1.08; the first from unit counts.)
pub const SLOWED: f64 = 1.15;

/// Parts that PUs share, as far as it was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inference {
    /// Every pair that was measured, in the order given.
    pub pairs: Vec<PairVerdict>,
    /// The PUs that share a core.
    pub cores: SharingLevel,
    /// The PUs that share a level 2 cache.
    pub l2s: SharingLevel,
    /// The PUs that share an LLC domain.
    pub llcs: SharingLevel,
}

/// Tells from the evidence of pairs which of `pus` share what. Pairs may be missing; those of a PU
/// that is not in `pus`, or of a PU with itself, are left out.
///
/// *Cores.* Integer and floating-point kernels load units that nothing beyond a core has, so one
/// of them clearly slowed is enough; PUs are apart when neither they nor the level 1 kernel are.
/// *Level 2.* PUs of a core share it; others do where the level 2 kernel is slowed. *LLC domains.*
/// Lines travel faster inside one than out of it: see [`FARTHER`](super::FARTHER).
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
        // Unless they may share a core, for then it may be that.
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

/// Apart where no stress is slowed, else unclear; the least sure of them decides. What ran clearly
/// faster together than alone was disturbed, and tells nothing.
fn apart_verdict(pair: &PairEvidence, stresses: &[Stress]) -> SharingVerdict {
    let mut least: Option<(f64, String)> = None;
    for &stress in stresses {
        let Some(slowdown) = pair.slowdown(stress) else {
            return SharingVerdict::unclear(format!("{stress} was not measured"));
        };
        let why = describe_slowdown(stress, slowdown);
        if let ThresholdSide::Below(_) = side_of_ratio(slowdown, 1.0 / SLOWED) {
            return SharingVerdict::unclear(format!(
                "{why}: no PU makes another faster, so something else did, and it was measured in vain"
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
