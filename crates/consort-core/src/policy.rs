//! Trait of policies, which see samples and a topology and return a decision; their registry
//! entries and options.

use crate::count::parse_count;
use crate::plan::Decision;
use crate::quote::{split_unquoted, unquote};
use crate::sample::Observation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::topology::Topology;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The only source of randomness that a policy has; seeded from outside.
pub type PolicyRng = rand_pcg::Pcg64;

/// Everything that a policy sees when it decides.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// Observation of the last quantum.
    pub observation: &'a Observation,
}

/// Place of a policy in a machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyForm {
    /// In or above the operating system: it places software threads.
    #[default]
    Software,
    /// Below the operating system, which sees logical cores that are all alike: it maps these to
    /// PUs. What it observes and places as threads are then logical cores, each with its occupant.
    Hardware,
}

/// Wishes that a policy has beside signals. A machine that cannot grant a wish goes on
/// without: live ones have the software form only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Place of the policy.
    pub form: PolicyForm,
    /// True where an interval is to end as soon as a thread stalls or goes on. Live machines cannot
    /// do that, but then ask for every thread's state at the end of each quantum.
    pub on_activity: bool,
    /// Time from a quantum's end, or from what happens before, until its decision takes effect, ns:
    /// what the unit of a hardware form needs.
    pub latency_ns: u64,
    /// Its quantum in this form where that is another than its usual one, ms.
    pub quantum_ms: Option<u64>,
    /// True where returns from futex and blocking calls are used, or numbers of switches, migrations
    /// and page faults. Live machines count calls with tracepoints, which make every system call and
    /// every switch of the whole machine dearer, and the others on each thread.
    pub calls: bool,
    /// True if the idle time of the PUs is used, which shows whether other work waits for them.
    pub idle: bool,
}

impl Wishes {
    /// Everything that any policy might use, for recordings that are replayed under others.
    #[must_use]
    pub fn for_recording() -> Self {
        Self {
            calls: true,
            ..Self::default()
        }
    }

    /// The quantum where a machine grants a form, ms: the one that is wished for in that form, else
    /// the policy's usual one.
    #[must_use]
    pub fn quantum_in_ms(&self, granted: PolicyForm, usual_ms: u64) -> u64 {
        let own_ms = self.quantum_ms.filter(|_| self.form == granted);
        own_ms.unwrap_or(usual_ms)
    }
}

/// A policy that is open on a machine: decides once per quantum where each thread may run. The
/// machine may change later, which is for [`Policy::decide`] to cope with.
pub trait Policy {
    /// Wishes as they are now: a policy that joins others once they are needed may come to ask for
    /// more.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// Decides the next quantum. Pure but for the policy's own history and `rng`.
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision;
}

/// A policy that is ready to decide, or the reason why it cannot be had.
pub type PolicyResult = Result<Box<dyn Policy>, PolicyError>;

/// One option of a policy, settable as `name:key=value`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionInfo {
    /// Key.
    pub name: &'static str,
    /// Value when not given.
    pub default: &'static str,
    /// Effect of the option, with its unit and range.
    pub meaning: &'static str,
}

/// Entry of a policy in the registry.
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
    /// The only signals that it uses on a machine beside those that the operating system tells,
    /// needed or not; none names all that are usual. Where counters take turns, they then do so for
    /// these alone.
    #[serde(skip)]
    pub uses: fn(&Topology) -> &'static [Signal],
    /// The poorest tier that can feed it.
    pub tier_min: Tier,
    /// Its usual quantum, ms.
    pub quantum_ms: u64,
    /// True where it runs on a live machine.
    pub live: bool,
    /// True where it runs on a simulated machine.
    pub simulated: bool,
    /// Description in a line.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Opens one on a machine: reads the options, and only then looks at the machine.
    #[serde(skip)]
    pub open: fn(&Topology, &SignalOffers, &PolicyOptions) -> PolicyResult,
}

/// The signals of policies that use all that are usual, as [`PolicyInfo::uses`].
pub const ALL_USUAL: fn(&Topology) -> &'static [Signal] = |_| &[];

