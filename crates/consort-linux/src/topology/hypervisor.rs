//! Detection of a hypervisor below the kernel, and its name.
//!
//! On x86 the `hypervisor` flag of `CPUID` decides; the rest only gives it a name. Elsewhere a name
//! is the only evidence. Pitfalls: cloud vendors' DMI strings also appear on their bare-metal
//! machines, so without the flag they count for nothing on x86; a hypervisor may show any name.

use super::identity::{machine_keys, processors};
use crate::read;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// A hypervisor below the kernel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hypervisor {
    /// Name of the hypervisor; `unknown` if only its presence shows.
    pub name: String,
    /// The file that gave the name or, without a name, its presence.
    pub evidence: String,
}

/// Finds the hypervisor; `None` on bare metal.
pub fn hypervisor(root: &Path) -> Option<Hypervisor> {
    let cpuinfo = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let named = || {
        let (name, evidence) = detect_name(root, &cpuinfo)?;
        Some(hypervisor_of(name, evidence))
    };
    // On x86 the flag decides, because cloud vendors' DMI texts also appear on bare-metal machines.
    match x86_flag(&cpuinfo) {
        Some(true) => named().or_else(|| Some(hypervisor_of("unknown", "proc/cpuinfo"))),
        Some(false) => xen_type(root).map(|name| hypervisor_of(name, XEN_TYPE)),
        None => named(),
    }
}

fn hypervisor_of(name: &str, evidence: &str) -> Hypervisor {
    Hypervisor {
        name: name.to_owned(),
        evidence: evidence.to_owned(),
    }
}

/// True if x86's flags have `hypervisor`; `None` on other architectures.
fn x86_flag(cpuinfo: &str) -> Option<bool> {
    let cpus = processors(cpuinfo);
    let flags = cpus.first()?.keys.get("flags")?;
    Some(flags.split_whitespace().any(|flag| flag == "hypervisor"))
}

const XEN_TYPE: &str = "sys/hypervisor/type";
const DSDT: &str = "sys/firmware/acpi/tables/DSDT";
const CLOCKS: &str = "sys/devices/system/clocksource/clocksource0/available_clocksource";

type HypervisorEvidence = (&'static str, &'static str);

/// Tries the most specific evidence first: a cloud vendor's DMI name says less than the interfaces
/// that the hypervisor offers, and QEMU is KVM where KVM's clock is.
fn detect_name(root: &Path, cpuinfo: &str) -> Option<HypervisorEvidence> {
    xen_type(root)
        .map(|name| (name, XEN_TYPE))
        .or_else(|| acpi_oem(root))
        .or_else(|| dmi(root, &VENDORS))
        .or_else(|| clock(root))
        .or_else(|| detect_emulation(cpuinfo))
        .or_else(|| device_tree(root))
        .or_else(|| dmi(root, &KVM_CLOUDS))
        .or_else(|| power(cpuinfo))
}

fn xen_type(root: &Path) -> Option<&'static str> {
    let kind = read::text(&root.join(XEN_TYPE))?;
    (kind == "xen").then_some("Xen")
}

/// The OEM id of the ACPI tables (bytes 10 to 15 of a table's header); root may read it.
fn acpi_oem(root: &Path) -> Option<HypervisorEvidence> {
    let table = fs::read(root.join(DSDT)).ok()?;
    (table.get(10..16)? == b"FIRECK").then_some(("Firecracker", DSDT))
}

/// DMI texts that belong to one hypervisor alone.
const VENDORS: [(&str, &str); 8] = [
    ("VMware", "VMware"),
    ("Microsoft Corporation Virtual Machine", "Hyper-V"),
    ("innotek", "VirtualBox"),
    ("VirtualBox", "VirtualBox"),
    ("Xen", "Xen"),
    ("Parallels", "Parallels"),
    ("BHYVE", "bhyve"),
    ("Apple Virtualization", "Apple Virtualization"),
];

/// DMI texts of machines that run KVM but show no KVM clock (other than x86).
const KVM_CLOUDS: [(&str, &str); 6] = [
    ("KVM", "KVM"),
    ("Google Compute Engine", "KVM"),
    ("Alibaba Cloud ECS", "KVM"),
    ("OpenStack", "KVM"),
    ("DigitalOcean", "KVM"),
    ("QEMU", "QEMU"),
];

