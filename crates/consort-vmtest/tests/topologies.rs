//! Promise: a guest shows the topology that was asked for, and can do what Consort needs.

use consort_core::topology::Topology;
use consort_vmtest::{GuestTopology, Host, Vm};
use std::path::Path;
use std::time::Duration;

/// Far above the usual ten seconds, for a host that is busy with other things.
const LIMIT: Duration = Duration::from_secs(300);

/// `PU siblings package l2-sharers llc-sharers node` for each PU.
const SHOW_TOPOLOGY: &str = r#"
cd /sys/devices/system/cpu
for pu in cpu[0-9]*; do
    node=$(echo $pu/node*)
    echo "${pu#cpu} $(cat $pu/topology/thread_siblings_list $pu/topology/physical_package_id \
        $pu/cache/index2/shared_cpu_list $pu/cache/index3/shared_cpu_list | tr '\n' ' ')${node##*node}"
done | sort -n
"#;

/// The same lines, from what the guest was asked to be.
fn expected(topology: &Topology) -> Vec<String> {
    let facts = topology.facts();
    let sharers = |same: &dyn Fn(usize) -> bool| -> String {
        let pus = (0..facts.len()).filter(|&i| same(i)).map(|i| facts[i].pu);
        pus.collect::<consort_core::PuSet>().to_string()
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

fn check_topology(shown: &str, topology: &Topology) {
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown, expected(topology));
}

#[test]
fn four_cores_of_two_ways_can_do_what_consort_needs() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let guest = GuestTopology::smt(4, 2);
    let outcome = Vm::new(guest)
        .program("/bin/guest-probe", Path::new(env!("CARGO_BIN_EXE_guest-probe")))
        .unwrap()
        .command("topology", SHOW_TOPOLOGY)
        .command("paranoid", "cat /proc/sys/kernel/perf_event_paranoid")
        .command("perf", "guest-probe perf")
        .command("threads", "guest-probe threads 3")
        .command("pinned", "taskset -c 2,5 guest-probe threads 1")
        .command("taskset", "sleep 1000 & taskset -pc 3 $! >/dev/null; taskset -pc $!; kill $!")
        .command("cpuset", "mkdir /sys/fs/cgroup/small; cd /sys/fs/cgroup/small; echo 1-2 > cpuset.cpus; echo $$ > cgroup.procs; guest-probe threads 0")
        .command("freezer", "ls /sys/fs/cgroup/small/cgroup.freeze")
        .command("offline", "echo 0 > /sys/devices/system/cpu/cpu7/online; cat /sys/devices/system/cpu/online")
        .run(&host, LIMIT)
        .unwrap();
    check_topology(
        outcome.output("topology").unwrap(),
        &guest.topology().unwrap(),
    );
    let output = |name: &str| outcome.output(name).unwrap();
    assert!(output("paranoid").parse::<i32>().is_ok());
    assert_eq!(output("perf"), "sampling works");
    assert_eq!(output("threads").matches("0-7").count(), 4);
    assert!(output("threads").contains("thread probe-2 0-7"));
    assert!(output("pinned").contains("thread probe-0 2,5"));
    assert!(output("taskset").ends_with("affinity list: 3"));
    assert_eq!(output("cpuset"), "thread guest-probe 1-2");
    assert_eq!(output("offline"), "0-6");
}

#[test]
fn eight_cores_of_four_ways() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let guest = GuestTopology::smt(8, 4);
    let outcome = Vm::new(guest)
        .command("topology", SHOW_TOPOLOGY)
        .run(&host, LIMIT)
        .unwrap();
    check_topology(
        outcome.output("topology").unwrap(),
        &guest.topology().unwrap(),
    );
}

#[test]
fn two_nodes_with_their_distance() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let guest = GuestTopology {
        sockets: 2,
        nodes: 2,
        distance: 21,
        ..GuestTopology::smt(2, 2)
    };
    let outcome = Vm::new(guest)
        .command("topology", SHOW_TOPOLOGY)
        .command("distance", "cat /sys/devices/system/node/node*/distance")
        .run(&host, LIMIT)
        .unwrap();
    check_topology(
        outcome.output("topology").unwrap(),
        &guest.topology().unwrap(),
    );
    assert_eq!(outcome.output("distance").unwrap(), "10 21\n21 10");
}

#[test]
fn a_guest_that_hangs_is_killed_and_quoted() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(1, 1)).command("hang", "echo waiting; sleep 1000000");
    let error = vm.run(&host, Duration::from_secs(2)).unwrap_err();
    assert!(error.to_string().contains("killed after 2s"), "{error}");
}

#[test]
fn qemus_own_refusal_is_quoted() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(1000, 64));
    let error = vm.run(&host, LIMIT).unwrap_err().to_string();
    assert!(
        error.contains("stopped early") && error.contains("SMP"),
        "{error}"
    );
}

#[test]
fn a_guest_that_stops_early_is_reported() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(1, 1)).command("stop", "echo goodbye; poweroff -f");
    let error = vm.run(&host, LIMIT).unwrap_err().to_string();
    assert!(
        error.contains("stopped early") && error.contains("goodbye"),
        "{error}"
    );
}
