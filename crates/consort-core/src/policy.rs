//! The trait of policies, their registry entries and their options.

use crate::plan::Decision;
use crate::sample::Observation;
use crate::signal::{Signal, SignalOffers, Tier};
use crate::text::parse_count;
use crate::text::{split_unquoted, unquote};
use crate::topology::Topology;
use serde::Serialize;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// Random generator of policies, seeded from outside so that runs can be repeated.
pub type PolicyRng = rand_pcg::Pcg64;

/// Input of a policy's decision.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The machine.
    pub topology: &'a Topology,
    /// Observation of the last quantum.
    pub observation: &'a Observation,
}

/// Layer of the machine in which a policy works.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PolicyForm {
    /// In or above the operating system: it places software threads.
    #[default]
    Software,
    /// Below the operating system, which sees logical cores that are all alike. The policy maps
    /// these to CPUs: the threads that it observes and places are logical cores, each with its
    /// occupant.
    Hardware,
}

/// Requests of a policy in addition to signals. A machine ignores the ones that it cannot grant: live
/// machines, for example, have the software form only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wishes {
    /// Place of the policy.
    pub form: PolicyForm,
    /// True if an interval should end as soon as a thread stalls or resumes. Live machines cannot
    /// do that, but then read every thread's state at the end of each quantum.
    pub on_activity: bool,
    /// Time until a decision takes effect, ns, from the end of the interval: the latency of a
    /// hardware unit.
    pub latency_ns: u64,
    /// Quantum in this form, ms, if it differs from the usual one.
    pub quantum_ms: Option<u64>,
    /// True if the policy uses returns from futex and blocking calls, or numbers of switches,
    /// migrations and page faults. Live machines count calls with tracepoints, which slow down
    /// every system call and every switch of the whole machine; the other numbers cost time per
    /// thread.
    pub calls: bool,
    /// True if the policy uses the idle time of the CPUs, which shows whether other work waits for
    /// them.
    pub idle: bool,
    /// True if the policy uses accesses of the L1D, for which a live machine gives up a counter that
    /// other signals could have.
    pub l1d_accesses: bool,
}

impl Wishes {
    /// All wishes for data, for recordings that may be replayed under any policy.
    #[must_use]
    pub fn for_recording() -> Self {
        Self {
            calls: true,
            l1d_accesses: true,
            ..Self::default()
        }
    }

    /// Quantum on a machine that grants a form, ms: the wished one if the policy requested that
    /// form, else the policy's usual one.
    #[must_use]
    pub fn quantum_in_ms(&self, granted: PolicyForm, usual_ms: u64) -> u64 {
        let own_ms = self.quantum_ms.filter(|_| self.form == granted);
        own_ms.unwrap_or(usual_ms)
    }
}

/// A policy that is open on a machine and decides once per quantum where each thread may run. The
/// machine may change later; [`Policy::decide`] must cope with that.
pub trait Policy {
    /// Current wishes. They may grow, for example when a policy adds another one.
    fn wishes(&self) -> Wishes {
        Wishes::default()
    }

    /// Decides the next quantum from the view, the policy's own history and `rng`, and from nothing
    /// else.
    fn decide(&mut self, view: View<'_>, rng: &mut PolicyRng) -> Decision;
}

/// A policy that is ready to decide, or the reason why it is not available.
pub type PolicyResult = Result<Box<dyn Policy>, PolicyError>;

/// One option of a policy, settable as `name:key=value`.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct OptionInfo {
    /// Key.
    pub name: &'static str,
    /// Default value.
    pub default: &'static str,
    /// Effect of the option, with its unit and range.
    pub meaning: &'static str,
}

/// Entry of a policy in the registry.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct PolicyInfo {
    /// Name, as the literature has it.
    pub name: &'static str,
    /// Line of work.
    pub family: &'static str,
    /// The paper and section, or why there is none.
    pub source: &'static str,
    /// Signals without which it cannot decide.
    pub needs: &'static [Signal],
    /// Signals that it uses on a machine in addition to those of the operating system, needed or
    /// not; an empty list stands for all usual signals. If counters must take turns, they are
    /// limited to these.
    #[serde(skip)]
    pub uses: fn(&Topology) -> &'static [Signal],
    /// Poorest tier that suffices.
    pub tier_min: Tier,
    /// Its usual quantum, ms.
    pub quantum_ms: u64,
    /// True if it runs on a live machine.
    pub live: bool,
    /// True if it runs on a simulated machine.
    pub simulated: bool,
    /// Description in a line.
    pub summary: &'static str,
    /// Its options.
    pub options: &'static [OptionInfo],
    /// Opens the policy on a machine: reads the options first, then checks the machine.
    #[serde(skip)]
    pub open: fn(&Topology, &SignalOffers, &PolicyOptions) -> PolicyResult,
}

