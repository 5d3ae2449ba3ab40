//! Topology discovery where sources contradict each other, or show the same facts in other forms.

#![expect(clippy::unwrap_used, reason = "a test may fail loudly")]

use consort_core::topology::Topology;
use consort_core::{PuId, PuSet};
use consort_linux::topology::{TopologyDiscovery, core_type_members, discover};
use machines::{CoreGroup, GroupCache, Machine, Node, SharedCache};
use std::fs;
use std::path::Path;

#[cfg(test)]
mod machines;

fn set(text: &str) -> PuSet {
    text.parse().unwrap()
}

fn found(machine: &Machine) -> TopologyDiscovery {
    let dir = machines::temp_dir();
    machine.write(dir.path());
    discover(dir.path()).unwrap()
}

fn cache(level: u32, size: &str, cores: usize) -> GroupCache {
    GroupCache {
        level,
        kind: "Unified".into(),
        size: Some(size.into()),
        cores: Some(cores),
    }
}

/// One node of all CPUs.
fn one_node(pus: &str) -> Vec<Node> {
    vec![Node {
        id: 0,
        pus: set(pus),
        distances: vec![10],
    }]
}

/// Rewrites every file below a directory.
fn rewrite(dir: &Path, change: &dyn Fn(&Path)) {
    for entry in fs::read_dir(dir).into_iter().flatten() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => rewrite(&path, change),
            false => change(&path),
        }
    }
}

/// Facts that must be the same in every form of the files.
fn facts(d: &TopologyDiscovery) -> (&Topology, &Topology, String) {
    let others = format!("{:?} {:?} {:?} {:?}", d.nodes, d.caches, d.present, d.notes);
    (&d.machine, &d.topology, others)
}

/// Checks that every described machine is found as before once its files are rewritten.
fn check_form(change: &dyn Fn(&Path)) {
    for (name, machine) in machines::all() {
        let dir = machines::temp_dir();
        machine.write(dir.path());
        let before = discover(dir.path()).unwrap();
        rewrite(&dir.path().join("sys"), change);
        let after = discover(dir.path()).unwrap();
        assert_eq!(facts(&after), facts(&before), "{name}");
    }
}

#[test]
fn masks_alone_describe_every_machine() {
    check_form(&|path| {
        let name = path.file_name().unwrap().to_str().unwrap();
        if name.ends_with("_list") || name == "cpulist" {
            fs::remove_file(path).unwrap();
        }
    });
}

#[test]
fn files_that_end_with_nuls_describe_every_machine() {
    check_form(&|path| {
        let mut content = fs::read(path).unwrap();
        content.extend(b"\0\0");
        fs::write(path, content).unwrap();
    });
}

#[test]
fn affinity_outranks_a_masked_online_list() {
    let machine = |online: &str, allowed: &str| Machine {
        cores: vec![CoreGroup {
            pus: set("0-3"),
            caches: vec![cache(2, "1024K", 1), cache(3, "8192K", 4)],
            ..CoreGroup::default()
        }],
        nodes: one_node("0-3"),
        files: [
            (
                "sys/devices/system/cpu/online".to_owned(),
                online.to_owned(),
            ),
            (
                "sys/devices/system/cpu/possible".to_owned(),
                online.to_owned(),
            ),
            (
                "sys/devices/system/cpu/present".to_owned(),
                online.to_owned(),
            ),
            (
                "proc/self/status".to_owned(),
                format!("Name:\tx\nCpus_allowed_list:\t{allowed}\n"),
            ),
        ]
        .into(),
        ..Machine::default()
    };
    for (online, allowed, noted) in [
        ("0-1", "2-3", "shows 0-1, but"),
        ("0-1", "1-2", "shows 0-1, but"),
        ("", "2-3", "missing or unreadable"),
        ("garbage", "2-3", "missing or unreadable"),
    ] {
        let mut machine = machine(online, allowed);
        if online.is_empty() || online == "garbage" {
            let cpuinfo = "processor\t: 0\n\nprocessor\t: 1\n".to_owned();
            machine.files.insert("proc/cpuinfo".to_owned(), cpuinfo);
        }
        let d = found(&machine);
        assert_eq!(d.topology.pus(), &set(allowed), "{online}: {:?}", d.notes);
        assert_eq!(d.topology.cores().len(), 2);
        assert_eq!(d.topology.llcs()[0].size_bytes, Some(8 << 20));
        assert!(d.notes.iter().any(|n| n.contains(noted)), "{:?}", d.notes);
        let lost = d.notes.iter().filter(|n| n.contains("assumed"));
        assert_eq!(lost.count(), 0, "{:?}", d.notes);
    }
}

