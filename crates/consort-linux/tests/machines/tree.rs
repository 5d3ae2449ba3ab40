//! Files of a described machine.

use super::{CoreGroup, Machine};
use consort_core::{PuId, PuSet};
use std::fs;
use std::path::Path;

const CPU: &str = "sys/devices/system/cpu";

/// A cache directory's content.
struct Index<'a> {
    level: u32,
    kind: &'a str,
    size: Option<&'a str>,
    pus: PuSet,
}

pub(super) fn write(machine: &Machine, root: &Path) {
    let online = machine.online();
    put(
        root,
        &format!("{CPU}/present"),
        &machine.present().to_string(),
    );
    put(root, &format!("{CPU}/online"), &online.to_string());
    for pu in machine.present().iter() {
        fs::create_dir_all(root.join(format!("{CPU}/cpu{pu}"))).unwrap();
    }
    for group in &machine.cores {
        group_files(machine, group, &online, root);
    }
    node_files(machine, &online, root);
    put(root, "proc/cpuinfo", &cpuinfo(machine, &online));
    for (path, content) in &machine.files {
        put(root, path, content);
    }
    for path in &machine.missing {
        remove(machine, path, root);
    }
}

fn put(root: &Path, path: &str, content: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, format!("{content}\n")).unwrap();
}

fn remove(machine: &Machine, path: &str, root: &Path) {
    let pus = machine.present();
    let of_pu = |pu: PuId| root.join(path.replace("cpu*", &format!("cpu{pu}")));
    for path in pus.iter().map(of_pu) {
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else if path.exists() {
            fs::remove_file(path).unwrap();
        }
    }
}

fn group_files(machine: &Machine, group: &CoreGroup, online: &PuSet, root: &Path) {
    let cores = group.members();
    for (number, core) in cores.iter().enumerate() {
        let core_id = group.first_core_id + number as u32 * group.core_id_step.unwrap_or(1);
        for pu in core.intersection(online).iter() {
            let dir = format!("{CPU}/cpu{pu}");
            topology_files(group, core_id, &core.intersection(online), &dir, root);
            speed_files(group, number, &dir, root);
            let caches = indices(machine, group, &cores, number, pu);
            cache_files(&caches, online, &dir, root);
        }
    }
}

fn topology_files(group: &CoreGroup, core_id: u32, siblings: &PuSet, dir: &str, root: &Path) {
    let file = |name: &str, content: String| put(root, &format!("{dir}/topology/{name}"), &content);
    file("physical_package_id", group.package.to_string());
    file("core_id", core_id.to_string());
    for name in ["core_cpus", "thread_siblings"] {
        file(&format!("{name}_list"), siblings.to_string());
        file(name, mask(siblings));
    }
    for (name, id) in [("die_id", group.die), ("cluster_id", group.cluster)] {
        if let Some(id) = id {
            file(name, id.to_string());
        }
    }
}

fn speed_files(group: &CoreGroup, core: usize, dir: &str, root: &Path) {
    let perf = group
        .highest_perf
        .get(core % group.highest_perf.len().max(1));
    let files = [
        ("cpu_capacity", group.capacity),
        ("acpi_cppc/highest_perf", perf.copied()),
        ("cpufreq/cpuinfo_max_freq", group.max_khz),
    ];
    for (name, value) in files {
        if let Some(value) = value {
            put(root, &format!("{dir}/{name}"), &value.to_string());
        }
    }
}

/// The caches of one CPU, those of its group first.
fn indices<'a>(
    machine: &'a Machine,
    group: &'a CoreGroup,
    cores: &[PuSet],
    core: usize,
    pu: PuId,
) -> Vec<Index<'a>> {
    let own = group.caches.iter().map(|cache| {
        let sharing = cache.cores.unwrap_or(1);
        let sharers = cores.chunks(sharing).nth(core / sharing).unwrap();
        Index {
            level: cache.level,
            kind: &cache.kind,
            size: cache.size.as_deref(),
            pus: sharers
                .iter()
                .fold(PuSet::new(), |all, core| all.union(core)),
        }
    });
    let shared = machine.caches.iter().filter(|cache| cache.pus.contains(pu));
    let shared = shared.map(|cache| Index {
        level: cache.level,
        kind: &cache.kind,
        size: cache.size.as_deref(),
        pus: cache.pus.clone(),
    });
    own.chain(shared).collect()
}

fn cache_files(caches: &[Index<'_>], online: &PuSet, dir: &str, root: &Path) {
    for (number, cache) in caches.iter().enumerate() {
        let dir = format!("{dir}/cache/index{number}");
        let file = |name: &str, content: &str| put(root, &format!("{dir}/{name}"), content);
        let sharers = cache.pus.intersection(online);
        file("level", &cache.level.to_string());
        file("type", cache.kind);
        file("shared_cpu_list", &sharers.to_string());
        // hwloc reads the mask rather than the list.
        file("shared_cpu_map", &mask(&sharers));
        if let Some(size) = cache.size {
            file("size", size);
        }
    }
}

fn node_files(machine: &Machine, online: &PuSet, root: &Path) {
    let ids: PuSet = machine.nodes.iter().map(|node| PuId(node.id)).collect();
    for node in &machine.nodes {
        let dir = format!("sys/devices/system/node/node{}", node.id);
        let pus = node.pus.intersection(online);
        put(root, &format!("{dir}/cpulist"), &pus.to_string());
        put(root, &format!("{dir}/cpumap"), &mask(&pus));
        put(root, "sys/devices/system/node/online", &ids.to_string());
        if !node.distances.is_empty() {
            let row: Vec<String> = node.distances.iter().map(ToString::to_string).collect();
            put(root, &format!("{dir}/distance"), &row.join(" "));
        }
    }
}

/// A set as the kernel's masks: words of 32 bits in hexadecimal, the highest first.
fn mask(pus: &PuSet) -> String {
    let last = pus.iter().last().map_or(0, |pu| pu.0 / 32);
    let word = |w: u32| {
        let bits = (0..32).filter(|bit| pus.contains(PuId(w * 32 + bit)));
        format!("{:08x}", bits.fold(0u32, |word, bit| word | 1 << bit))
    };
    (0..=last).rev().map(word).collect::<Vec<_>>().join(",")
}

fn cpuinfo(machine: &Machine, online: &PuSet) -> String {
    let lines = |pu: PuId| {
        let group = machine.cores.iter().find(|group| group.pus.contains(pu));
        let own = group.and_then(|group| group.cpuinfo.as_deref());
        format!("processor\t: {pu}\n{}\n", own.unwrap_or(&machine.cpuinfo))
    };
    let records: String = online.iter().map(lines).collect();
    format!("{records}{}", machine.cpuinfo_end)
}