/// Reason why a policy cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// There is no policy of that name.
    #[error("unknown policy '{name}'; {hint}")]
    Unknown {
        /// The name that was asked for.
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
        /// Description of the values that would be right.
        expected: &'static str,
    },
    /// The text after the name is not `key=value,...`.
    #[error("'{0}' is not a policy with options; write name:key=value,key=value")]
    Syntax(String),
    /// A file that an option names cannot be read.
    #[error("option {key}={path}: {cause}")]
    File {
        /// The option.
        key: String,
        /// The file.
        path: String,
        /// The cause.
        cause: String,
    },
    /// The policy's interference model is unknown or malformed.
    #[error("policy {policy} {why}")]
    Model {
        /// The policy.
        policy: &'static str,
        /// The fault, and what would be right.
        why: String,
    },
    /// The policy would be of no use on this machine.
    #[error("policy {policy} {why}")]
    Unfit {
        /// The policy.
        policy: &'static str,
        /// The lack, and what would be right.
        why: String,
    },
    /// The machine does not give what the policy needs.
    #[error("policy {policy} needs {needs}, but this machine offers {offers}")]
    Unfed {
        /// The policy.
        policy: String,
        /// The signals that it needs and does not get.
        needs: String,
        /// The signals that the machine has.
        offers: String,
    },
}

/// Checks that a machine gives what a policy needs.
///
/// # Errors
/// [`PolicyError::Unfed`], naming both sides.
pub fn check_signals(
    policy: &str,
    needs: &[Signal],
    offers: &SignalOffers,
) -> Result<(), PolicyError> {
    let missing = offers.missing_signals(needs);
    if missing.is_empty() {
        return Ok(());
    }
    Err(PolicyError::Unfed {
        policy: policy.to_owned(),
        needs: join(missing.iter().map(|s| s.name())),
        offers: join(offers.iter().map(|(s, _)| s.name())),
    })
}

/// A policy's name with its options as text: `workover:margin=0.1,numa=false`. A value with a comma
/// stands in quotes: `symbiotic:model="a,b.toml"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySpec {
    /// The name.
    pub name: String,
    /// Options by key.
    pub options: BTreeMap<String, String>,
    /// Contents of the files that options name, by key; see [`PolicySpec::attach`].
    pub files: BTreeMap<String, String>,
}

impl PolicySpec {
    /// Takes in the files that options name. The core does no I/O, so `read` answers for a value:
    /// `None` if it names no file.
    ///
    /// # Errors
    /// [`PolicyError::File`].
    pub fn attach<E: fmt::Display>(
        &mut self,
        read: impl Fn(&str) -> Option<Result<String, E>>,
    ) -> Result<(), PolicyError> {
        for (key, path) in &self.options {
            let Some(content) = read(path) else {
                continue;
            };
            let content = content.map_err(|cause| PolicyError::File {
                key: key.clone(),
                path: path.clone(),
                cause: cause.to_string(),
            })?;
            self.files.insert(key.clone(), content);
        }
        Ok(())
    }
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
            let value = value.trim();
            let value = match unquote(value) {
                Some((plain, length)) if length == value.len() => plain,
                None if !value.starts_with('"') => value.to_owned(),
                _ => return Err(syntax()),
            };
            Ok((key.trim().to_owned(), value))
        };
        let fields = split_unquoted(rest, ',', &['=']).into_iter();
        let fields = fields.filter(|_| !rest.is_empty());
        Ok(Self {
            name: name.trim().to_owned(),
            options: fields.map(pair).collect::<Result<_, _>>()?,
            files: BTreeMap::new(),
        })
    }
}

/// A policy's options, checked against its [`PolicyInfo`].
#[derive(Clone, Copy, Debug)]
pub struct PolicyOptions<'a> {
    info: &'a PolicyInfo,
    given: &'a BTreeMap<String, String>,
    files: &'a BTreeMap<String, String>,
}

impl<'a> PolicyOptions<'a> {
    /// Checks that every given key exists.
    ///
    /// # Errors
    /// [`PolicyError::UnknownOption`].
    pub fn new(info: &'a PolicyInfo, spec: &'a PolicySpec) -> Result<Self, PolicyError> {
        let (given, files) = (&spec.options, &spec.files);
        let known = |key: &&String| info.options.iter().any(|o| o.name == key.as_str());
        match given.keys().find(|key| !known(key)) {
            Some(key) => Err(PolicyError::UnknownOption {
                policy: info.name,
                key: key.clone(),
                known: join_or_none(info.options.iter().map(|o| o.name)),
            }),
            None => Ok(Self { info, given, files }),
        }
    }

