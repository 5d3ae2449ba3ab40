//! Names of core types.

use super::sources::PMU_DEVICES;
use std::collections::BTreeSet;

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
    let told: BTreeSet<usize> = devices.iter().copied().collect();
    let mut seen = [0; PMU_DEVICES.len()];
    let mut name = |device: usize| {
        seen[device] += 1;
        match (seen[device], PMU_DEVICES.get(device + 1)) {
            (1, _) => PMU_DEVICES[device].1.to_owned(),
            (2, Some((_, weaker))) if !told.contains(&(device + 1)) => (*weaker).to_owned(),
            (nth, _) => format!("{}-{nth}", PMU_DEVICES[device].1),
        }
    };
    devices.iter().map(|&device| name(device)).collect()
}

#[cfg(test)]
mod tests {
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
