//! The class of a thread: the one word for what it does to the processor.

use crate::mix::Mix;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a thread mainly does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// Floating-point arithmetic.
    Fp,
    /// Integer arithmetic and control.
    Int,
    /// Waiting behind loads.
    Memory,
    /// Floating point and integer, neither clearly ahead; or too little is known.
    Mixed,
    /// Mostly off the PU: waiting for events, locks or I/O.
    Blocked,
    /// Never on a PU.
    Idle,
}

/// What [`classify`] goes by.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Traits {
    /// Share of one PU over the thread's life, 0 to 1.
    pub cpu_share: f64,
    /// Instruction mix by time.
    pub mix: Option<Mix>,
    /// Share of CPU time stalled behind loads, 0 to 1.
    pub memory_stall: Option<f64>,
}

/// Below this share of one PU a thread is blocked rather than busy.
pub const BLOCKED_BELOW: f64 = 0.05;
/// From this share of its CPU time on, waiting behind loads is what a thread mainly does.
pub const MEMORY_FROM: f64 = 0.5;

/// The class of a thread.
///
/// Floating point is weighed against all arithmetic, because loads, stores and
/// branches serve both kinds: Markovic (thesis, Table 3.2) finds 35 to 56
/// percent loads in SPEC CPU2006 programs of either suite. Where two thirds of
/// the arithmetic is floating point the class is `fp`, below one third it is
/// `int`: outside the middle third the larger kind is at least twice the other.
pub fn classify(traits: Traits) -> Class {
    if traits.cpu_share <= 0.0 {
        return Class::Idle;
    }
    if traits.cpu_share < BLOCKED_BELOW {
        return Class::Blocked;
    }
    if traits
        .memory_stall
        .is_some_and(|share| share >= MEMORY_FROM)
    {
        return Class::Memory;
    }
    traits.mix.map_or(Class::Mixed, by_arithmetic)
}

fn by_arithmetic(mix: Mix) -> Class {
    let arithmetic = mix.fp + mix.vector + mix.int;
    match mix.fp / arithmetic {
        share if share >= 2.0 / 3.0 => Class::Fp,
        share if share < 1.0 / 3.0 => Class::Int,
        _ => Class::Mixed,
    }
}

impl Class {
    /// The class's name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fp => "fp",
            Self::Int => "int",
            Self::Memory => "memory",
            Self::Mixed => "mixed",
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

    fn check(cpu_share: f64, fp: f64, int: f64, memory_stall: f64, expect: Class) {
        let mix = Mix {
            fp,
            int,
            load: 1.0 - fp - int,
            ..Mix::default()
        };
        let traits = Traits {
            cpu_share,
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
        check(1.0, 0.05, 0.5, 0.2, Class::Int);
        check(1.0, 0.3, 0.3, 0.2, Class::Mixed);
    }

    #[test]
    fn without_a_mix_nothing_is_claimed() {
        let busy = Traits {
            cpu_share: 1.0,
            ..Traits::default()
        };
        assert_eq!(classify(busy), Class::Mixed);
    }

    #[test]
    fn no_arithmetic_at_all_is_mixed() {
        check(1.0, 0.0, 0.0, 0.0, Class::Mixed);
    }
}
