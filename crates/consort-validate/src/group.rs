//! The groups of checks: a registry.

use super::check::Check;
use super::data::Data;
use super::error::ValidateError;
use super::reference::{self, ReferenceSummary};
use super::{conservation, consistency, independent, placement, speed};
use consort_experiment::Context;
use consort_report::{Figure, Table};
use thiserror::Error;

/// Input of a group.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// The published figures.
    pub data: &'a Data,
    /// Seed, scale and workers.
    pub context: &'a Context<'a>,
}

/// Output of a group.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupOutput {
    /// The checks.
    pub checks: Vec<Check>,
    /// Tables behind them.
    pub tables: Vec<Table>,
    /// Facts that a reader must know.
    pub notes: Vec<String>,
    /// Figures.
    pub figures: Vec<Figure>,
    /// The fast engine beside the reference.
    pub reference: Option<ReferenceSummary>,
}

/// Checks that are one kind of evidence.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    /// Name, for `--group`.
    pub name: &'static str,
    /// Kind of evidence that it is, in a sentence.
    pub about: &'static str,
    /// True where a disagreement is a failure: the checks are laws.
    pub is_law: bool,
    /// True where it is run only when it is named, as it takes minutes.
    pub is_long: bool,
    run: fn(&Inputs<'_>) -> Result<GroupOutput, ValidateError>,
}

/// All groups, in the order in which they are printed.
pub const GROUPS: &[Group] = &[
    Group {
        name: consistency::NAME,
        about: "Figures that went into the programs, found again in the result: \
                shows that profiles and solver fit together, proves nothing more.",
        is_law: false,
        is_long: false,
        run: consistency::run,
    },
    Group {
        name: independent::NAME,
        about: "Figures from other publications that went into no parameter.",
        is_law: false,
        is_long: false,
        run: independent::run,
    },
    Group {
        name: conservation::NAME,
        about: "Laws, over random workloads on every machine; one that does not hold is an error.",
        is_law: true,
        is_long: false,
        run: conservation::run,
    },
    Group {
        name: placement::NAME,
        about: "Where the model of the operating system puts threads, beside a real kernel.",
        is_law: false,
        is_long: false,
        run: placement::run,
    },
    Group {
        name: reference::NAME,
        about: "The fast engine beside one that executes the instructions of traced programs.",
        is_law: false,
        is_long: true,
        run: reference::run,
    },
    Group {
        name: speed::NAME,
        about: "Simulated instructions per second of this host, measured now.",
        is_law: false,
        is_long: false,
        run: speed::run,
    },
];

/// There is no such group.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("unknown group '{name}'; {hint}")]
pub struct UnknownGroup {
    /// The name asked for.
    pub name: String,
    /// The nearest name, or all of them.
    pub hint: String,
}

/// The groups of these names, in the registry's order; all that are not long for none.
///
/// # Errors
/// A name that no group has.
pub fn select(names: &[String]) -> Result<Vec<&'static Group>, UnknownGroup> {
    let known = || GROUPS.iter().map(|group| group.name);
    for name in names {
        if !known().any(|group| group == name) {
            return Err(UnknownGroup {
                name: name.clone(),
                hint: consort_core::hint(name, known()),
            });
        }
    }
    let asked = |group: &&Group| match names {
        [] => !group.is_long,
        _ => names.iter().any(|name| name == group.name),
    };
    Ok(GROUPS.iter().filter(asked).collect())
}

impl Group {
    pub(super) fn run(&self, inputs: &Inputs<'_>) -> Result<GroupOutput, ValidateError> {
        (self.run)(inputs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_chosen_in_the_registry_s_order() {
        let names = |asked: &[&str]| -> Vec<&str> {
            let asked: Vec<String> = asked.iter().map(|&name| name.to_owned()).collect();
            select(&asked)
                .unwrap()
                .iter()
                .map(|group| group.name)
                .collect()
        };
        assert_eq!(names(&["speed", "consistency"]), ["consistency", "speed"]);
        assert_eq!(names(&[]).len(), GROUPS.len() - 1);
        assert_eq!(names(&["reference"]), ["reference"]);
    }

    #[test]
    fn an_unknown_group_is_named_with_the_nearest() {
        let error = select(&["consistancy".to_owned()]).unwrap_err();
        let text = error.to_string();
        assert_eq!(
            text,
            "unknown group 'consistancy'; did you mean 'consistency'?"
        );
    }
}