fn dmi(root: &Path, names: &[(&str, &'static str)]) -> Option<HypervisorEvidence> {
    const DMI: &str = "sys/class/dmi/id";
    let dir = root.join(DMI);
    let field = |name: &str| read::text(&dir.join(name)).unwrap_or_default();
    let all = ["sys_vendor", "product_name", "bios_vendor"]
        .map(field)
        .join(" ");
    let (_, name) = names.iter().find(|(text, _)| all.contains(text))?;
    Some((name, DMI))
}

/// The hypervisor that offers a clock of its own to its guests, if one does.
fn clock(root: &Path) -> Option<HypervisorEvidence> {
    let clocks = read::text(&root.join(CLOCKS))?;
    let names = [
        ("kvm-clock", "KVM"),
        ("hyperv_clocksource", "Hyper-V"),
        ("xen", "Xen"),
    ];
    let (_, name) = names
        .into_iter()
        .find(|(clock, _)| clocks.contains(clock))?;
    Some((name, CLOCKS))
}

/// QEMU's software emulation, which names itself in the model name.
fn detect_emulation(cpuinfo: &str) -> Option<HypervisorEvidence> {
    let cpus = processors(cpuinfo);
    let model = cpus.first()?.keys.get("model name")?;
    let is_tcg = model.contains("QEMU TCG");
    is_tcg.then_some(("QEMU TCG", "proc/cpuinfo"))
}

fn device_tree(root: &Path) -> Option<HypervisorEvidence> {
    const NODE: &str = "proc/device-tree/hypervisor/compatible";
    let compatible = read::text(&root.join(NODE))?;
    let names = [
        ("linux,kvm", "KVM"),
        ("xen,xen", "Xen"),
        ("vmware", "VMware"),
    ];
    let found = names
        .into_iter()
        .find(|(text, _)| compatible.contains(text));
    Some((found.map_or("unknown", |(_, name)| name), NODE))
}

/// The hypervisor of a POWER guest, which has `pSeries` as its machine: emulation adds `qemu`,
/// PowerVM adds nothing.
fn power(cpuinfo: &str) -> Option<HypervisorEvidence> {
    let machine = machine_keys(cpuinfo);
    let machine = machine.get("machine").filter(|m| m.contains("pSeries"))?;
    let name = if machine.contains("qemu") {
        "QEMU"
    } else {
        "PowerVM"
    };
    Some((name, "proc/cpuinfo"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "processor : 0\nflags : fpu hypervisor\n";
    const METAL: &str = "processor : 0\nflags : fpu\n";
    const ARM: &str = "processor : 0\nFeatures : fp\n";
    const VENDOR: &str = "sys/class/dmi/id/sys_vendor";

    fn check(cpuinfo: &str, files: &[(&str, &[u8])], expected: Option<&str>) {
        let dir = tempfile::tempdir().unwrap();
        for (name, content) in files.iter().chain(&[("proc/cpuinfo", cpuinfo.as_bytes())]) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = hypervisor(dir.path()).map(|h| h.name);
        assert_eq!(found.as_deref(), expected, "{files:?}");
    }

    #[test]
    fn on_x86_the_flag_decides() {
        check(METAL, &[(VENDOR, b"Amazon EC2")], None);
        check(METAL, &[(VENDOR, b"QEMU")], None);
        check(GUEST, &[], Some("unknown"));
        check(METAL, &[(XEN_TYPE, b"xen")], Some("Xen"));
    }

    #[test]
    fn names_are_found() {
        let product = "sys/class/dmi/id/product_name";
        check(
            GUEST,
            &[(VENDOR, b"VMware, Inc."), (CLOCKS, b"tsc")],
            Some("VMware"),
        );
        let hyper_v: [(&str, &[u8]); 2] = [
            (VENDOR, b"Microsoft Corporation"),
            (product, b"Virtual Machine"),
        ];
        check(GUEST, &hyper_v, Some("Hyper-V"));
        check(
            GUEST,
            &[(VENDOR, b"QEMU"), (CLOCKS, b"kvm-clock tsc")],
            Some("KVM"),
        );
        check(GUEST, &[(VENDOR, b"QEMU"), (CLOCKS, b"tsc")], Some("QEMU"));
        check(
            GUEST,
            &[(DSDT, b"DSDTS....wFIRECKFCVMDSDT"), (CLOCKS, b"kvm-clock")],
            Some("Firecracker"),
        );
        check(GUEST, &[(DSDT, b"DSDT")], Some("unknown"));
        let tcg = format!("{GUEST}model name : QEMU TCG CPU version 2.5+\n");
        check(&tcg, &[(VENDOR, b"QEMU")], Some("QEMU TCG"));
    }

    #[test]
    fn other_architectures_go_by_names() {
        check(ARM, &[], None);
        check(ARM, &[(VENDOR, b"QEMU")], Some("QEMU"));
        check(
            ARM,
            &[(
                "proc/device-tree/hypervisor/compatible",
                b"xen,xen-4.17\0xen,xen\0",
            )],
            Some("Xen"),
        );
        let pseries = "processor : 0\ncpu : POWER9\n\nmachine : CHRP IBM pSeries";
        check(pseries, &[], Some("PowerVM"));
        check(
            &format!("{pseries} (emulated by qemu)"),
            &[("proc/device-tree/hypervisor/compatible", b"linux,kvm\0")],
            Some("KVM"),
        );
        check("processor : 0\n\nmachine : PowerNV 8335-GTH", &[], None);
    }
}