/// Value of [`PolicyInfo::uses`] for policies that use all usual signals.
pub const ALL_USUAL: fn(&Topology) -> &'static [Signal] = |_| &[];

/// Reason why a policy cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PolicyError {
    /// There is no policy of that name.
    #[error("unknown policy '{name}'; {hint}")]
    Unknown {
        /// The given name.
        name: String,
        /// The nearest name, or all of them.
        hint: String,
    },
    /// The policy has no such option.
    #[error("policy {policy} has no option '{key}'; it has {known}")]
    UnknownOption {
        /// The policy.
        policy: &'static str,
        /// The given key.
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
        /// The given value.
        value: String,
        /// Description of valid values.
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
        /// The fault, and how to correct it.
        why: String,
    },
    /// The policy would have no effect on this machine.
    #[error("policy {policy} {why}")]
    Unfit {
        /// The policy.
        policy: &'static str,
        /// The lack, and how to correct it.
        why: String,
    },
    /// The machine does not offer the signals that the policy needs.
    #[error("policy {policy} needs {needs}, but this machine offers {offers}")]
    Unfed {
        /// The policy.
        policy: String,
        /// Signals that are missing.
        needs: String,
        /// Signals that the machine offers.
        offers: String,
    },
}

/// Checks that a machine offers the signals that a policy needs.
///
/// # Errors
/// [`PolicyError::Unfed`], which names both sides.
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

/// Plain names of policies whose published names say little, each with the published one.
pub const POLICY_ALIASES: [(&str, &str); 4] = [
    ("pair-fpu", "workover"),
    ("pair-model", "symbiotic"),
    ("round-robin", "hrrs"),
    ("syscall-return", "kuths"),
];

/// Replaces a plain name in a policy's text by the published one.
///
/// ```
/// use consort_core::policy::published_name;
/// assert_eq!(published_name("pair-fpu:margin=0.1"), "workover:margin=0.1");
/// ```
pub fn published_name(text: &str) -> Cow<'_, str> {
    let name = text
        .trim_start()
        .split([':', ' '])
        .next()
        .unwrap_or_default();
    match POLICY_ALIASES.iter().find(|(alias, _)| *alias == name) {
        Some((alias, published)) => Cow::Owned(text.trim_start().replacen(alias, published, 1)),
        None => Cow::Borrowed(text),
    }
}

/// A policy's name with its options, as in `workover:margin=0.1,numa=false`. A value with a comma
/// is quoted: `symbiotic:model="a,b.toml"`.
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
    /// Attaches the contents of files that options name. The core does no I/O, so `read` does it;
    /// it returns `None` if a value names no file.
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
            name: published_name(name.trim()).into_owned(),
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

    /// Returns true if a value is given for the option, so that its default does not apply.
    pub fn is_given(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Reads an option that is a share from 0 to 1.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn share(&self, key: &'static str) -> Result<f64, PolicyError> {
        let expected = "a number from 0 to 1";
        let number = self.text(key).parse::<f64>().ok();
        let inside = number.filter(|n| (0.0..=1.0).contains(n));
        inside.ok_or_else(|| self.bad_value(key, expected))
    }

    /// Reads an option that is `true` or `false`.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn flag(&self, key: &'static str) -> Result<bool, PolicyError> {
        let value = self.text(key).parse::<bool>().ok();
        value.ok_or_else(|| self.bad_value(key, "true or false"))
    }

    /// Reads an option that is a whole number of at least 1.
    ///
    /// # Errors
    /// [`PolicyError::BadValue`].
    pub fn count(&self, key: &'static str) -> Result<u64, PolicyError> {
        let number = parse_count(self.text(key)).filter(|n| *n > 0);
        number.ok_or_else(|| self.bad_value(key, "a whole number from 1"))
    }

    /// Reads an option that is one of a few words.
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

    /// Reads an option that is a name, or a file whose content is attached.
    ///
    /// # Errors
    /// [`PolicyError::File`] if the file was not attached.
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

    /// Reads an option by a type's own parser.
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
    fn wished_quantum_needs_its_form() {
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
