//! Described machines, expanded to trees of sysfs and procfs files.
//!
//! Usage: one `*.toml` per machine in this directory; [`all`] reads them and
//! [`Machine::write`] makes the tree below a directory. A description holds what
//! public sources tell of a machine, never a copy of somebody's tree.

mod tree;

use consort_core::{PuId, PuSet};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A machine's description.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Machine {
    /// CPUs that are online; all that the cores describe where not given.
    pub online: Option<PuSet>,
    /// Groups of equal cores.
    pub cores: Vec<CoreGroup>,
    /// Caches that are shared beyond one group of cores.
    pub caches: Vec<SharedCache>,
    /// NUMA nodes.
    pub nodes: Vec<Node>,
    /// Lines of `/proc/cpuinfo` after each `processor` line.
    pub cpuinfo: String,
    /// Lines of `/proc/cpuinfo` at its end.
    pub cpuinfo_end: String,
    /// Files and directories to leave out; `cpu*` stands for every CPU's.
    pub missing: Vec<String>,
    /// Further files and their contents.
    pub files: BTreeMap<String, String>,
    /// Results that discovery must give.
    pub expect: Expect,
}

/// Equal cores of one package.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct CoreGroup {
    /// Their CPUs.
    pub pus: PuSet,
    /// CPUs per core; 1 where not given.
    pub ways: Option<usize>,
    /// True if a core's CPUs have neighbouring numbers; else the first CPUs of all cores come
    /// first.
    pub adjacent: bool,
    pub package: i64,
    pub die: Option<u32>,
    pub cluster: Option<u32>,
    pub first_core_id: u32,
    /// Distance between the ids of neighbouring cores; 1 where not given.
    pub core_id_step: Option<u32>,
    pub capacity: Option<u32>,
    /// Values, one per core, repeated from the start where there are fewer.
    pub highest_perf: Vec<u32>,
    pub max_khz: Option<u32>,
    /// Lines of `/proc/cpuinfo` for these cores instead of the machine's.
    pub cpuinfo: Option<String>,
    pub caches: Vec<GroupCache>,
}

/// A cache that every `cores` cores of a group share.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupCache {
    pub level: u32,
    #[serde(rename = "type")]
    pub kind: String,
    pub size: Option<String>,
    /// Number of cores that share the cache; 1 where not given.
    pub cores: Option<usize>,
}

/// A cache and its sharers.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedCache {
    pub level: u32,
    #[serde(rename = "type")]
    pub kind: String,
    pub size: Option<String>,
    pub pus: PuSet,
}

/// A NUMA node.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Node {
    pub id: u32,
    pub pus: PuSet,
    #[serde(default)]
    pub distances: Vec<u32>,
}

/// Results that discovery must give.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Expect {
    pub packages: usize,
    pub nodes: usize,
    pub llcs: usize,
    pub cores: usize,
    pub smt: usize,
    /// The CPUs that may be used.
    pub pus: PuSet,
    /// Name and CPUs of each core type, strongest first.
    pub types: Vec<String>,
    /// Sources that told the types apart.
    pub sources: Vec<String>,
    pub hypervisor: Option<String>,
    pub hidden_topology: bool,
    /// Number of notes.
    pub notes: usize,
}

/// An empty directory for a machine's tree: thousands of small files, so in memory where that is
/// possible.
pub fn temp_dir() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).unwrap()
}

/// Every described machine with its name.
pub fn all() -> Vec<(String, Machine)> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/machines");
    let files = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let mut machines: Vec<_> = files
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            let machine = toml::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
            (name, machine)
        })
        .collect();
    machines.sort_by(|a, b| a.0.cmp(&b.0));
    machines
}

impl CoreGroup {
    /// The CPUs of each core.
    pub fn members(&self) -> Vec<PuSet> {
        let pus: Vec<PuId> = self.pus.iter().collect();
        let ways = self.ways.unwrap_or(1);
        let cores = pus.len() / ways;
        let way = |core, way| {
            pus[if self.adjacent {
                core * ways + way
            } else {
                way * cores + core
            }]
        };
        (0..cores)
            .map(|core| (0..ways).map(|w| way(core, w)).collect())
            .collect()
    }
}

impl Machine {
    /// Every CPU that is plugged in.
    pub fn present(&self) -> PuSet {
        let groups = self.cores.iter();
        groups.fold(PuSet::new(), |all, group| all.union(&group.pus))
    }

    /// The CPUs that are online.
    pub fn online(&self) -> PuSet {
        self.online.clone().unwrap_or_else(|| self.present())
    }

    /// Makes the machine's files below `root`.
    pub fn write(&self, root: &Path) {
        tree::write(self, root);
    }
}
