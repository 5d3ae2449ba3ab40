//! Discovery beside hwloc's, on the described machines and on the host.
//!
//! hwloc reads a described machine through `HWLOC_FSROOT`. Compared are the sets of CPUs of
//! packages, cores, nodes and last-level caches. Machines whose sysfs hides something are left out:
//! hwloc and Consort then assume different things, and Consort says so in its notes.

mod skip;

use consort_core::topology::{Domain, Topology};
use consort_core::{PuId, PuSet};
use consort_linux::topology::discover;
use skip::skipped;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

#[cfg(test)]
mod machines;

type Sets = BTreeSet<String>;

/// Output of hwloc's `lstopo` for the machine below `root`, as XML; none where it is not installed.
fn lstopo(root: &Path) -> Option<String> {
    let names = ["lstopo-no-graphics", "lstopo", "hwloc-ls"];
    names.iter().find_map(|name| {
        let mut command = Command::new(name);
        command.args(["--of", "xml", "--no-io"]);
        if root != Path::new("/") {
            command
                .env("HWLOC_FSROOT", root)
                .env("HWLOC_COMPONENTS", "linux,stop");
        }
        let output = command.output().ok()?;
        output
            .status
            .success()
            .then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    })
}

/// An attribute's value in a line of hwloc's XML, which has one object per line.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split('"').next()
}

/// Words of 32 bits in hexadecimal, the highest first; an empty word is zero.
fn mask(text: &str) -> PuSet {
    let words = text.rsplit(',').zip(0u32..);
    let bits = words.flat_map(|(word, position)| {
        let word = u32::from_str_radix(word.trim_start_matches("0x"), 16).unwrap_or(0);
        (0..32)
            .filter(move |bit| word & (1 << bit) != 0)
            .map(move |bit| PuId(position * 32 + bit))
    });
    bits.collect()
}

/// CPU sets by object type, for objects that have CPUs.
fn objects(xml: &str) -> BTreeMap<String, Vec<PuSet>> {
    let mut objects: BTreeMap<String, Vec<PuSet>> = BTreeMap::new();
    for line in xml
        .lines()
        .filter(|line| line.trim_start().starts_with("<object "))
    {
        if let (Some(kind), Some(pus)) = (attribute(line, "type"), attribute(line, "cpuset")) {
            objects.entry(kind.to_owned()).or_default().push(mask(pus));
        }
    }
    objects
}

fn named(objects: &BTreeMap<String, Vec<PuSet>>, kind: &str) -> Sets {
    let sets = objects.get(kind).into_iter().flatten();
    sets.filter(|set| !set.is_empty())
        .map(ToString::to_string)
        .collect()
}

/// The highest cache from level 2 up of each CPU.
fn last_levels(objects: &BTreeMap<String, Vec<PuSet>>, pus: &PuSet) -> Sets {
    let highest = |pu| {
        let levels = ["L4Cache", "L3Cache", "L2Cache"].into_iter();
        levels
            .filter_map(|kind| objects.get(kind))
            .flatten()
            .find(|set| set.contains(pu))
    };
    pus.iter()
        .filter_map(highest)
        .map(ToString::to_string)
        .collect()
}

fn domains(domains: &[Domain]) -> Sets {
    domains.iter().map(|d| d.pus.to_string()).collect()
}

fn compare(name: &str, ours: &Topology, xml: &str) {
    let theirs = objects(xml);
    let cores = ours
        .cores()
        .iter()
        .map(|c| c.pus.iter().copied().collect::<PuSet>().to_string());
    assert_eq!(
        cores.collect::<Sets>(),
        named(&theirs, "Core"),
        "{name}: cores"
    );
    assert_eq!(
        domains(ours.packages()),
        named(&theirs, "Package"),
        "{name}: packages"
    );
    assert_eq!(
        domains(ours.nodes()),
        named(&theirs, "NUMANode"),
        "{name}: nodes"
    );
    assert_eq!(
        domains(ours.llcs()),
        last_levels(&theirs, ours.pus()),
        "{name}: last-level caches"
    );
}

#[test]
fn described_machines_look_the_same_to_hwloc() {
    let mut compared = 0;
    for (name, machine) in machines::all() {
        let hides_sysfs = machine.expect.notes > usize::from(machine.expect.hidden_topology);
        if hides_sysfs {
            skipped(format!("{name} hides a part of sysfs"));
            continue;
        }
        let dir = machines::temp_dir();
        machine.write(dir.path());
        let Some(xml) = lstopo(dir.path()) else {
            skipped("hwloc is not installed (package hwloc or hwloc-nox)");
            return;
        };
        compare(&name, &discover(dir.path()).unwrap().topology, &xml);
        compared += 1;
    }
    assert!(compared >= 12, "only {compared} machines were compared");
}

#[test]
fn the_host_looks_the_same_to_hwloc() {
    let Some(xml) = lstopo(Path::new("/")) else {
        skipped("hwloc is not installed (package hwloc or hwloc-nox)");
        return;
    };
    let d = discover(Path::new("/")).unwrap();
    if d.notes.len() > usize::from(d.hidden_topology) {
        skipped(format!("this host hides a part of sysfs: {:?}", d.notes));
        return;
    }
    compare("host", &d.topology, &xml);
}
