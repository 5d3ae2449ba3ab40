//! Core types, from the best of several sources.
//!
//! The PMU devices, `cpu_capacity` and `acpi_cppc` each partition the cores; two cores are of one
//! type if none of them distinguishes the two. The highest frequency counts only if all of those
//! see one type. No chip maker's list of models is consulted, and any number of types may come out.
//!
//! Ratings of single cores are checked ([`ratings`]): the PMU devices' lists outrank them, and a
//! type has the value in the middle of its cores'. Without such lists `cpu_capacity` is believed as
//! it is, because the kernel's scheduler acts on it.

mod ratings;

use super::DiscoveryNotes;
use super::caches::DiscoveredCache;
use crate::read;
use consort_core::topology::CoreType;
use consort_core::{PuId, PuSet};
use ratings::{CoreFamilies, RatedCores, upper_median};
use serde::{Deserialize, Serialize};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Core types, and the type of each core.
#[derive(Debug)]
pub(crate) struct CoreTypes {
    /// The types, largest capacity first.
    pub(crate) types: Vec<CoreType>,
    /// Index into `types` of each core.
    pub(crate) of_core: Vec<usize>,
    /// The sources that distinguish types; empty if all cores are alike.
    pub(crate) sources: Vec<CoreTypeSource>,
}

/// One source's view: the kind of each core, and the numbers behind it if it has any.
struct SourceView {
    source: CoreTypeSource,
    kinds: Vec<usize>,
    values: Option<Vec<u64>>,
}

/// Finds the types of the cores, each given as its online CPUs.
pub(crate) fn core_types(
    root: &Path,
    cores: &[PuSet],
    caches: &[DiscoveredCache],
    notes: &mut DiscoveryNotes,
) -> CoreTypes {
    let views = views(root, cores, caches, notes);
    let chosen = choose_sources(&views, cores.len());
    let Some(last) = chosen.last() else {
        return CoreTypes {
            types: vec![CoreType::uniform()],
            of_core: vec![0; cores.len()],
            sources: Vec::new(),
        };
    };
    let until = views.iter().position(|v| v.source == *last).unwrap_or(0);
    let classes = classes(&views[..=until], cores.len());
    CoreTypes {
        sources: chosen,
        ..rank_types(&views, &classes, notes)
    }
}

fn views(
    root: &Path,
    cores: &[PuSet],
    caches: &[DiscoveredCache],
    notes: &mut DiscoveryNotes,
) -> Vec<SourceView> {
    let mut views = Vec::new();
    let pmus = pmu_devices(root, cores);
    if let Some(kinds) = &pmus {
        views.push(SourceView {
            source: CoreTypeSource::PmuDevices,
            kinds: kinds.clone(),
            values: None,
        });
    }
    let checked = RatedCores::new(cores, caches);
    let mut families = pmus.clone().unwrap_or_else(|| vec![0; cores.len()]);
    let are_ordered = pmus.is_some();
    let numbers = |file: &str| numbers(root, cores, file);
    let ratings = [
        (CoreTypeSource::CpuCapacity, vec![numbers("cpu_capacity")]),
        (
            CoreTypeSource::AcpiCppc,
            vec![
                numbers("acpi_cppc/highest_perf"),
                numbers("acpi_cppc/nominal_perf"),
            ],
        ),
        (
            CoreTypeSource::MaxFrequency,
            vec![numbers("cpufreq/cpuinfo_max_freq")],
        ),
    ];
    for (source, ratings) in ratings {
        let is_kernels = source == CoreTypeSource::CpuCapacity && !are_ordered;
        let found = ratings.iter().enumerate().filter_map(|(i, rated)| {
            let mut own = DiscoveryNotes::default();
            let values = if is_kernels {
                rated.iter().copied().collect::<Option<Vec<u64>>>()?
            } else {
                let families = CoreFamilies {
                    of_core: &families,
                    are_ordered,
                };
                let others = ratings.iter().enumerate().find(|(other, _)| *other != i);
                let also = others.map_or(&[][..], |(_, also)| also);
                checked.repair_ratings(&source.to_string(), rated, also, &families, &mut own)?
            };
            Some((ratings::kinds(&values), values, own))
        });
        // The second kind of rating counts if the first is missing, or sees one type only.
        let mut found: Vec<_> = found.collect();
        found.sort_by_key(|(kinds, ..)| count_distinct(kinds) < 2);
        let Some((kinds, values, own)) = found.into_iter().next() else {
            continue;
        };
        let is_distinct = count_distinct(&classes(&views, cores.len())) > 1;
        if source != CoreTypeSource::MaxFrequency || !is_distinct {
            notes.extend(own);
        }
        if is_kernels {
            families.clone_from(&kinds);
        }
        views.push(SourceView {
            source,
            kinds,
            values: Some(values),
        });
    }
    views
}

