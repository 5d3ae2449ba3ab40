//! Parsing `/proc/cpuinfo`, whose form differs by architecture.
//!
//! Usage: [`processors`] gives one record per `processor` line that has a
//! number; keys that come before the first such line or after the last blank
//! line belong to the machine and are in [`machine_keys`]. Pitfall: old 32-bit Arm
//! kernels print `Processor : ARMv7 …` before the records and the CPU's
//! identity once at the end; [`lookup`] therefore falls back to the machine.

use consort_core::PuId;
use std::collections::BTreeMap;

/// Keys and values of one record.
pub(crate) type CpuinfoKeys = BTreeMap<String, String>;

/// One PU's record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Processor {
    /// The PU.
    pub(crate) pu: PuId,
    /// Keys and values of the record.
    pub(crate) keys: CpuinfoKeys,
}

/// The records of all PUs, in file order.
pub(crate) fn processors(text: &str) -> Vec<Processor> {
    blocks(text).filter_map(processor).collect()
}

/// The keys that belong to no PU, such as `platform` and `machine` on POWER.
pub(crate) fn machine_keys(text: &str) -> CpuinfoKeys {
    blocks(text)
        .filter(|block| processor_number(block).is_none())
        .flatten()
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .collect()
}

/// Value of a key of a PU, else of the machine.
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

    const POWER: &str = "processor\t: 0\ncpu\t\t: POWER9, altivec supported\n\n\
        processor\t: 1\ncpu\t\t: POWER9, altivec supported\n\n\
        timebase\t: 512000000\nmachine\t\t: PowerNV 8335-GTH\n";

    #[test]
    fn records_and_machine_keys_are_told_apart() {
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
