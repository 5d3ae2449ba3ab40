//! Limits of a machine: ranges of every number, and parts that do not fit together.
//!
//! Ranges are those of physics and of anything that was ever built, with room
//! to spare; they stop slips of the pen (a latency in ns where cycles are
//! meant), not daring. They also keep the solver's numbers finite.

mod caches;
mod cores;
mod detail;
mod layout;
mod pmu;
mod power;
mod uncore;
mod units;

use super::spec::MachineSpec;
use crate::describe::{KeyScope, Problems};

pub use layout::MAX_PUS;

/// The least and the most.
type ValueRange = (f64, f64);

/// Notes all that is wrong with a machine.
pub fn validate(spec: &MachineSpec, problems: &mut Problems) {
    let mut at = KeyScope::new(problems, "");
    check_names(spec, &mut at);
    layout::check(spec, &mut at);
    for (name, core) in &spec.core_types {
        cores::check(core, at.child("core_type").child(name));
    }
    uncore::check(spec, &mut at);
    pmu::check(&spec.pmu, at.child("pmu"));
}

/// Names are used on command lines, in options and in key paths.
fn check_names(spec: &MachineSpec, at: &mut KeyScope<'_>) {
    at.require(is_name(&spec.name), "name", NAME_RULE);
    at.require(
        !spec.title.trim().is_empty(),
        "title",
        "is empty; expected a line that says what the machine is",
    );
    for name in spec.core_types.keys() {
        at.child("core_type")
            .require(is_name(name), name, NAME_RULE);
    }
}

const NAME_RULE: &str =
    "is no name; expected 1 to 64 of a-z, 0-9, '-', '+', '_', the first a letter or a digit";

fn is_name(name: &str) -> bool {
    let word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    name.len() <= 64
        && name.starts_with(word)
        && name
            .chars()
            .all(|c| word(c) || matches!(c, '-' | '+' | '_'))
}
