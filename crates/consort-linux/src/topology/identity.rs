//! Microarchitectures of the CPUs, by which event files are chosen.
//!
//! Usage: [`identities`] groups the online CPUs by identity; hybrid Arm chips have
//! several groups, Intel hybrid chips one (family and model are the same for
//! all their cores; the core types distinguish them).

use crate::read;
use consort_core::{PuId, PuSet};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;

/// Identity of a CPU's microarchitecture, as the processor reports it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(tag = "architecture", rename_all = "lowercase")]
pub enum CpuIdentity {
    /// `CPUID` leaf 1, as `/proc/cpuinfo` shows it.
    X86 {
        /// `vendor_id`, for example `GenuineIntel`.
        vendor: String,
        /// `cpu family`, extended family included.
        family: u32,
        /// `model`, extended model included.
        model: u32,
        /// `stepping`.
        stepping: u32,
    },
    /// The fields of Arm's `MIDR_EL1`.
    Arm {
        /// `CPU implementer`, for example 0x41 for Arm Limited.
        implementer: u32,
        /// `CPU part`, for example 0xd0c for Neoverse N1.
        part: u32,
        /// `CPU variant` (the r of rNpM).
        variant: u32,
        /// `CPU revision` (the p of rNpM).
        revision: u32,
    },
    /// The `cpu :` line of IBM POWER.
    Power {
        /// First word of the line, for example `POWER9`.
        name: String,
        /// Processor version register as printed after `pvr`, for example `004e 1202`.
        pvr: Option<String>,
    },
    /// The processor reports nothing that is known here.
    Unknown,
}

impl fmt::Display for CpuIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::X86 {
                vendor,
                family,
                model,
                stepping,
            } => write!(
                f,
                "{vendor} family {family} model {model} stepping {stepping}"
            ),
            Self::Arm {
                implementer,
                part,
                variant,
                revision,
            } => write!(
                f,
                "Arm implementer {implementer:#x} part {part:#x} r{variant}p{revision}"
            ),
            Self::Power { name, pvr: None } => f.write_str(name),
            Self::Power {
                name,
                pvr: Some(pvr),
            } => write!(f, "{name} (pvr {pvr})"),
            Self::Unknown => f.write_str("unknown"),
        }
    }
}

/// CPUs of one identity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityGroup {
    /// The CPUs.
    pub pus: PuSet,
    /// Their microarchitecture.
    pub identity: CpuIdentity,
    /// Name for people (`model name`), where there is one.
    pub model_name: Option<String>,
}

/// The online CPUs by identity, in the order of each group's first CPU.
pub fn identities(root: &Path, online: &PuSet) -> Vec<IdentityGroup> {
    let text = read::text(&root.join("proc/cpuinfo")).unwrap_or_default();
    let machine = machine_keys(&text);
    let mut groups: BTreeMap<(CpuIdentity, Option<String>), PuSet> = BTreeMap::new();
    let mut rest = online.clone();
    let mut all = BTreeSet::new();
    for Processor { pu, keys } in processors(&text) {
        let name = lookup(&keys, &machine, "model name").map(str::to_owned);
        let identity = x86(&keys).or_else(|| arm(&keys, &machine));
        let identity = identity.or_else(|| power(&keys));
        let key = (identity.unwrap_or(CpuIdentity::Unknown), name);
        all.insert(key.clone());
        if rest.contains(pu) {
            rest.remove(pu);
            groups.entry(key).or_default().insert(pu);
        }
    }
    if !rest.is_empty() {
        // Containers may show their processors with numbers from 0 on: if all are alike, so are
        // the CPUs that are not listed.
        let only = all.pop_first().filter(|_| all.is_empty());
        let key = only.unwrap_or((CpuIdentity::Unknown, None));
        let others = groups.entry(key).or_default();
        *others = others.union(&rest);
    }
    let group = |((identity, model_name), pus)| IdentityGroup {
        pus,
        identity,
        model_name,
    };
    let mut groups: Vec<_> = groups.into_iter().map(group).collect();
    groups.sort_by_key(|g| g.pus.first());
    groups
}

fn x86(keys: &CpuinfoKeys) -> Option<CpuIdentity> {
    Some(CpuIdentity::X86 {
        vendor: keys.get("vendor_id")?.clone(),
        family: keys.get("cpu family")?.parse().ok()?,
        model: keys.get("model")?.parse().ok()?,
        stepping: keys
            .get("stepping")
            .and_then(|s| s.parse().ok())
            .unwrap_or(0),
    })
}