/// The sources that distinguish cores which the sources before them do not.
fn choose_sources(views: &[SourceView], cores: usize) -> Vec<CoreTypeSource> {
    let mut chosen = Vec::new();
    for (i, view) in views.iter().enumerate() {
        let hint_not_wanted = view.source == CoreTypeSource::MaxFrequency && !chosen.is_empty();
        let before = count_distinct(&classes(&views[..i], cores));
        if !hint_not_wanted && count_distinct(&classes(&views[..=i], cores)) > before {
            chosen.push(view.source);
        }
    }
    chosen
}

/// For each core, the kinds that all the views give it.
fn classes(views: &[SourceView], cores: usize) -> Vec<Vec<usize>> {
    let class = |core: usize| views.iter().map(|v| v.kinds[core]).collect();
    (0..cores).map(class).collect()
}

fn count_distinct<T: Ord>(values: &[T]) -> usize {
    values.iter().collect::<BTreeSet<_>>().len()
}

/// Makes types of classes: their capacities, their order, their names.
fn rank_types(
    views: &[SourceView],
    classes: &[Vec<usize>],
    notes: &mut DiscoveryNotes,
) -> CoreTypes {
    let values = capacity_values(views, classes.len(), notes);
    let by_pmu = views
        .first()
        .is_some_and(|v| v.source == CoreTypeSource::PmuDevices);
    let mut order = sort_by_strength(classes, &values, by_pmu);
    if !order.is_sorted_by_key(|(_, value)| Reverse(*value)) {
        notes.add("the ratings of the core types contradict the PMU devices; assumed equal");
        order.iter_mut().for_each(|(_, value)| *value = 1024);
    }
    let position = |class: &Vec<usize>| order.iter().position(|(c, _)| *c == class).unwrap_or(0);
    let largest = order.first().map_or(1, |&(_, value)| value.max(1));
    let capacities = order
        .iter()
        .map(|&(_, value)| relative_capacity(value, largest));
    let types = names(views, &order).into_iter().zip(capacities);
    CoreTypes {
        of_core: classes.iter().map(position).collect(),
        types: types
            .map(|(name, capacity)| CoreType {
                name,
                capacity,
                pipeline: None,
            })
            .collect(),
        sources: Vec::new(),
    }
}

/// Each class with the value in the middle of its cores', best class first. The order of the PMU
/// devices outranks the values.
fn sort_by_strength<'a>(
    classes: &'a [Vec<usize>],
    values: &[u64],
    by_pmu: bool,
) -> Vec<(&'a Vec<usize>, u64)> {
    let mut members: BTreeMap<&Vec<usize>, Vec<u64>> = BTreeMap::new();
    for (class, &value) in classes.iter().zip(values) {
        members.entry(class).or_default().push(value);
    }
    let value = |(class, mut values): (&'a Vec<usize>, Vec<u64>)| {
        (class, upper_median(&mut values).unwrap_or(0))
    };
    let mut order: Vec<(&Vec<usize>, u64)> = members.into_iter().map(value).collect();
    let device = |class: &Vec<usize>| class.first().filter(|_| by_pmu).copied();
    order.sort_by_key(|&(class, value)| (device(class), Reverse(value), class));
    order
}

/// Names of the types, strongest first: by PMU device if those distinguish types, else by size.
fn names(views: &[SourceView], order: &[(&Vec<usize>, u64)]) -> Vec<String> {
    let first_view = views.first().map(|view| view.source);
    let devices: Vec<usize> = order.iter().map(|(class, _)| class[0]).collect();
    match first_view {
        Some(CoreTypeSource::PmuDevices) if count_distinct(&devices) > 1 => names_by_pmu(&devices),
        _ => names_by_size(order.len()),
    }
}

/// `value` of `largest` as a capacity, at least 1.
fn relative_capacity(value: u64, largest: u64) -> u32 {
    let (value, largest) = (u128::from(value), u128::from(largest));
    let rounded = (value * 1024 + largest / 2) / largest;
    u32::try_from(rounded).unwrap_or(1024).clamp(1, 1024)
}

