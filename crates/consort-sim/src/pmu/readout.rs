//! Extra quantities by name, for studies: `l2-misses per 100 cycles`.
//!
//! They come from the machine's events as everything else does, in turns and with noise.

use super::signals::LastCounts;
use crate::machine::{PmuEventSpec, Quantity};
use consort_core::hint;
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as NotOne;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// A quantity by another one or by time.
///
/// Written as `QUANTITY per N QUANTITY` or `QUANTITY per second`, with the names
/// that machine files use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Readout {
    /// Quantity that is counted.
    pub counts: Quantity,
    /// By what.
    pub per: ReadoutUnit,
}

/// By what a quantity is divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReadoutUnit {
    /// By so many of another quantity.
    Quantity(f64, Quantity),
    /// By a second on a CPU.
    Second,
}

/// A readout's value and how old it is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadoutValue {
    /// The value.
    pub value: f64,
    /// Time since the end of the quantum in which its events were counted, ns.
    pub age_ns: u64,
}

/// Reason why a PMU cannot measure what is requested.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PmuError {
    /// The text is no readout.
    #[error("'{}' is not a readout; write for example 'l2-misses per 100 cycles' or 'l1d-accesses per second'", .0.escape_debug())]
    Syntax(String),
    /// There is no such quantity.
    #[error("unknown quantity '{}'", .0.escape_debug())]
    UnknownQuantity(String),
    /// The machine has no event for it, or no counter to count it with.
    #[error("machine {machine} cannot count {quantity}; {hint}")]
    NotCounted {
        /// The machine.
        machine: String,
        /// The quantity.
        quantity: String,
        /// The nearest quantity that it can count, or all of them.
        hint: String,
    },
}

impl FromStr for Readout {
    type Err = PmuError;

    fn from_str(text: &str) -> Result<Self, PmuError> {
        let syntax = || PmuError::Syntax(text.to_owned());
        let words: Vec<&str> = text.split_whitespace().collect();
        let (counts, per) = match words[..] {
            [counts, "per", "second"] => (counts, ReadoutUnit::Second),
            [counts, "per", unit] => (counts, ReadoutUnit::Quantity(1.0, parse_quantity(unit)?)),
            [counts, "per", n, unit] => {
                let n = n.parse().ok().filter(|n: &f64| n.is_finite() && *n > 0.0);
                (
                    counts,
                    ReadoutUnit::Quantity(n.ok_or_else(syntax)?, parse_quantity(unit)?),
                )
            }
            _ => return Err(syntax()),
        };
        let counts = parse_quantity(counts)?;
        Ok(Self { counts, per })
    }
}

impl fmt::Display for Readout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} per ", name(self.counts))?;
        match self.per {
            ReadoutUnit::Second => f.write_str("second"),
            ReadoutUnit::Quantity(1.0, unit) => f.write_str(&name(unit)),
            ReadoutUnit::Quantity(n, unit) => write!(f, "{n} {}", name(unit)),
        }
    }
}

/// A quantity by the name that machine files use.
fn parse_quantity(name: &str) -> Result<Quantity, PmuError> {
    let found = Quantity::deserialize(IntoDeserializer::<NotOne>::into_deserializer(name));
    found.map_err(|_| PmuError::UnknownQuantity(name.to_owned()))
}

/// The name that machine files use.
fn name(quantity: Quantity) -> String {
    let value = serde_json::to_value(quantity);
    let name = value.ok().and_then(|v| v.as_str().map(str::to_owned));
    name.unwrap_or_default()
}

/// A readout with the events that feed it, by index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReadoutSource {
    readout: Readout,
    counts: usize,
    unit: Option<usize>,
}

impl ReadoutSource {
    /// Finds the events among those that `countable` admits.
    pub(super) fn new(
        readout: Readout,
        machine: &str,
        events: &[PmuEventSpec],
        countable: impl Fn(usize) -> bool,
    ) -> Result<Self, PmuError> {
        let of = |quantity| {
            let mut indices = 0..events.len();
            let found = indices.find(|&e| events[e].counts == quantity && countable(e));
            found.ok_or_else(|| not_counted_error(machine, quantity, events))
        };
        let unit = match readout.per {
            ReadoutUnit::Second => None,
            ReadoutUnit::Quantity(_, unit) => Some(of(unit)?),
        };
        let counts = of(readout.counts)?;
        Ok(Self {
            readout,
            counts,
            unit,
        })
    }

    pub(super) fn events(&self) -> Vec<usize> {
        let both = std::iter::once(self.counts).chain(self.unit);
        both.collect()
    }

    /// The value at a time, ns since the thread was first sampled.
    pub(super) fn value(&self, memory: &LastCounts, now_ns: u64) -> Option<ReadoutValue> {
        let seen = memory.get(self.counts)?;
        let value = match (self.readout.per, self.unit) {
            (ReadoutUnit::Quantity(n, _), Some(unit)) => {
                n * memory.per_cycle(self.counts)? / memory.per_cycle(unit)?
            }
            _ => seen.amount / seen.on_pu_s,
        };
        let age_ns = now_ns - seen.end_ns;
        let value = ReadoutValue { value, age_ns };
        value.value.is_finite().then_some(value)
    }
}

fn not_counted_error(machine: &str, quantity: Quantity, events: &[PmuEventSpec]) -> PmuError {
    let known: Vec<String> = events.iter().map(|event| name(event.counts)).collect();
    let wanted = name(quantity);
    PmuError::NotCounted {
        machine: machine.to_owned(),
        hint: hint(&wanted, known.iter().map(String::as_str)),
        quantity: wanted,
    }
}