/// Four P cores of two CPUs and four E cores in a cluster, with these ratings of P and E cores.
fn hybrid(p: &[u32], e: &[u32]) -> Machine {
    let group = |pus: &str, ways, first_core_id, ratings: &[u32], l2| CoreGroup {
        pus: set(pus),
        ways: Some(ways),
        adjacent: true,
        first_core_id,
        highest_perf: ratings.to_vec(),
        caches: vec![l2],
        ..CoreGroup::default()
    };
    let pmu = |name: &str| format!("sys/bus/event_source/devices/{name}/cpus");
    Machine {
        cores: vec![
            group("0-7", 2, 0, p, cache(2, "1280K", 1)),
            group("8-11", 1, 16, e, cache(2, "2048K", 4)),
        ],
        caches: vec![SharedCache {
            level: 3,
            kind: "Unified".into(),
            size: Some("12288K".into()),
            pus: set("0-11"),
        }],
        nodes: one_node("0-11"),
        files: [
            (pmu("cpu_core"), "0-7".to_owned()),
            (pmu("cpu_atom"), "8-11".to_owned()),
        ]
        .into(),
        ..Machine::default()
    }
}

/// Names, capacities and CPUs of the core types; then the notes about ratings.
fn types(machine: &Machine) -> (String, Vec<String>) {
    let d = found(machine);
    let types = core_type_members(&d.topology).into_iter();
    let types = types.map(|(t, pus)| format!("{} {} {pus}", t.name, t.capacity));
    let rated = |note: &String| note.contains("rate") || note.contains("rating");
    let notes = d.notes.iter().filter(|note| rated(note)).cloned();
    (types.collect::<Vec<_>>().join(", "), notes.collect())
}

const P_AND_E: &str = "P 1024 0-7, E 632 8-11";

#[test]
fn one_core_rated_wrongly_is_no_type() {
    let cases: [(&[u32], &[u32], &str); 7] = [
        (&[68], &[42, 42, 255, 42], "CPUs 10: rated 255"),
        (&[68], &[42, 255, 255, 42], "CPUs 9-10: rated 255"),
        (&[68, 68, 12, 68], &[42], "CPUs 4-5: rated 12"),
        (&[68, 42, 42, 68], &[42], "CPUs 2-5: rated 42"),
        (&[68, 0, 68, 68], &[42], "CPUs 2-3: not rated"),
        (&[68], &[42, 42, 42, 0], "CPUs 11: not rated"),
        (&[68], &[42, 42, 20, 42], "CPUs 10: rated 20"),
    ];
    for (p, e, note) in cases {
        let (types, notes) = types(&hybrid(p, e));
        assert_eq!(types, P_AND_E, "{p:?} {e:?}: {notes:?}");
        assert!(
            notes.iter().any(|n| n.starts_with(note)),
            "{note}: {notes:?}"
        );
        assert_eq!(notes.len(), 1, "{notes:?}");
    }
    assert_eq!(
        types(&hybrid(&[66, 68], &[42])),
        ("P 1024 0-7, E 632 8-11".to_owned(), vec![])
    );
}

#[test]
fn lists_of_the_pmu_outrank_all_ratings() {
    let (contradicted, notes) = types(&hybrid(&[40], &[60]));
    assert_eq!(contradicted, "P 1024 0-7, E 1024 8-11");
    assert_eq!(notes.len(), 1, "{notes:?}");
    let mut by_capacity = hybrid(&[], &[]);
    by_capacity.cores[0].capacity = Some(1024);
    by_capacity.cores[1].capacity = Some(632);
    let wrong = "sys/devices/system/cpu/cpu10/cpu_capacity".to_owned();
    by_capacity.files.insert(wrong, "1024".to_owned());
    let (found, notes) = types(&by_capacity);
    assert_eq!(found, P_AND_E, "{notes:?}");
    let (unrated, notes) = types(&hybrid(&[], &[]));
    assert_eq!(unrated, "P 1024 0-7, E 1024 8-11", "{notes:?}");
}

#[test]
fn a_cluster_of_low_power_cores_is_a_type() {
    let mut machine = hybrid(&[68], &[42, 42, 42, 42, 26, 26]);
    machine.cores[1].pus = set("8-13");
    machine.cores[1].caches = vec![cache(2, "2048K", 2)];
    machine.nodes = one_node("0-13");
    let atoms = "sys/bus/event_source/devices/cpu_atom/cpus".to_owned();
    machine.files.insert(atoms, "8-13".to_owned());
    let (found, notes) = types(&machine);
    assert_eq!(found, "P 1024 0-7, E 632 8-11, LP-E 392 12-13", "{notes:?}");
    assert_eq!(notes, Vec::<String>::new());
}