/// For each core, its number from the source that distinguishes most kinds, the most trusted of
/// equals.
fn capacity_values(views: &[SourceView], cores: usize, notes: &mut DiscoveryNotes) -> Vec<u64> {
    let with_numbers = views.iter().rev().filter(|v| count_distinct(&v.kinds) > 1);
    let best = with_numbers
        .filter_map(|v| Some((count_distinct(&v.kinds), v.values.as_ref()?)))
        .max_by_key(|(kinds, _)| *kinds);
    best.map_or_else(
        || {
            notes.add("no source shows the relative capacity of the core types; assumed equal");
            vec![1024; cores]
        },
        |(_, values)| values.clone(),
    )
}

/// Names of `n` types, strongest first.
pub(super) fn names_by_size(n: usize) -> Vec<String> {
    let names: &[&str] = match n {
        2 => &["big", "small"],
        3 => &["big", "medium", "small"],
        _ => &[],
    };
    let name = |i: usize| {
        names
            .get(i)
            .map_or_else(|| format!("type{i}"), |n| (*n).to_owned())
    };
    (0..n).map(name).collect()
}

/// Names of types by the index of each one's device in [`PMU_DEVICES`], strongest first.
///
/// A second type of one device is named as the next weaker device's if no type has that, else it is
/// numbered.
pub(super) fn names_by_pmu(devices: &[usize]) -> Vec<String> {
    let reported: BTreeSet<usize> = devices.iter().copied().collect();
    let mut seen = [0; PMU_DEVICES.len()];
    let mut name = |device: usize| {
        seen[device] += 1;
        match (seen[device], PMU_DEVICES.get(device + 1)) {
            (1, _) => PMU_DEVICES[device].1.to_owned(),
            (2, Some((_, weaker))) if !reported.contains(&(device + 1)) => (*weaker).to_owned(),
            (nth, _) => format!("{}-{nth}", PMU_DEVICES[device].1),
        }
    };
    devices.iter().map(|&device| name(device)).collect()
}

/// A source of core types, in descending order of trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CoreTypeSource {
    /// PMUs of Intel hybrid chips: the kernel's own partition, without numbers.
    PmuDevices,
    /// `cpu_capacity`: the number that the kernel's scheduler uses.
    CpuCapacity,
    /// `acpi_cppc/highest_perf`, or `nominal_perf` if that is equal everywhere: the firmware's
    /// numbers for performance.
    AcpiCppc,
    /// `cpufreq/cpuinfo_max_freq`: the last hint, used if no other source distinguishes types.
    MaxFrequency,
}

impl fmt::Display for CoreTypeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::PmuDevices => "PMU devices",
            Self::CpuCapacity => "cpu_capacity",
            Self::AcpiCppc => "acpi_cppc",
            Self::MaxFrequency => "cpuinfo_max_freq",
        })
    }
}

/// PMU devices of hybrid x86 chips with the usual names of their cores, strongest first.
pub(super) const PMU_DEVICES: [(&str, &str); 3] = [
    ("cpu_core", "P"),
    ("cpu_atom", "E"),
    ("cpu_lowpower", "LP-E"),
];

/// For each core its index into [`PMU_DEVICES`]; `None` unless every core has one.
pub(super) fn pmu_devices(root: &Path, cores: &[PuSet]) -> Option<Vec<usize>> {
    let devices = root.join("sys/bus/event_source/devices");
    let members = PMU_DEVICES.map(|(name, _)| read::pus(&devices.join(name).join("cpus")));
    let device = |core: &PuSet| {
        let holds = |set: &Option<PuSet>| set.as_ref().is_some_and(|set| core.is_subset(set));
        members.iter().position(holds)
    };
    cores.iter().map(device).collect()
}

