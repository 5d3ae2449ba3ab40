//! Mappings that were asked for.

use crate::failure::bad_input;
use anyhow::Result;
use consort_core::mapping::{ExhaustiveMappings, Mapping, MappingScheme};
use consort_core::{Topology, hint};
use consort_experiment::mapping::OS;

/// The word that asks for every mapping.
const ALL: &str = "all";

/// One mapping to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MappingChoice {
    /// The operating system's.
    Os,
    /// A named one.
    Scheme(MappingScheme),
    /// These PUs.
    Fixed(Mapping),
}

/// Returns the mappings, and how many there are up to symmetry where all were asked for.
pub(super) fn parse_mappings(
    text: &str,
    bound: usize,
    topology: &Topology,
    threads: &[usize],
) -> Result<(Vec<MappingChoice>, Option<usize>)> {
    if text == ALL {
        let all = ExhaustiveMappings::new(topology, threads, bound)
            .map_err(|error| bad_input(format!("--mappings all: {error} (--bound)")))?;
        let fixed = all.mappings().map(MappingChoice::Fixed);
        let mappings = std::iter::once(MappingChoice::Os).chain(fixed).collect();
        return Ok((mappings, Some(all.count())));
    }
    let mut mappings: Vec<MappingChoice> = Vec::new();
    for name in text.split(',') {
        let mapping = parse_mapping(name.trim())?;
        if mappings.contains(&mapping) {
            return Err(bad_input(format!("--mappings: '{name}' is named twice")));
        }
        mappings.push(mapping);
    }
    Ok((mappings, None))
}

fn parse_mapping(name: &str) -> Result<MappingChoice> {
    if name == OS {
        return Ok(MappingChoice::Os);
    }
    name.parse().map(MappingChoice::Scheme).map_err(|_| {
        let known = MappingScheme::ALL.iter().map(|scheme| scheme.name());
        let hint = hint(name, [OS].into_iter().chain(known).chain([ALL]));
        bad_input(format!("--mappings: unknown mapping '{name}'; {hint}"))
    })
}

impl MappingChoice {
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
        let (requested, _) = parse_mappings(text, 10, &topology, &[1, 1])?;
        Ok(requested.iter().map(MappingChoice::name).collect())
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
