//! The groups of checks: a registry.

use super::group::CheckGroup;
use super::{conservation, consistency, independent, placement, reference, speed};
use thiserror::Error;

/// All groups, in the order in which they are printed.
pub const GROUPS: &[CheckGroup] = &[
    CheckGroup {
        name: consistency::NAME,
        about: "Figures that went into the programs, found again in the result: \
                shows that profiles and solver fit together, proves nothing more.",
        is_law: false,
        is_long: false,
        run: consistency::run,
    },
    CheckGroup {
        name: independent::NAME,
        about: "Figures from other publications that went into no parameter.",
        is_law: false,
        is_long: false,
        run: independent::run,
    },
    CheckGroup {
        name: conservation::NAME,
        about: "Laws, over random workloads on every machine; one that does not hold is an error.",
        is_law: true,
        is_long: false,
        run: conservation::run,
    },
    CheckGroup {
        name: placement::NAME,
        about: "Where the model of the operating system puts threads, beside a real kernel.",
        is_law: false,
        is_long: false,
        run: placement::run,
    },
    CheckGroup {
        name: reference::NAME,
        about: "The fast engine beside one that executes the instructions of traced programs.",
        is_law: false,
        is_long: true,
        run: reference::run,
    },
    CheckGroup {
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
pub fn select(names: &[String]) -> Result<Vec<&'static CheckGroup>, UnknownGroup> {
    let known = || GROUPS.iter().map(|group| group.name);
    for name in names {
        if !known().any(|group| group == name) {
            return Err(UnknownGroup {
                name: name.clone(),
                hint: consort_core::hint(name, known()),
            });
        }
    }
    let requested = |group: &&CheckGroup| match names {
        [] => !group.is_long,
        _ => names.iter().any(|name| name == group.name),
    };
    Ok(GROUPS.iter().filter(requested).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_chosen_in_the_registry_s_order() {
        let names = |requested: &[&str]| -> Vec<&str> {
            let requested: Vec<String> = requested.iter().map(|&name| name.to_owned()).collect();
            select(&requested)
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
