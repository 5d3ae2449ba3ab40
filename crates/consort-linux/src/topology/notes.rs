//! Assumptions of a discovery, in sentences for people.

use consort_core::{PuId, PuSet};
use std::collections::BTreeMap;

/// Collects assumptions; equal ones about several PUs become one line.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryNotes {
    lines: Vec<String>,
    about_pus: BTreeMap<String, PuSet>,
}

impl DiscoveryNotes {
    /// Adds a sentence about the machine.
    pub(crate) fn add(&mut self, line: impl Into<String>) {
        let line = line.into();
        if !self.lines.contains(&line) {
            self.lines.push(line);
        }
    }

    /// Adds a sentence about one PU.
    pub(crate) fn add_about_pu(&mut self, pu: PuId, what: impl Into<String>) {
        self.about_pus.entry(what.into()).or_default().insert(pu);
    }

    /// Adds all sentences of other notes.
    pub(crate) fn extend(&mut self, other: Self) {
        other.lines.into_iter().for_each(|line| self.add(line));
        for (what, pus) in other.about_pus {
            let known = self.about_pus.entry(what).or_default();
            *known = known.union(&pus);
        }
    }

    /// Every sentence: those about the machine, then those about PUs.
    pub(crate) fn into_lines(self) -> Vec<String> {
        let about = self.about_pus.into_iter();
        let about = about.map(|(what, pus)| format!("PUs {pus}: {what}"));
        self.lines.into_iter().chain(about).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_notes_are_one_line() {
        let mut notes = DiscoveryNotes::default();
        notes.add("a");
        notes.add("a");
        for pu in [1, 0, 3] {
            notes.add_about_pu(PuId(pu), "no cache told");
        }
        assert_eq!(notes.into_lines(), ["a", "PUs 0-1,3: no cache told"]);
    }
}
