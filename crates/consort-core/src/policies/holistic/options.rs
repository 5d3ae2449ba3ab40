//! Options of `holistic`, and those that it passes on to other policies.

use crate::policies::asymmetric::{FORM, form};
use crate::policies::{check, find};
use crate::policy::{
    NameOrFile, OptionInfo, PolicyError, PolicyForm, PolicyInfo, PolicyOptions, PolicySpec,
};
use std::collections::BTreeMap;

/// The policy that a model is for.
const USES_MODEL: &str = "symbiotic";
/// The option of that policy that names a model.
const MODEL: &str = "model";
/// The option of the objective, which `symbiotic` has as well.
const OBJECTIVE: &str = "objective";

/// Objective where there is a choice between policies or placements.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum HolisticObjective {
    /// The sum of speeds.
    #[default]
    Throughput,
    /// Speeds that are alike, so that the last of equally long programs is done soonest.
    Fairness,
}

impl HolisticObjective {
    const ALL: [(&str, Self); 2] = [
        (Self::Throughput.word(), Self::Throughput),
        (Self::Fairness.word(), Self::Fairness),
    ];

    const fn word(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::Fairness => "fairness",
        }
    }
}

pub(super) const OPTIONS: &[OptionInfo] = &[
    FORM,
    OptionInfo {
        name: MODEL,
        default: "auto",
        meaning: "interference model for cores that PUs share: auto (the shipped one that fits), a name or FILE.toml",
    },
    OptionInfo {
        name: OBJECTIVE,
        default: "throughput",
        meaning: "what large cores and shared cores are given for: throughput, or fairness (the last is done sooner)",
    },
];

fn form_name(form: PolicyForm) -> &'static str {
    match form {
        PolicyForm::Hardware => "hardware",
        PolicyForm::Software => "software",
    }
}

/// Options that are passed on to the policy that decides.
#[derive(Clone, Debug)]
pub(super) struct ForwardedOptions {
    pub(super) form: PolicyForm,
    pub(super) objective: HolisticObjective,
    /// Values by option.
    values: BTreeMap<String, String>,
    files: BTreeMap<String, String>,
}

impl ForwardedOptions {
    pub(super) fn from_options(options: &PolicyOptions<'_>) -> Result<Self, PolicyError> {
        let mut passed = Self {
            form: form(options)?,
            objective: options.one_of(
                OBJECTIVE,
                &HolisticObjective::ALL,
                "throughput or fairness",
            )?,
            values: BTreeMap::new(),
            files: BTreeMap::new(),
        };
        if options.is_given(OBJECTIVE) {
            passed.set_value(OBJECTIVE, passed.objective.word());
        }
        if options.is_given(FORM.name) {
            // Else each keeps the quantum of the form that it was proposed for.
            passed.set_value(FORM.name, form_name(passed.form));
        }
        match options.name_or_file(MODEL)? {
            NameOrFile::Name(name) => passed.set_value(MODEL, name),
            NameOrFile::File { path, content } => {
                passed.set_value(MODEL, path);
                passed.files.insert(MODEL.to_owned(), content.to_owned());
            }
        }
        if options.is_given(MODEL) {
            // One that does not exist is refused before anything is started.
            check(&passed.spec(find(USES_MODEL)?))?;
        }
        Ok(passed)
    }

    fn set_value(&mut self, key: &str, value: &str) {
        self.values.insert(key.to_owned(), value.to_owned());
    }

    /// Specification of a policy with those of the options that it has.
    pub(super) fn spec(&self, info: &PolicyInfo) -> PolicySpec {
        let has = |key: &String| info.options.iter().any(|option| option.name == key);
        let of = |all: &BTreeMap<String, String>| {
            let kept = all.iter().filter(|(key, _)| has(key));
            kept.map(|(key, value)| (key.clone(), value.clone()))
                .collect()
        };
        PolicySpec {
            name: info.name.to_owned(),
            options: of(&self.values),
            files: of(&self.files),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::INFO;
    use super::*;

    /// The options that `symbiotic` is given by holistic with these.
    fn passed_on(text: &str) -> BTreeMap<String, String> {
        let spec: PolicySpec = text.parse().unwrap();
        let options = PolicyOptions::new(&INFO, &spec).unwrap();
        let passed = ForwardedOptions::from_options(&options).unwrap();
        passed.spec(find(USES_MODEL).unwrap()).options
    }

    #[test]
    fn an_objective_is_passed_on_where_it_was_asked_for() {
        assert_eq!(passed_on("holistic").get(OBJECTIVE), None);
        let fair = passed_on("holistic:objective=fairness");
        assert_eq!(fair.get(OBJECTIVE).map(String::as_str), Some("fairness"));
    }
}
