//! Discovery of RAPL meters (Linux `Documentation/power/powercap/powercap.rst`).

use crate::read;
use serde::Serialize;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// One RAPL meter: a zone, as the kernel calls it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Zone {
    /// File with the energy counted so far, µJ.
    pub counter: PathBuf,
    /// Largest count, µJ, after which the counter begins at zero again.
    pub range_uj: u64,
    /// The metered part of the machine, as the kernel names it: `package-0`, `dram`.
    pub name: String,
}

/// Availability of the energy signal on a host, as `consort probe` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnergyStatus {
    /// True if there is a package's meter and all meters can be read.
    pub available: bool,
    /// The metered parts, or the obstacle to reading them.
    pub reason: String,
}

/// Looks for readable meters on the host below `root`.
pub fn probe(root: &Path) -> EnergyStatus {
    let found = zones(root);
    let reason = match &found {
        Ok(zones) => {
            let names: Vec<&str> = zones.iter().map(|zone| zone.name.as_str()).collect();
            format!("RAPL meters {}", names.join(", "))
        }
        Err(why) => why.clone(),
    };
    EnergyStatus {
        available: found.is_ok(),
        reason,
    }
}

/// Meters of every package, and of memory where it is metered apart from its package. Cores and
/// uncore are parts of their package, and packages are parts of `psys`: they would count twice. So
/// would `intel-rapl-mmio`, a second interface to the same meters.
pub(super) fn zones(root: &Path) -> Result<Vec<Zone>, String> {
    let dir = root.join("sys/class/powercap");
    let Ok(entries) = fs::read_dir(&dir) else {
        return Err("no /sys/class/powercap: the processor or the hypervisor has no RAPL".into());
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    let is_rapl = |path: &&PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with("intel-rapl:"))
    };
    let zones = paths.iter().filter(is_rapl).filter_map(|path| zone(path));
    let zones = zones.collect::<Result<Vec<Zone>, String>>()?;
    if zones.iter().any(|zone| zone.name.starts_with("package")) {
        return Ok(zones);
    }
    Err("/sys/class/powercap has no RAPL meter of a package".into())
}

/// A meter of a package or of memory; nothing for others.
fn zone(path: &Path) -> Option<Result<Zone, String>> {
    let name = read::text(&path.join("name"))?;
    if !name.starts_with("package") && name != "dram" {
        return None;
    }
    Some(open_zone(path, name))
}

fn open_zone(path: &Path, name: String) -> Result<Zone, String> {
    let counter = path.join("energy_uj");
    read_uj(&counter).map_err(|e| refusal(&counter, &e))?;
    let range = path.join("max_energy_range_uj");
    let range_uj = read_uj(&range).map_err(|e| refusal(&range, &e))?;
    Ok(Zone {
        counter,
        range_uj,
        name,
    })
}

pub(super) fn read_uj(path: &Path) -> io::Result<u64> {
    let text = fs::read_to_string(path)?;
    let number = text.trim().parse();
    number.map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not a number"))
}

fn refusal(path: &Path, error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::PermissionDenied => "; only root may, since Linux 5.10",
        _ => "",
    };
    format!("{} cannot be read: {error}{hint}", path.display())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Puts meters, each with its count and range in µJ, into a made-up `/sys`.
    pub(in super::super) fn host(zones: &[(&str, &str, u64, u64)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (id, name, count, range) in zones {
            let dir = root.path().join("sys/class/powercap").join(id);
            fs::create_dir_all(&dir).unwrap();
            fs::write(dir.join("name"), format!("{name}\n")).unwrap();
            fs::write(dir.join("energy_uj"), format!("{count}\n")).unwrap();
            fs::write(dir.join("max_energy_range_uj"), format!("{range}\n")).unwrap();
        }
        root
    }

    #[test]
    fn packages_and_memory_are_metered_and_nothing_twice() {
        let root = host(&[
            ("intel-rapl:0", "package-0", 5, 100),
            ("intel-rapl:0:0", "core", 3, 100),
            ("intel-rapl:0:1", "dram", 2, 100),
            ("intel-rapl:1", "psys", 9, 100),
            ("intel-rapl-mmio:0", "package-0", 5, 100),
        ]);
        let status = probe(root.path());
        assert_eq!(
            (status.available, status.reason.as_str()),
            (true, "RAPL meters package-0, dram")
        );
    }

    #[test]
    fn without_meters_the_reason_is_told() {
        let none = tempfile::tempdir().unwrap();
        assert!(probe(none.path()).reason.contains("no RAPL"));
        let status = probe(host(&[("intel-rapl:0", "psys", 1, 2)]).path());
        assert!(!status.available);
        assert!(status.reason.contains("no RAPL meter of a package"));
    }

    #[test]
    fn a_meter_that_cannot_be_read_is_named() {
        let root = host(&[("intel-rapl:0", "package-0", 1, 2)]);
        let counter = root
            .path()
            .join("sys/class/powercap/intel-rapl:0/energy_uj");
        fs::write(&counter, "x").unwrap();
        let reason = probe(root.path()).reason;
        assert!(
            reason.ends_with("energy_uj cannot be read: not a number"),
            "{reason}"
        );
        fs::remove_file(&counter).unwrap();
        assert!(probe(root.path()).reason.contains("cannot be read"));
    }

    #[test]
    fn who_may_read_meters_is_said() {
        let denied = io::Error::from(io::ErrorKind::PermissionDenied);
        let text = refusal(Path::new("/energy_uj"), &denied);
        assert_eq!(
            text,
            "/energy_uj cannot be read: permission denied; only root may, since Linux 5.10"
        );
    }
}
