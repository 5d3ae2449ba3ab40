//! Threads in an isolated partition, where the kernel balances nothing.

use crate::support::{boot, guest, json};
use consort_vmtest::GuestTopology;
use std::collections::BTreeSet;

const PARTITION: &str = "
group=/sys/fs/cgroup/isolated
mkdir $group
echo 2-3 > $group/cpuset.cpus
echo isolated > $group/cpuset.cpus.partition
cat $group/cpuset.cpus.partition
";

/// Two threads that spin, on the two CPUs of the isolated core.
const SPIN: &str = "
echo $$ > /sys/fs/cgroup/isolated/cgroup.procs
exec consort run --override --policy spread --interval 500ms --no-back-off --format json -- \
    sh -c 'exec consort-demo fp --threads 2 --seconds 12 >/dev/null' 2>/dev/null
";

#[test]
fn threads_of_an_isolated_core_get_a_pu_each() {
    let vm = guest(GuestTopology::smt(2, 2))
        .command("partition", PARTITION)
        .command("isolated", "consort machine --format json")
        .command("spin", SPIN);
    let Some(outcome) = boot(&vm) else { return };
    assert_eq!(outcome.output("partition").unwrap(), "isolated");
    assert_eq!(json(&outcome, "machine")["isolated"], "");
    assert_eq!(json(&outcome, "isolated")["isolated"], "2-3");
    let report = json(&outcome, "spin");
    let threads = report["threads"].as_array().unwrap().iter();
    let reasons = threads.filter_map(|thread| thread["reason"].as_str());
    let alone = reasons.filter(|reason| reason.contains("alone, because the OS moves no thread"));
    let pus: BTreeSet<&str> = alone
        .filter_map(|reason| {
            ["CPU 2 alone", "CPU 3 alone"]
                .into_iter()
                .find(|pu| reason.contains(pu))
        })
        .collect();
    assert_eq!(pus.len(), 2, "{report:#}");
    assert_eq!(report["restored"], true);
}
