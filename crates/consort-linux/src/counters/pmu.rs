//! The PMUs of this host that count core events.

use std::path::Path;

/// Folder in which the kernel lists event sources.
const DEVICES: &str = "sys/bus/event_source/devices";

/// One PMU of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pmu {
    /// Name of the PMU in sysfs.
    pub name: String,
    /// The number in its `type` file, for `perf_event_attr.type`.
    pub kind: u32,
}

/// The core PMUs below an injectable root, by name: `cpu` on x86 and POWER,
/// `cpu_core`, `cpu_atom` and `cpu_lowpower` on Intel hybrids, `armv8_*` on Arm.
/// No listing means no PMU.
pub fn core_pmus(root: &Path) -> Vec<Pmu> {
    let Ok(entries) = std::fs::read_dir(root.join(DEVICES)) else {
        return Vec::new();
    };
    let names = entries
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok());
    let mut pmus: Vec<Pmu> = names
        .filter(|name| is_core(name))
        .filter_map(|name| pmu(root, name))
        .collect();
    pmus.sort_by(|a, b| a.name.cmp(&b.name));
    pmus
}

fn is_core(name: &str) -> bool {
    matches!(name, "cpu" | "cpu_core" | "cpu_atom" | "cpu_lowpower") || name.starts_with("armv8_")
}

fn pmu(root: &Path, name: String) -> Option<Pmu> {
    let path = root.join(DEVICES).join(&name).join("type");
    let kind = std::fs::read_to_string(path).ok()?.trim().parse().ok()?;
    Some(Pmu { name, kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_pmus_are_told_from_others() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(core_pmus(root.path()), []);
        for (name, kind) in [
            ("cpu_core", "4"),
            ("cpu_atom", "10"),
            ("power", "22"),
            ("cpu", "?"),
        ] {
            let folder = root.path().join(DEVICES).join(name);
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join("type"), format!("{kind}\n")).unwrap();
        }
        let names: Vec<(String, u32)> = core_pmus(root.path())
            .into_iter()
            .map(|p| (p.name, p.kind))
            .collect();
        assert_eq!(
            names,
            [("cpu_atom".to_owned(), 10), ("cpu_core".to_owned(), 4)]
        );
    }
}
