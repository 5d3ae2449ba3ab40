//! The class of a thread: the one word for what it does to the processor.

use crate::mix::Mix;
use serde::{Deserialize, Serialize};
use std::fmt;

/// Main activity of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Floating-point arithmetic.
    Fp,
    /// Integer arithmetic and control.
    Int,
    /// Waiting behind loads.
    Memory,
    /// Floating point and integer, neither clearly ahead.
    Mixed,
    /// Busy, but it is not known with what.
    Unknown,
    /// Mostly off the PU: waiting for events, locks or I/O.
    Blocked,
    /// Never on a PU.
    Idle,
}

/// Limit of a thread that waits for memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryLimit {
    /// Single accesses that must be there before work goes on.
    Latency,
    /// Bytes per second to and from memory: the thread goes through memory in order, and a
    /// co-runner that does so too takes from it.
    Bandwidth,
}

impl MemoryLimit {
    /// The greater part of a stall of which `bandwidth` is in streams; both are shares of CPU
    /// time. None where less than [`MEMORY_FROM`] is stalled.
    pub fn from_stall(memory_stall: f64, bandwidth: f64) -> Option<Self> {
        let greater = match 2.0 * bandwidth > memory_stall {
            true => Self::Bandwidth,
            false => Self::Latency,
        };
        (memory_stall >= MEMORY_FROM).then_some(greater)
    }
}

/// Numbers that [`classify`] goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTraits {
    /// Share of the thread's life in which it ran or waited for a PU, 0 to 1.
    pub wanted_share: f64,
    /// Instruction mix by time.
    pub mix: Option<Mix>,
    /// Share of CPU time stalled behind loads, 0 to 1.
    pub memory_stall: Option<f64>,
}

/// Below this share of the time running or waiting for a PU a thread is blocked rather than busy.
pub const BLOCKED_BELOW: f64 = 0.05;
/// From this share of its CPU time on, waiting behind loads is what a thread
/// mainly does: the greater half.
pub const MEMORY_FROM: f64 = 0.5;
/// From this floating-point share of the mix on, a thread is a floating-point thread.
///
/// Markovic ("Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric
/// CMPs", Table 3.2) counts loads, stores and branches of SPEC CPU2006. What they
/// leave for arithmetic of any kind in the floating-point programs is at least
/// 0.337 (GemsFDTD, cactusADM). At least half of that must be floating point for
/// the program to be one, since addresses and counters take the rest: 0.337 / 2 =
/// 0.17, less what spreading time over blocks may wash out.
pub const FP_FROM: f64 = 0.15;
/// Below this floating-point share of the mix a thread is an integer thread.
///
/// Peternier et al. ("Improving Execution Unit Occupancy on SMT-based
/// Processors", Tables 1 and 2) measure at most 0.004 floating-point operations
/// per cycle in the integer programs of SPEC CPU2006 and at least 0.074 in the
/// floating-point ones. The bound is nearer to the upper end, since per
/// instruction the shares are larger than per cycle wherever fewer than one
/// instruction completes per cycle.
pub const INT_BELOW: f64 = 0.05;

/// The class of a thread.
pub fn classify(traits: ThreadTraits) -> Class {
    if traits.wanted_share <= 0.0 {
        return Class::Idle;
    }
    if traits.wanted_share < BLOCKED_BELOW {
        return Class::Blocked;
    }
    if traits
        .memory_stall
        .is_some_and(|share| share >= MEMORY_FROM)
    {
        return Class::Memory;
    }
    match traits.mix {
        Some(mix) if mix.fp >= FP_FROM => Class::Fp,
        Some(mix) if mix.total() <= 0.0 => Class::Unknown,
        Some(mix) if mix.fp < INT_BELOW => Class::Int,
        Some(_) => Class::Mixed,
        None => Class::Unknown,
    }
}

/// Error of the share of stalled time within which a class is kept: two standard errors of the 200
/// samples that a quantum stands on at least.
const STALL_ERROR: f64 = 0.07;
/// The same for the floating-point share, which is below a fifth near its bounds: the standard error
/// of 200 samples is 0.025 there at most.
const FP_ERROR: f64 = 0.05;