fn arm(keys: &CpuinfoKeys, machine: &CpuinfoKeys) -> Option<CpuIdentity> {
    let field = |key| number(lookup(keys, machine, key)?);
    Some(CpuIdentity::Arm {
        implementer: field("CPU implementer")?,
        part: field("CPU part")?,
        variant: field("CPU variant").unwrap_or(0),
        revision: field("CPU revision").unwrap_or(0),
    })
}

fn power(keys: &CpuinfoKeys) -> Option<CpuIdentity> {
    let name = keys.get("cpu")?.split([',', ' ']).next()?;
    if name.is_empty() {
        return None;
    }
    let pvr = keys.get("revision").and_then(|r| r.split_once("(pvr "));
    Some(CpuIdentity::Power {
        name: name.to_owned(),
        pvr: pvr.map(|(_, pvr)| pvr.trim_end_matches(')').to_owned()),
    })
}

/// Reads a decimal number, or a hexadecimal one after `0x`.
fn number(text: &str) -> Option<u32> {
    match text.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Keys and values of one record.
pub(crate) type CpuinfoKeys = BTreeMap<String, String>;

/// One CPU's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processor {
    /// The CPU.
    pub(crate) pu: PuId,
    /// Keys and values of the record.
    pub(crate) keys: CpuinfoKeys,
}

/// The records of all CPUs, in file order.
pub(crate) fn processors(text: &str) -> Vec<Processor> {
    blocks(text).filter_map(processor).collect()
}

/// The keys that belong to no CPU, such as `platform` and `machine` on POWER.
pub(crate) fn machine_keys(text: &str) -> CpuinfoKeys {
    blocks(text)
        .filter(|block| processor_number(block).is_none())
        .flatten()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Value of a key of a CPU, else of the machine.
pub(crate) fn lookup<'a>(
    keys: &'a CpuinfoKeys,
    machine: &'a CpuinfoKeys,
    key: &str,
) -> Option<&'a str> {
    keys.get(key)
        .or_else(|| machine.get(key))
        .map(String::as_str)
}

type CpuinfoBlock<'a> = Vec<(&'a str, &'a str)>;

fn blocks(text: &str) -> impl Iterator<Item = CpuinfoBlock<'_>> {
    text.split("\n\n").flat_map(split_at_processors)
}

/// Splits a paragraph into records: some architectures print no blank line between them.
fn split_at_processors(paragraph: &str) -> Vec<CpuinfoBlock<'_>> {
    let mut blocks: Vec<CpuinfoBlock<'_>> = vec![Vec::new()];
    for (key, value) in paragraph.lines().filter_map(|line| line.split_once(':')) {
        let (key, value) = (key.trim(), value.trim());
        if is_number_line(key, value) {
            blocks.push(Vec::new());
        }
        if let Some(block) = blocks.last_mut() {
            block.push((key, value));
        }
    }
    blocks
}

fn is_number_line(key: &str, value: &str) -> bool {
    key == "processor" && value.parse::<u32>().is_ok()
}

fn processor_number(block: &CpuinfoBlock<'_>) -> Option<u32> {
    let (_, number) = block.iter().find(|(k, v)| is_number_line(k, v))?;
    number.parse().ok()
}