/// For each core the largest number in a file of its CPUs; `None` for cores without one, and for 0.
pub(super) fn numbers(root: &Path, cores: &[PuSet], file: &str) -> Vec<Option<u64>> {
    let number = |core: &PuSet| {
        let of_pu = |pu: PuId| read::value(&read::pu_dir(root, pu).join(file));
        let largest = core.iter().filter_map(of_pu).max();
        largest.filter(|&value| value > 0)
    };
    cores.iter().map(number).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::PuId;
    use std::fs;

    /// One core per value; each file is written for every core that has a value.
    fn check(
        files: &[(&str, &[u64])],
        pmus: &[(&str, &str)],
        expected: &str,
        sources: &[CoreTypeSource],
    ) {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: String, content: String| {
            let path = dir.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        };
        for (name, values) in files {
            for (pu, value) in values.iter().enumerate() {
                write(
                    format!("sys/devices/system/cpu/cpu{pu}/{name}"),
                    value.to_string(),
                );
            }
        }
        for (pmu, cpus) in pmus {
            write(
                format!("sys/bus/event_source/devices/{pmu}/cpus"),
                (*cpus).to_owned(),
            );
        }
        let count = files
            .iter()
            .map(|(_, values)| values.len())
            .max()
            .unwrap_or(0);
        let cores: Vec<PuSet> = (0..count.max(4) as u32)
            .map(|pu| PuSet::from(PuId(pu)))
            .collect();
        let found = core_types(dir.path(), &cores, &[], &mut DiscoveryNotes::default());
        let name = |&t: &usize| format!("{}={}", found.types[t].name, found.types[t].capacity);
        let shown: Vec<String> = found.of_core.iter().map(name).collect();
        assert_eq!(shown.join(" "), expected);
        assert_eq!(found.sources, sources);
    }

    use CoreTypeSource::{AcpiCppc, CpuCapacity, MaxFrequency, PmuDevices};
    const UNIFORM: &str = "uniform=1024 uniform=1024 uniform=1024 uniform=1024";

    #[test]
    fn without_sources_all_cores_are_alike() {
        check(&[], &[], UNIFORM, &[]);
        check(&[("cpu_capacity", &[1024; 4])], &[], UNIFORM, &[]);
    }

    #[test]
    fn source_that_leaves_cores_out_is_unused() {
        check(&[("cpu_capacity", &[1024, 400])], &[], UNIFORM, &[]);
        check(&[], &[("cpu_core", "0-1")], UNIFORM, &[]);
    }

    #[test]
    fn preferred_cores_are_not_a_type() {
        check(
            &[("acpi_cppc/highest_perf", &[166, 156, 146, 136])],
            &[],
            UNIFORM,
            &[],
        );
    }

    #[test]
    fn equal_capacities_do_not_hide_firmware() {
        let files: &[(&str, &[u64])] = &[
            ("cpu_capacity", &[1024; 4]),
            ("acpi_cppc/highest_perf", &[64, 63, 40, 40]),
        ];
        check(
            files,
            &[],
            "big=1024 big=1024 small=640 small=640",
            &[AcpiCppc],
        );
    }

    #[test]
    fn second_kind_of_atom_is_low_power() {
        let pmus = [("cpu_core", "0"), ("cpu_atom", "1-4")];
        let files: &[(&str, &[u64])] = &[("acpi_cppc/highest_perf", &[64, 44, 30, 44, 30])];
        check(
            files,
            &pmus,
            "P=1024 E=704 LP-E=480 E=704 LP-E=480",
            &[PmuDevices, AcpiCppc],
        );
    }

    #[test]
    fn each_pmu_is_a_type_even_without_numbers() {
        let pmus = [
            ("cpu_core", "0"),
            ("cpu_atom", "1-2"),
            ("cpu_lowpower", "3"),
        ];
        check(&[], &pmus, "P=1024 E=1024 E=1024 LP-E=1024", &[PmuDevices]);
    }

    #[test]
    fn frequency_is_the_last_hint() {
        let freq: (&str, &[u64]) = (
            "cpufreq/cpuinfo_max_freq",
            &[3_000_000, 3_000_000, 1_500_000, 1_500_000],
        );
        check(
            &[freq],
            &[],
            "big=1024 big=1024 small=512 small=512",
            &[MaxFrequency],
        );
        let capacity: (&str, &[u64]) = ("cpu_capacity", &[1024, 512, 512, 512]);
        check(
            &[freq, capacity],
            &[],
            "big=1024 small=512 small=512 small=512",
            &[CpuCapacity],
        );
    }

    #[test]
    fn four_types_are_four_types() {
        let capacity: (&str, &[u64]) = ("cpu_capacity", &[250, 500, 800, 1024]);
        check(
            &[capacity],
            &[],
            "type3=250 type2=500 type1=800 type0=1024",
            &[CpuCapacity],
        );
    }
}

#[cfg(test)]
mod names_tests {
    use super::*;

    #[test]
    fn names_are_distinct() {
        assert_eq!(names_by_pmu(&[0, 1, 1]), ["P", "E", "LP-E"]);
        assert_eq!(names_by_pmu(&[0, 0, 1, 2]), ["P", "P-2", "E", "LP-E"]);
        assert_eq!(
            names_by_pmu(&[0, 1, 1, 2, 1]),
            ["P", "E", "E-2", "LP-E", "E-3"]
        );
        assert_eq!(names_by_size(2), ["big", "small"]);
        assert_eq!(names_by_size(4), ["type0", "type1", "type2", "type3"]);
    }
}
