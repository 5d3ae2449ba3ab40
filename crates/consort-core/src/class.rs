//! Classes of threads by their main activity.

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
    /// Busy, with unknown instructions.
    Unknown,
    /// Mostly off the CPU: waiting for events, locks or I/O.
    Blocked,
    /// Never on a CPU.
    Idle,
}

/// Property of memory that limits a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryLimit {
    /// Single accesses, whose data the next instructions need.
    Latency,
    /// Bytes per second to and from memory. The thread reads memory in order, so a co-runner that
    /// does the same slows it down.
    Bandwidth,
}

impl MemoryLimit {
    /// Greater part of a stall, `bandwidth` of it in streams; both are shares of CPU time.
    /// `None` if the stall is less than [`MEMORY_FROM`].
    pub fn from_stall(memory_stall: f64, bandwidth: f64) -> Option<Self> {
        let greater = match 2.0 * bandwidth > memory_stall {
            true => Self::Bandwidth,
            false => Self::Latency,
        };
        (memory_stall >= MEMORY_FROM).then_some(greater)
    }
}

/// Numbers from which [`classify`] derives a class.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ThreadTraits {
    /// Share of the thread's life in which it ran or waited for a CPU, 0 to 1.
    pub wanted_share: f64,
    /// Instruction mix by time.
    pub mix: Option<Mix>,
    /// Share of CPU time stalled behind loads, 0 to 1.
    pub memory_stall: Option<f64>,
}

/// Least share of the time that a thread runs or waits for a CPU; below it the thread is blocked.
pub const BLOCKED_BELOW: f64 = 0.05;
/// Least share of CPU time that a memory thread waits behind loads: the greater half.
pub const MEMORY_FROM: f64 = 0.5;
/// Least floating-point share of the mix of a floating-point thread.
///
/// Markovic ("Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs", Table 3.2)
/// counts loads, stores and branches of SPEC CPU2006. In the floating-point programs they leave at
/// least 0.337 (GemsFDTD, cactusADM) for arithmetic of any kind. At least half of that must be
/// floating point for the program to be one, since addresses and counters take the rest: 0.337 / 2
/// = 0.17, less a margin for shares that spread over blocks.
pub const FP_FROM: f64 = 0.15;
/// Largest floating-point share of the mix of an integer thread.
///
/// Peternier et al. ("Improving Execution Unit Occupancy on SMT-based Processors", Tables 1 and 2)
/// measure at most 0.004 floating-point operations per cycle in the integer programs of SPEC
/// CPU2006 and at least 0.074 in the floating-point ones. The bound is nearer to the upper end,
/// since shares per instruction are larger than shares per cycle if fewer than one instruction
/// completes per cycle.
pub const INT_BELOW: f64 = 0.05;

/// Returns the class for these traits.
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

/// Error of the stalled share within which a thread keeps its class: two standard errors of the 200
/// samples that a quantum contains at least.
const STALL_ERROR: f64 = 0.07;
/// Error of the floating-point share within which a thread keeps its class: the share is below a
/// fifth near its bounds, where the standard error of 200 samples is at most 0.025.
const FP_ERROR: f64 = 0.05;

/// Returns the class of a thread whose class was `before`. A thread keeps its class as long as the
/// shares are within their error of it, because a thread near a bound would otherwise change its
/// class from quantum to quantum.
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
    fn traits_select_their_class() {
        check(0.0, 0.5, 0.1, 0.0, Class::Idle);
        check(0.01, 0.5, 0.1, 0.0, Class::Blocked);
        check(1.0, 0.1, 0.1, 0.8, Class::Memory);
        check(1.0, 0.4, 0.1, 0.2, Class::Fp);
        check(1.0, 0.04, 0.5, 0.2, Class::Int);
        check(1.0, 0.1, 0.3, 0.2, Class::Mixed);
    }

    #[test]
    fn only_memory_threads_have_a_limit() {
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
    fn missing_mix_is_unknown() {
        let busy = ThreadTraits {
            wanted_share: 1.0,
            ..ThreadTraits::default()
        };
        assert_eq!(classify(busy), Class::Unknown);
    }

    #[test]
    fn empty_mix_is_unknown() {
        let traits = ThreadTraits {
            wanted_share: 1.0,
            mix: Some(Mix::default()),
            memory_stall: None,
        };
        assert_eq!(classify(traits), Class::Unknown);
    }
}
