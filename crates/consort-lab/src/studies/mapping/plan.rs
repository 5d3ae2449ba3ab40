//! Programs, pairs and mappings of the sweep.

use super::part_error;
use crate::simulate::chips;
use crate::simulate::programs::{find, instance};
use crate::study::StudyError;
use consort_core::mapping::MappingScheme;
use consort_experiment::ExperimentContext;
use consort_experiment::mapping::{NamedMapping, OS};
use consort_sim::chip::Chip;
use consort_sim::workload::{ProgramInstance, Workload};
use std::sync::Arc;

/// The source's machine.
const MACHINE: &str = "core2-q9550";

/// The source's programs, in the order of its Table III: little sharing of data first.
pub(in crate::studies) const PROGRAMS: [&str; 9] = [
    "canneal",
    "facesim",
    "fluidanimate",
    "streamcluster",
    "x264",
    "blackscholes",
    "bodytrack",
    "swaptions",
    "vips",
];

/// Number of [`PROGRAMS`] that share little data; these come first.
pub(in crate::studies) const LITTLE_SHARING: usize = 5;

/// The mappings, in the order of columns.
pub(in crate::studies) const MAPPINGS: [&str; 4] = [OS, "iso", "int", "spr"];

/// Threads of each program.
const THREADS: u32 = 4;

/// The pairs that a study names: all that the quick scale has.
const NAMED: [[&str; 2]; 7] = [
    ["canneal", "fluidanimate"],
    ["facesim", "streamcluster"],
    ["streamcluster", "x264"],
    ["streamcluster", "blackscholes"],
    ["streamcluster", "bodytrack"],
    ["streamcluster", "swaptions"],
    ["bodytrack", "vips"],
];

/// Time of a program's work alone, s, at the two scales.
pub(in crate::studies) const ALONE_S: [f64; 2] = [0.3, 2.0];

/// Seeds at the two scales.
pub(in crate::studies) const SEEDS: [usize; 2] = [1, 3];

/// Two programs.
pub(in crate::studies) type ProgramNamePair = [&'static str; 2];

/// All pairs, in the order of [`PROGRAMS`].
pub(in crate::studies) fn all_pairs() -> Vec<ProgramNamePair> {
    let with_later = |i: usize| PROGRAMS[i + 1..].iter().map(move |b| [PROGRAMS[i], *b]);
    (0..PROGRAMS.len()).flat_map(with_later).collect()
}

/// The pairs of this scale, in their order.
pub(super) fn pairs(context: &ExperimentContext<'_>) -> Vec<ProgramNamePair> {
    let mut pairs = all_pairs();
    pairs.retain(|pair| context.by_scale(NAMED.contains(pair), true));
    pairs
}

/// The machine.
pub(in crate::studies) fn chip() -> Result<Arc<Chip>, StudyError> {
    chips::chip(MACHINE)
}

/// One instance of each program.
pub(in crate::studies) fn instances() -> Result<Vec<ProgramInstance>, StudyError> {
    let entry = |name: &&str| Ok(instance((*name).to_owned(), &find(name)?, THREADS));
    PROGRAMS.iter().map(entry).collect()
}

/// These programs of `instances` together.
pub(in crate::studies) fn workload(names: &[&str], instances: &[ProgramInstance]) -> Workload {
    let named = |name: &&str| instances.iter().find(|entry| entry.name == **name).cloned();
    Workload {
        text: names.join("+"),
        entries: names.iter().filter_map(named).collect(),
    }
}

/// Policies that hold each of [`MAPPINGS`] on top of Linux.
pub(super) fn held() -> Result<Vec<NamedMapping>, StudyError> {
    let schemes = MappingScheme::ALL
        .iter()
        .map(|scheme| NamedMapping::from_scheme(*scheme, LINUX));
    let held = std::iter::once(NamedMapping::from_os(LINUX)).chain(schemes);
    held.map(|held| held.map_err(part_error("mappings")))
        .collect()
}

/// The operating system beneath.
pub(in crate::studies) const LINUX: &str = "linux";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::workers;
    use consort_experiment::Scale;

    #[test]
    fn the_full_scale_has_36_pairs_and_the_quick_one_those_that_studies_name() {
        let of = |scale| pairs(&ExperimentContext::new(1, scale, workers(1), &|_| ()));
        let (quick, full) = (of(Scale::Quick), of(Scale::Full));
        assert_eq!((quick.len(), full.len()), (NAMED.len(), 36));
        assert!(quick.iter().all(|pair| full.contains(pair)));
        let programs = quick.iter().flatten();
        assert!(PROGRAMS.iter().all(|p| programs.clone().any(|q| q == p)));
    }

    #[test]
    fn mappings_are_held_by_their_names() {
        let held = held().unwrap();
        let names: Vec<&str> = held.iter().map(NamedMapping::name).collect();
        assert_eq!(names, MAPPINGS);
    }
}
