//! What a policy is: it sees samples and a topology and returns a decision.

use crate::plan::Decision;
use crate::sample::Observation;
use crate::signal::{Offers, Signal, Tier};
use crate::topology::Topology;
use serde::Serialize;
use std::collections::BTreeMap;
use std::str::FromStr;
use thiserror::Error;

/// The only source of randomness that a policy has; seeded from outside.
pub type PolicyRng = rand_pcg::Pcg64;

/// Everything that a policy sees when it decides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// What the threads did in the last quantum.
    pub observation: &'a Observation,
}

/// A policy: decides once per quantum where each thread may run.
pub trait Policy {
    /// Decides the next quantum. Pure but for the policy's own history and `rng`.
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision;
}

/// One option of a policy, settable as `name:key=value`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionInfo {
    /// Key.
    pub name: &'static str,
    /// Value when not given.
    pub default: &'static str,
    /// What it does, with its unit and range.
    pub meaning: &'static str,
}

/// What the registry knows of a policy.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PolicyInfo {
    /// Name, as the literature has it.
    pub name: &'static str,
    /// The line of work that it belongs to.
    pub family: &'static str,
    /// The paper and section, or why there is none.
    pub source: &'static str,
    /// Signals without which it cannot decide.
    pub needs: &'static [Signal],
    /// The poorest tier that can feed it.
    pub tier_min: Tier,
    /// Its usual quantum, ms.
    pub quantum_ms: u64,
    /// Whether it runs on a live machine.
    pub live: bool,
    /// Whether it runs on a simulated machine.
    pub simulated: bool,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Makes one with the given options.
    #[serde(skip)]
    pub build: fn(&Options) -> Result<Box<dyn Policy>, PolicyError>,
}

/// Why a policy cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// There is no policy of that name.
    #[error("unknown policy '{name}'; {hint}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The policy has no such option.
    #[error("policy {policy} has no option '{key}'; it has {known}")]
    UnknownOption {
        /// The policy.
        policy: &'static str,
        /// The key that was given.
        key: String,
        /// Its options.
        known: String,
    },
    /// A value does not fit its option.
    #[error("option {key}={value} of policy {policy}: expected {expected}")]
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The option.
        key: &'static str,
        /// The value that was given.
        value: String,
        /// What would be right.
        expected: &'static str,
    },
    /// The text after the name is not `key=value,...`.
    #[error("'{0}' is not a policy with options; write name:key=value,key=value")]
    Syntax(String),
    /// The machine does not give what the policy needs.
    #[error("policy {policy} needs {needs}, but this machine offers {offers}")]
    Unfed {
        /// The policy.
        policy: &'static str,
        /// The signals that it needs and does not get.
        needs: String,
        /// The signals that the machine has.
        offers: String,
    },
}

impl PolicyInfo {
    /// Checks that a machine gives what the policy needs.
    ///
    /// # Errors
    /// [`PolicyError::Unfed`], naming both sides.
    pub(crate) fn check_fed(&self, offers: &Offers) -> Result<(), PolicyError> {
        let missing = offers.missing(self.needs);
        if missing.is_empty() {
            return Ok(());
        }
        Err(PolicyError::Unfed {
            policy: self.name,
            needs: join(missing.iter().map(|s| s.name())),
            offers: join(offers.iter().map(|(s, _)| s.name())),
        })
    }
}

/// A policy's name with its options as text: `workover:margin=0.1,numa=false`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The name.
    pub name: String,
    /// Options by key.
    pub options: BTreeMap<String, String>,
}

impl FromStr for PolicySpec {
    type Err = PolicyError;

    fn from_str(text: &str) -> Result<Self, PolicyError> {
        let syntax = || PolicyError::Syntax(text.to_owned());
        let (name, rest) = text.split_once(':').unwrap_or((text, ""));
        if name.trim().is_empty() || (rest.is_empty() && text.contains(':')) {
            return Err(syntax());
        }
        let pair = |field: &str| {
            let (key, value) = field.split_once('=').ok_or_else(syntax)?;
            Ok((key.trim().to_owned(), value.trim().to_owned()))
        };
        let fields = rest.split(',').filter(|_| !rest.is_empty());
        Ok(Self {
            name: name.trim().to_owned(),
            options: fields.map(pair).collect::<Result<_, _>>()?,
        })
    }
}

/// A policy's options, checked against its [`PolicyInfo`].
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    info: &'a PolicyInfo,
    given: &'a BTreeMap<String, String>,
}

impl<'a> Options<'a> {
    /// Checks that every given key exists.
    ///
    /// # Errors
    /// [`PolicyError::UnknownOption`].
    pub fn new(
        info: &'a PolicyInfo,
        given: &'a BTreeMap<String, String>,
    ) -> Result<Self, PolicyError> {
        let known = |key: &&String| info.options.iter().any(|o| o.name == key.as_str());
        match given.keys().find(|key| !known(key)) {
            Some(key) => Err(PolicyError::UnknownOption {
                policy: info.name,
                key: key.clone(),
                known: join_or_none(info.options.iter().map(|o| o.name)),
            }),
            None => Ok(Self { info, given }),
        }
    }

    /// An option that is a share from 0 to 1.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn share(&self, key: &'static str) -> Result<f64, PolicyError> {
        let expected = "a number from 0 to 1";
        let number = self.text(key).parse::<f64>().ok();
        let inside = number.filter(|n| (0.0..=1.0).contains(n));
        inside.ok_or_else(|| self.bad(key, expected))
    }

    /// An option that is `true` or `false`.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn flag(&self, key: &'static str) -> Result<bool, PolicyError> {
        let value = self.text(key).parse::<bool>().ok();
        value.ok_or_else(|| self.bad(key, "true or false"))
    }

    fn text(&self, key: &str) -> &str {
        let default = self.info.options.iter().find(|o| o.name == key);
        match self.given.get(key) {
            Some(value) => value,
            None => default.map_or("", |o| o.default),
        }
    }

    fn bad(&self, key: &'static str, expected: &'static str) -> PolicyError {
        PolicyError::BadValue {
            policy: self.info.name,
            key,
            value: self.text(key).to_owned(),
            expected,
        }
    }
}

fn join<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

fn join_or_none<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let text = join(names);
    if text.is_empty() {
        "none".to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(text: &str) -> Result<PolicySpec, PolicyError> {
        text.parse()
    }

    #[test]
    fn specs_are_a_name_and_options() {
        assert_eq!(spec("none").unwrap().options.len(), 0);
        let full = spec("workover:margin=0.1, numa=false").unwrap();
        assert_eq!(full.name, "workover");
        assert_eq!(full.options["margin"], "0.1");
        assert_eq!(full.options["numa"], "false");
    }

    #[test]
    fn malformed_specs_are_refused() {
        for text in ["", ":", "workover:", "workover:margin", ":margin=1"] {
            assert!(matches!(spec(text), Err(PolicyError::Syntax(_))), "{text}");
        }
    }
}