    /// Says whether a value is given for an option, rather than its default taken.
    pub fn is_given(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// An option that is a share from 0 to 1.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn share(&self, key: &'static str) -> Result<f64, PolicyError> {
        let expected = "a number from 0 to 1";
        let number = self.text(key).parse::<f64>().ok();
        let inside = number.filter(|n| (0.0..=1.0).contains(n));
        inside.ok_or_else(|| self.bad_value(key, expected))
    }

    /// An option that is `true` or `false`.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn flag(&self, key: &'static str) -> Result<bool, PolicyError> {
        let value = self.text(key).parse::<bool>().ok();
        value.ok_or_else(|| self.bad_value(key, "true or false"))
    }

    /// An option that is a whole number of at least 1.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn count(&self, key: &'static str) -> Result<u64, PolicyError> {
        let number = parse_count(self.text(key)).filter(|n| *n > 0);
        number.ok_or_else(|| self.bad_value(key, "a whole number from 1"))
    }

    /// An option that is one of a few words.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`] with `expected`, which lists them.
    pub fn one_of<T: Copy>(
        &self,
        key: &'static str,
        words: &[(&str, T)],
        expected: &'static str,
    ) -> Result<T, PolicyError> {
        let found = words.iter().find(|(word, _)| *word == self.text(key));
        found
            .map(|(_, value)| *value)
            .ok_or_else(|| self.bad_value(key, expected))
    }

    /// An option that is a name, or a file of which the content is given.
    ///
    /// # Errors
    /// [`PolicyError::File`] when the file was not attached.
    pub fn name_or_file(&self, key: &'static str) -> Result<NameOrFile<'_>, PolicyError> {
        let value = self.text(key);
        match self.files.get(key) {
            Some(content) => Ok(NameOrFile::File {
                path: value,
                content,
            }),
            None if value.contains('/') || value.ends_with(".toml") => Err(PolicyError::File {
                key: key.to_owned(),
                path: value.to_owned(),
                cause: "was not read".to_owned(),
            }),
            None => Ok(NameOrFile::Name(value)),
        }
    }

    /// An option that a type reads by itself.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`] with `expected`.
    pub fn parse_value<T: FromStr>(
        &self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<T, PolicyError> {
        self.text(key)
            .parse()
            .map_err(|_| self.bad_value(key, expected))
    }

    fn text(&self, key: &str) -> &str {
        let default = self.info.options.iter().find(|o| o.name == key);
        match self.given.get(key) {
            Some(value) => value,
            None => default.map_or("", |o| o.default),
        }
    }

    fn bad_value(&self, key: &'static str, expected: &'static str) -> PolicyError {
        PolicyError::BadValue {
            policy: self.info.name,
            key,
            value: self.text(key).to_owned(),
            expected,
        }
    }
}

/// The value of an option that is a name or a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameOrFile<'a> {
    /// A name.
    Name(&'a str),
    /// A file, and what is in it.
    File {
        /// Its path.
        path: &'a str,
        /// Its content.
        content: &'a str,
    },
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
        let quoted = spec(r#"symbiotic:model="/a,b=c/d\"e.toml",numa=true"#).unwrap();
        assert_eq!(quoted.options["model"], r#"/a,b=c/d"e.toml"#);
        assert_eq!(quoted.options["numa"], "true");
    }

    #[test]
    fn the_quantum_that_is_wished_for_holds_in_the_form_that_is_granted() {
        let hardware = Wishes {
            form: PolicyForm::Hardware,
            quantum_ms: Some(1),
            ..Wishes::default()
        };
        assert_eq!(hardware.quantum_in_ms(PolicyForm::Hardware, 4), 1);
        assert_eq!(hardware.quantum_in_ms(PolicyForm::Software, 4), 4);
        assert_eq!(Wishes::default().quantum_in_ms(PolicyForm::Software, 4), 4);
    }

    #[test]
    fn malformed_specs_are_refused() {
        for text in [
            "",
            ":",
            "workover:",
            "workover:margin",
            ":margin=1",
            "a:b=\"c",
            "a:b=\"c\"d",
        ] {
            assert!(matches!(spec(text), Err(PolicyError::Syntax(_))), "{text}");
        }
    }
}
