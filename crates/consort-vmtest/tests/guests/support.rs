//! Guests with the workspace's programs, and checks on their sections, for all tests.

use consort_core::PuSet;
use consort_core::topology::Topology;
use consort_vmtest::{
    GuestOutput, GuestTools, GuestTopology, ThreadMask, Vm, built_program, thread_masks,
};
use serde_json::Value;
use std::path::PathBuf;
use std::time::Duration;

/// Time after which a guest is killed: far above the usual minute, for a host that is busy with
/// other things.
pub const LIMIT: Duration = Duration::from_secs(600);

/// The policies' options for threads that get little of a CPU.
pub const WORKOVER: &str = "workover:active=0.002";
pub const AGGREGATE: &str = "aggregate:active=0.002";

/// `CPU siblings package l2-sharers llc-sharers node` for each CPU.
const SHOW_TOPOLOGY: &str = r#"
cd /sys/devices/system/cpu
for pu in cpu[0-9]*; do
    node=$(echo $pu/node*)
    echo "${pu#cpu} $(cat $pu/topology/thread_siblings_list $pu/topology/physical_package_id \
        $pu/cache/index2/shared_cpu_list $pu/cache/index3/shared_cpu_list | tr '\n' ' ')${node##*node}"
done | sort -n
"#;

/// A guest with `consort`, `consort-demo` and `guest-probe` that shows its topology first.
pub fn guest(topology: GuestTopology) -> Vm {
    let built = |package, name| built_program(package, name).unwrap();
    let programs = [
        ("consort", built("consort", "consort")),
        ("consort-demo", built("consort-kernels", "consort-demo")),
        ("guest-probe", env!("CARGO_BIN_EXE_guest-probe").into()),
    ];
    let with =
        |vm: Vm, (name, file): (&str, PathBuf)| vm.program(&format!("/bin/{name}"), &file).unwrap();
    let vm = programs.into_iter().fold(Vm::new(topology), with);
    vm.command("topology", SHOW_TOPOLOGY)
        .command("machine", "consort machine --format json")
}

/// Boots the guest, or says why this host can have none.
pub fn boot(vm: &Vm) -> Option<GuestOutput> {
    try_boot(vm).unwrap()
}

/// [`boot`] for a caller that tries again: a guest on a starved host can be killed after [`LIMIT`].
pub fn try_boot(vm: &Vm) -> Result<Option<GuestOutput>, String> {
    let run = |host| vm.run(&host, LIMIT).map_err(|error| error.to_string());
    GuestTools::find_or_skip().map(run).transpose()
}

/// Asserts that the guest shows the topology that was asked for, and Consort sees it.
pub fn check_topology(outcome: &GuestOutput, topology: &Topology) {
    let shown: Vec<&str> = outcome.output("topology").unwrap().lines().collect();
    assert_eq!(shown, expected(topology));
    let machine = json(outcome, "machine");
    let numbers = ["packages", "nodes", "cores", "pus", "smt"].map(|key| machine[key].as_u64());
    let expected = [
        topology.packages().len(),
        topology.nodes().len(),
        topology.cores().len(),
        topology.pus().len(),
        topology.smt(),
    ];
    assert_eq!(numbers, expected.map(|n| Some(n as u64)));
    assert_eq!(machine["allowed_pus"], topology.pus().to_string());
    assert_eq!(machine["hidden_topology"], false);
    let llcs = machine["llc_domains"].as_array().unwrap().iter();
    let llcs: Vec<&str> = llcs.filter_map(|llc| llc["pus"].as_str()).collect();
    let expected: Vec<String> = topology
        .llcs()
        .iter()
        .map(|llc| llc.pus.to_string())
        .collect();
    assert_eq!(llcs, expected);
}

/// The lines of `SHOW_TOPOLOGY` for the topology that was asked for.
fn expected(topology: &Topology) -> Vec<String> {
    let facts = topology.facts();
    let sharers = |same: &dyn Fn(usize) -> bool| -> String {
        let pus = (0..facts.len()).filter(|&i| same(i)).map(|i| facts[i].pu);
        pus.collect::<PuSet>().to_string()
    };
    let line = |at: usize| {
        let fact = &facts[at];
        format!(
            "{} {} {} {} {} {}",
            fact.pu,
            sharers(&|i| facts[i].core == fact.core),
            fact.package,
            sharers(&|i| facts[i].l2 == fact.l2),
            sharers(&|i| facts[i].llc == fact.llc),
            fact.node
        )
    };
    (0..facts.len()).map(line).collect()
}

/// The load's masks in a section whose wait has ended in time.
pub fn masks(outcome: &GuestOutput, section: &str) -> Vec<ThreadMask> {
    thread_masks(outcome.output(section).unwrap()).unwrap()
}

/// Asserts that all threads may use exactly these CPUs.
pub fn check_free(outcome: &GuestOutput, section: &str, threads: usize, pus: &str) {
    let masks = masks(outcome, section);
    assert_eq!(masks.len(), threads, "{section}");
    let all: PuSet = pus.parse().unwrap();
    assert!(
        masks.iter().all(|thread| thread.mask == all),
        "{section}: {masks:?}"
    );
}

/// Asserts that no thread may leave these CPUs.
pub fn check_inside(masks: &[ThreadMask], pus: &str) {
    let all: PuSet = pus.parse().unwrap();
    assert!(
        masks.iter().all(|thread| thread.mask.is_subset(&all)),
        "{masks:?}"
    );
}

/// Asserts that the run ended well: no thread was let go, every mask was put back, nothing was left
/// behind.
pub fn check_ended(outcome: &GuestOutput, name: &str) {
    outcome.output(&format!("{name}-ended")).unwrap();
    let report = json(outcome, &format!("{name}-report"));
    assert_eq!(report["restored"], true, "{report}");
    assert_eq!(report["tier"], "sampling", "{report}");
    // That a plan was overtaken by a shrinking cpuset is a warning; that somebody else set a mask
    // would mean that Consort took the kernel's own change for it.
    let warnings = report["warnings"].to_string();
    assert!(!warnings.contains("was released"), "{warnings}");
    check_nothing_left(outcome, name);
}

/// Asserts that no journal and no process of Consort is there, each time that this was looked at.
pub fn check_nothing_left(outcome: &GuestOutput, name: &str) {
    let section = format!("{name}-left");
    let looks = outcome.sections.iter().filter(|s| s.name == section);
    let left: Vec<&str> = looks.map(|look| look.text.as_str()).collect();
    assert!(
        !left.is_empty() && left.iter().all(|text| text.is_empty()),
        "{name}: {left:?}"
    );
}

/// A section that is one JSON document.
pub fn json(outcome: &GuestOutput, section: &str) -> Value {
    let text = outcome.output(section).unwrap();
    let parsed = serde_json::from_str(text);
    parsed.unwrap_or_else(|error| panic!("{section}: {error} in: {text}"))
}