/// Eight alike cores of one CPU, with these ratings.
fn alike(highest: &[u32], nominal: &[u32]) -> Machine {
    let file = |(core, value): (usize, &u32)| {
        let path = format!("sys/devices/system/cpu/cpu{core}/acpi_cppc/nominal_perf");
        (path, value.to_string())
    };
    Machine {
        cores: vec![CoreGroup {
            pus: set("0-7"),
            highest_perf: highest.to_vec(),
            caches: vec![cache(2, "1024K", 1), cache(3, "16384K", 8)],
            ..CoreGroup::default()
        }],
        nodes: one_node("0-7"),
        files: nominal.iter().enumerate().map(file).collect(),
        ..Machine::default()
    }
}

#[test]
fn two_kinds_of_rating_confirm_each_other() {
    let lone = [255, 166, 166, 166, 166, 166, 166, 166];
    let (found, notes) = types(&alike(&lone, &[]));
    assert_eq!(found, "uniform 1024 0-7", "{notes:?}");
    assert_eq!(
        notes,
        ["CPUs 0: rated 255 by acpi_cppc, unlike cores of the same kind; took 166"]
    );
    assert_eq!(types(&alike(&lone, &[120; 8])).0, "uniform 1024 0-7");
    let confirmed = types(&alike(&lone, &[180, 120, 120, 120, 120, 120, 120, 120]));
    assert_eq!(
        confirmed.0, "big 1024 0, small 667 1-7",
        "{:?}",
        confirmed.1
    );
    let two = [255, 255, 166, 166, 166, 166, 166, 166];
    assert_eq!(types(&alike(&two, &[])).0, "big 1024 0-1, small 667 2-7");
    let by_nominal = types(&alike(&[255; 8], &[180, 180, 120, 120, 120, 120, 120, 120]));
    assert_eq!(by_nominal.0, "big 1024 0-1, small 683 2-7");
}

/// POWER10 as a partition shows it: two big cores of eight CPUs, whose even and odd CPUs share the
/// caches from this level on.
fn big_cores(cpuinfo: &str, split_up_to: u32) -> Machine {
    let mut caches = Vec::new();
    for big in [0, 8] {
        for level in 1..=3 {
            let halves = match level <= split_up_to {
                true => vec![
                    (0..4).map(|i| 2 * i).collect(),
                    (0..4).map(|i| 2 * i + 1).collect(),
                ],
                false => vec![(0..8).collect::<Vec<u32>>()],
            };
            for half in halves {
                caches.push(SharedCache {
                    level,
                    kind: if level == 1 { "Data" } else { "Unified" }.into(),
                    size: Some("4096K".into()),
                    pus: half.into_iter().map(|pu| PuId(big + pu)).collect(),
                });
            }
        }
    }
    Machine {
        cores: vec![CoreGroup {
            pus: set("0-15"),
            ways: Some(8),
            adjacent: true,
            core_id_step: Some(8),
            ..CoreGroup::default()
        }],
        caches,
        nodes: one_node("0-15"),
        cpuinfo: cpuinfo.to_owned(),
        ..Machine::default()
    }
}

#[test]
fn small_cores_of_a_big_core_are_found() {
    for (split_up_to, llcs) in [(3, 4), (2, 2), (1, 2)] {
        let d = found(&big_cores(
            "cpu\t\t: POWER10, altivec supported",
            split_up_to,
        ));
        let cores = d.topology.cores().iter();
        let cores: Vec<String> = cores
            .map(|c| c.pus.iter().copied().collect::<PuSet>().to_string())
            .collect();
        assert_eq!(cores, ["0,2,4,6", "1,3,5,7", "8,10,12,14", "9,11,13,15"]);
        assert_eq!(d.topology.llcs().len(), llcs);
        assert_eq!(d.notes.len(), 1, "{:?}", d.notes);
        assert!(
            d.notes[0].contains("the caches were believed"),
            "{:?}",
            d.notes
        );
    }
}

#[test]
fn unequal_last_level_caches_show_their_sizes() {
    let group = |pus: &str, size: &str| CoreGroup {
        pus: set(pus),
        ways: Some(2),
        caches: vec![cache(3, size, 8)],
        ..CoreGroup::default()
    };
    let d = found(&Machine {
        cores: vec![group("0-7,16-23", "98304K"), group("8-15,24-31", "32768K")],
        nodes: one_node("0-31"),
        ..Machine::default()
    });
    let sizes: Vec<Option<u64>> = d.topology.llcs().iter().map(|llc| llc.size_bytes).collect();
    assert_eq!(sizes, [Some(96 << 20), Some(32 << 20)]);
    let drawn = consort_linux::topology::draw(&d.topology).join("\n");
    assert!(
        drawn.contains("(96 MiB)") && drawn.contains("(32 MiB)"),
        "{drawn}"
    );
}