/// The class of a thread whose class was `before`: it stays as long as the shares are within their
/// error of those that make it so, because a thread near a bound would otherwise change its class
/// from quantum to quantum.
pub fn classify_after(traits: ThreadTraits, before: Class) -> Class {
    let errors = [-1.0, 0.0, 1.0];
    let mut near = errors
        .iter()
        .flat_map(|stall| errors.map(|fp| (stall * STALL_ERROR, fp * FP_ERROR)));
    let stays = near.any(|(stall, fp)| {
        let moved = ThreadTraits {
            memory_stall: traits.memory_stall.map(|share| share + stall),
            mix: traits.mix.map(|mix| Mix {
                fp: mix.fp + fp,
                ..mix
            }),
            ..traits
        };
        classify(moved) == before
    });
    if stays { before } else { classify(traits) }
}

impl Class {
    /// The class's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp => "fp",
            Self::Int => "int",
            Self::Memory => "memory",
            Self::Mixed => "mixed",
            Self::Unknown => "unknown",
            Self::Blocked => "blocked",
            Self::Idle => "idle",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(wanted_share: f64, fp: f64, int: f64, memory_stall: f64, expect: Class) {
        let mix = Mix {
            fp,
            int,
            load: 1.0 - fp - int,
            ..Mix::default()
        };
        let traits = ThreadTraits {
            wanted_share,
            mix: Some(mix),
            memory_stall: Some(memory_stall),
        };
        assert_eq!(classify(traits), expect);
    }

    #[test]
    fn each_class_has_its_threads() {
        check(0.0, 0.5, 0.1, 0.0, Class::Idle);
        check(0.01, 0.5, 0.1, 0.0, Class::Blocked);
        check(1.0, 0.1, 0.1, 0.8, Class::Memory);
        check(1.0, 0.4, 0.1, 0.2, Class::Fp);
        check(1.0, 0.04, 0.5, 0.2, Class::Int);
        check(1.0, 0.1, 0.3, 0.2, Class::Mixed);
    }

    #[test]
    fn memory_limits_are_told_of_memory_threads_only() {
        assert_eq!(MemoryLimit::from_stall(0.4, 0.4), None);
        assert_eq!(
            MemoryLimit::from_stall(0.6, 0.1),
            Some(MemoryLimit::Latency)
        );
        assert_eq!(
            MemoryLimit::from_stall(0.6, 0.5),
            Some(MemoryLimit::Bandwidth)
        );
    }

    #[test]
    fn thread_near_a_bound_keeps_its_class() {
        let at = |memory_stall, fp| ThreadTraits {
            wanted_share: 1.0,
            mix: Some(Mix {
                fp,
                int: 1.0 - fp,
                ..Mix::default()
            }),
            memory_stall: Some(memory_stall),
        };
        for share in [0.45, 0.5, 0.55] {
            assert_eq!(classify_after(at(share, 0.0), Class::Memory), Class::Memory);
            assert_eq!(classify_after(at(share, 0.0), Class::Int), Class::Int);
        }
        assert_eq!(classify_after(at(0.4, 0.0), Class::Memory), Class::Int);
        assert_eq!(classify_after(at(0.6, 0.0), Class::Int), Class::Memory);
        assert_eq!(classify_after(at(0.0, 0.13), Class::Fp), Class::Fp);
        assert_eq!(classify_after(at(0.0, 0.0), Class::Fp), Class::Int);
    }

    #[test]
    fn thread_that_falls_asleep_is_blocked_at_once() {
        let asleep = ThreadTraits {
            wanted_share: 0.01,
            ..ThreadTraits::default()
        };
        assert_eq!(classify_after(asleep, Class::Fp), Class::Blocked);
    }

    #[test]
    fn without_a_mix_nothing_is_claimed() {
        let busy = ThreadTraits {
            wanted_share: 1.0,
            ..ThreadTraits::default()
        };
        assert_eq!(classify(busy), Class::Unknown);
    }

    #[test]
    fn an_empty_mix_claims_nothing() {
        let traits = ThreadTraits {
            wanted_share: 1.0,
            mix: Some(Mix::default()),
            memory_stall: None,
        };
        assert_eq!(classify(traits), Class::Unknown);
    }
}