fn processor(block: CpuinfoBlock<'_>) -> Option<Processor> {
    let pu = PuId(processor_number(&block)?);
    let keys = block.into_iter();
    Some(Processor {
        pu,
        keys: keys.map(|(k, v)| (k.to_owned(), v.to_owned())).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::fs;

    fn shown(cpuinfo: &str, online: &str) -> Vec<String> {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("proc")).unwrap();
        fs::write(dir.path().join("proc/cpuinfo"), cpuinfo).unwrap();
        let groups = identities(dir.path(), &online.parse().unwrap());
        let show = |g: &IdentityGroup| format!("{}: {}", g.pus, g.identity);
        groups.iter().map(show).collect()
    }

    #[test]
    fn x86_is_read() {
        let text = "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 97\n\
                    model name : Ryzen\nstepping : 2\n";
        assert_eq!(
            shown(text, "0"),
            ["0: AuthenticAMD family 25 model 97 stepping 2"]
        );
    }

    #[test]
    fn pus_that_a_container_numbers_anew_are_known() {
        let text =
            "processor : 0\nvendor_id : AuthenticAMD\ncpu family : 25\nmodel : 97\nstepping : 2\n";
        let expected = ["2-3: AuthenticAMD family 25 model 97 stepping 2"];
        assert_eq!(shown(text, "2-3"), expected);
    }

    #[test]
    fn hybrid_arm_has_a_group_for_each_part() {
        let cpu = |n, part| {
            format!(
                "processor : {n}\nCPU implementer : 0x41\nCPU variant : 0x1\nCPU part : {part}\nCPU revision : 2\n\n"
            )
        };
        let text = [cpu(0, "0xd05"), cpu(1, "0xd41"), cpu(2, "0xd05")].concat();
        let expected = ["0,2: Arm implementer 0x41 part 0xd05 r1p2", "1,3: unknown"];
        let text_without_1 = text.replace("processor : 1", "processor : 9");
        assert_eq!(shown(&text_without_1, "0-3"), expected);
        assert_eq!(shown(&text, "0-2").len(), 2);
    }

    #[test]
    fn power_is_read() {
        let text = "processor : 8\ncpu : POWER8E (raw), altivec supported\n\
                    revision : 2.1 (pvr 004b 0201)\n\nplatform : PowerNV\n";
        assert_eq!(shown(text, "8"), ["8: POWER8E (pvr 004b 0201)"]);
    }

    #[test]
    fn silent_and_unlisted_pus_are_one_group() {
        assert_eq!(shown("processor : 1\n", "1-2"), ["1-2: unknown"]);
    }

    proptest! {
        #[test]
        fn groups_partition_the_online_pus(
            lines in prop::collection::vec("(processor|cpu|CPU part|CPU implementer|vendor_id|model|cpu family) ?: (0x)?[0-9a-z ]{0,6}", 0..30),
            online in prop::collection::btree_set(0u32..20, 1..8),
        ) {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("proc")).unwrap();
            fs::write(dir.path().join("proc/cpuinfo"), lines.join("\n")).unwrap();
            let online: PuSet = online.into_iter().map(PuId).collect();
            let groups = identities(dir.path(), &online);
            let total: usize = groups.iter().map(|g| g.pus.len()).sum();
            let union = groups.iter().fold(PuSet::new(), |all, g| all.union(&g.pus));
            prop_assert_eq!(total, online.len());
            prop_assert_eq!(union, online);
        }
    }
}

#[cfg(test)]
mod cpuinfo_tests {
    use super::*;
    use proptest::prelude::*;

    const POWER: &str = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\n\
        processor\t: 1\ncpu\t\t: POWER9, altivec supported\n\n\
        timebase\t: 512000000\nmachine\t\t: PowerNV 8335-GTH\n";

    #[test]
    fn records_and_machine_keys_are_distinguished() {
        let cpus = processors(POWER);
        assert_eq!(cpus.len(), 2);
        assert_eq!(cpus[1].pu, PuId(1));
        assert_eq!(cpus[1].keys["cpu"], "POWER9, altivec supported");
        assert_eq!(machine_keys(POWER)["machine"], "PowerNV 8335-GTH");
        assert!(!machine_keys(POWER).contains_key("cpu"));
    }

    #[test]
    fn records_without_blank_lines_between_are_split() {
        let cpus = processors("processor : 0\nx : a\nprocessor : 1\nx : b\n");
        assert_eq!((&*cpus[0].keys["x"], &*cpus[1].keys["x"]), ("a", "b"));
    }

    #[test]
    fn a_pu_without_a_key_takes_the_machines() {
        let text = "Processor : ARMv7\n\nprocessor : 0\n\nCPU part : 0xc09\n";
        let (cpus, machine) = (processors(text), machine_keys(text));
        assert_eq!(cpus.len(), 1);
        assert_eq!(lookup(&cpus[0].keys, &machine, "CPU part"), Some("0xc09"));
        assert_eq!(lookup(&cpus[0].keys, &machine, "flags"), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_failing(text in "(processor|cpu|[ :\t\n]|[0-9a-f]{1,12}|.){0,60}") {
            let listed = text.lines().filter(|line| line.contains("processor")).count();
            prop_assert!(processors(&text).len() <= listed);
            machine_keys(&text);
        }

        #[test]
        fn every_record_is_found(pus in prop::collection::btree_set(0u32..5000, 0..20)) {
            let text: String = pus.iter().map(|n| format!("processor\t: {n}\nv\t: {n}x\n\n")).collect();
            let found = processors(&text);
            prop_assert_eq!(found.len(), pus.len());
            for p in found {
                prop_assert!(pus.contains(&p.pu.0));
                prop_assert_eq!(&p.keys["v"], &format!("{}x", p.pu));
            }
        }
    }
}
