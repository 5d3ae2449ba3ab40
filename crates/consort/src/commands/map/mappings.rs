//! Mappings that were asked for.

use crate::failure::bad_input;
use anyhow::Result;
use consort_core::mapping::{Exhaustive, Mapping, Scheme};
use consort_core::{Topology, hint};
use consort_experiment::mapping::OS;

/// The word that asks for every mapping.
const ALL: &str = "all";

/// One mapping to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    /// The operating system's.
    Os,
    /// A named one.
    Scheme(Scheme),
    /// These PUs.
    Fixed(Mapping),
}

/// Returns the mappings, and how many there are up to symmetry where all were asked for.
pub(super) fn asked(
    text: &str,
    bound: usize,
    topology: &Topology,
    threads: &[usize],
) -> Result<(Vec<Asked>, Option<usize>)> {
    if text == ALL {
        let all = Exhaustive::new(topology, threads, bound)
            .map_err(|error| bad_input(format!("--mappings all: {error} (--bound)")))?;
        let fixed = all.mappings().map(Asked::Fixed);
        let mappings = std::iter::once(Asked::Os).chain(fixed).collect();
        return Ok((mappings, Some(all.count())));
    }
    let mut mappings: Vec<Asked> = Vec::new();
    for name in text.split(',') {
        let mapping = named(name.trim())?;
        if mappings.contains(&mapping) {
            return Err(bad_input(format!("--mappings: '{name}' is named twice")));
        }
        mappings.push(mapping);
    }
    Ok((mappings, None))
}

fn named(name: &str) -> Result<Asked> {
    if name == OS {
        return Ok(Asked::Os);
    }
    name.parse().map(Asked::Scheme).map_err(|_| {
        let known = Scheme::ALL.iter().map(|scheme| scheme.name());
        let hint = hint(name, [OS].into_iter().chain(known).chain([ALL]));
        bad_input(format!("--mappings: unknown mapping '{name}'; {hint}"))
    })
}

impl Asked {
    /// Its name in reports, and what the policy `mapping` calls it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Os => OS.to_owned(),
            Self::Scheme(scheme) => scheme.to_string(),
            Self::Fixed(mapping) => mapping.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<String>> {
        let topology = Topology::uniform(2, 1)?;
        let (asked, _) = asked(text, 10, &topology, &[1, 1])?;
        Ok(asked.iter().map(Asked::name).collect())
    }

    #[test]
    fn names_are_read_in_order_and_all_is_os_with_every_other() {
        assert_eq!(read("os,spr").unwrap(), ["os", "spr"]);
        assert_eq!(read("all").unwrap(), ["os", "1/0"]);
    }

    #[test]
    fn what_is_not_a_mapping_is_told_what_would_be_right() {
        let error = |text: &str| read(text).unwrap_err().to_string();
        assert_eq!(
            error("os,isso"),
            "--mappings: unknown mapping 'isso'; did you mean 'iso'?"
        );
        assert_eq!(error("os,os"), "--mappings: 'os' is named twice");
    }
}
