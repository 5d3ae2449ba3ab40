//! Four cores of two ways.

use crate::support::{
    AGGREGATE, WORKOVER, boot, check_ended, check_free, check_inside, check_nothing_left,
    check_topology, guest, json, masks,
};
use consort_core::topology::Topology;
use consort_vmtest::{
    GuestOutput, GuestTopology, Scenario, ScenarioKind, check_fp_paired_with_light, check_fp_spread,
};
use std::sync::LazyLock;

const GUEST: fn() -> GuestTopology = || GuestTopology::smt(4, 2);

static PLACED: LazyLock<Option<GuestOutput>> = LazyLock::new(|| {
    let placement = Scenario {
        one_program_per_kind: true,
        ..Scenario::new("workover", ScenarioKind::Placement, WORKOVER, 4, 4)
    };
    let aggregate = Scenario {
        one_program_per_kind: true,
        ..Scenario::new("aggregate", ScenarioKind::Brief, AGGREGATE, 4, 4)
    };
    let vm = can_do(guest(GUEST()));
    boot(&aggregate.add_to(placement.add_to(vm)))
});

static LIMITED: LazyLock<Option<GuestOutput>> = LazyLock::new(|| {
    let shrinks = ScenarioKind::Cpuset {
        pus: "0-5",
        shrunk: "2-5",
    };
    let cpuset = Scenario {
        ..Scenario::new("cpuset", shrinks, WORKOVER, 2, 2)
    };
    let offline = Scenario {
        one_program_per_kind: true,
        ..Scenario::new("offline", ScenarioKind::Offline, WORKOVER, 2, 2)
    };
    let vm = guest(GUEST()).command("few-samples", FEW_SAMPLES);
    boot(&offline.add_to(cpuset.add_to(vm)))
});

/// A host that permits few samples per second still gives an instruction mix.
const FEW_SAMPLES: &str = "
rate=$(cat /proc/sys/kernel/perf_event_max_sample_rate)
echo 200 > /proc/sys/kernel/perf_event_max_sample_rate
consort run --format json --policy none --interval 500ms -- consort-demo fp --seconds 3 2>/dev/null
status=$?
echo $rate > /proc/sys/kernel/perf_event_max_sample_rate
exit $status
";

/// Adds a command for each thing that Consort needs of a kernel.
fn can_do(vm: consort_vmtest::Vm) -> consort_vmtest::Vm {
    vm.command("perf", "guest-probe perf")
        .command("threads", "guest-probe threads 3")
        .command("pinned", "taskset -c 2,5 guest-probe threads 1")
}

fn topology() -> Topology {
    GUEST().topology().unwrap()
}

#[test]
fn the_topology_is_seen_exactly() {
    for outcome in [&*PLACED, &*LIMITED].into_iter().flatten() {
        check_topology(outcome, &topology());
    }
}

#[test]
fn the_kernel_can_do_what_consort_needs() {
    let Some(outcome) = &*PLACED else { return };
    let output = |name: &str| outcome.output(name).unwrap();
    assert_eq!(output("perf"), "sampling works");
    assert_eq!(output("threads").matches("0-7").count(), 4);
    assert!(output("threads").contains("thread probe-2 0-7"));
    assert!(output("pinned").contains("thread probe-0 2,5"));
}

#[test]
fn workover_pairs_fp_with_int_and_restores_at_the_end_and_after_a_kill() {
    let Some(outcome) = &*PLACED else { return };
    check_free(outcome, "workover-before", 8, "0-7");
    for section in ["workover-during", "workover-again"] {
        let masks = masks(outcome, section);
        check_fp_spread(&masks, &topology()).unwrap();
        check_fp_paired_with_light(&masks, &topology()).unwrap();
    }
    check_ended(outcome, "workover");
    check_free(outcome, "workover-after", 8, "0-7");
    check_free(outcome, "workover-killed", 8, "0-7");
    check_nothing_left(outcome, "workover");
}

#[test]
fn aggregate_puts_fp_beside_fp() {
    let Some(outcome) = &*PLACED else { return };
    let masks = masks(outcome, "aggregate-during");
    let by_core = |fp: bool| {
        let threads = masks.iter().filter(move |thread| thread.is_fp() == fp);
        let cores = threads.filter_map(|thread| topology().core_of(thread.mask.first()?));
        cores.collect::<std::collections::BTreeSet<_>>()
    };
    assert_eq!(
        (by_core(true).len(), by_core(false).len()),
        (2, 2),
        "{masks:?}"
    );
    assert!(by_core(true).is_disjoint(&by_core(false)), "{masks:?}");
    check_ended(outcome, "aggregate");
    check_free(outcome, "aggregate-after", 8, "0-7");
}

#[test]
fn plans_stay_inside_a_cpuset_that_shrinks() {
    let Some(outcome) = &*LIMITED else { return };
    for (section, pus) in [("cpuset-inside", "0-5"), ("cpuset-shrunk", "2-5")] {
        let masks = masks(outcome, section);
        check_inside(&masks, pus);
        check_fp_spread(&masks, &topology()).unwrap();
    }
    check_fp_paired_with_light(&masks(outcome, "cpuset-shrunk"), &topology()).unwrap();
    check_ended(outcome, "cpuset");
    check_free(outcome, "cpuset-after", 4, "2-5");
    check_free(outcome, "cpuset-lifted", 4, "0-7");
}

#[test]
fn a_pu_that_goes_offline_is_done_without() {
    let Some(outcome) = &*LIMITED else { return };
    let taken: consort_core::PuSet = outcome.output("offline-taken").unwrap().parse().unwrap();
    let left: consort_core::PuSet = topology()
        .pus()
        .iter()
        .filter(|pu| !taken.contains(*pu))
        .collect();
    for section in ["offline-during", "offline-without"] {
        check_fp_spread(&masks(outcome, section), &topology()).unwrap();
    }
    check_inside(&masks(outcome, "offline-without"), &left.to_string());
    check_ended(outcome, "offline");
    check_free(outcome, "offline-after", 4, &left.to_string());
    check_free(outcome, "offline-back", 4, "0-7");
}

#[test]
fn few_samples_are_enough() {
    let Some(outcome) = &*LIMITED else { return };
    let report = json(outcome, "few-samples");
    assert_eq!(report["tier"], "sampling", "{report}");
    let threads = report["threads"].as_array().unwrap();
    let fp = threads
        .iter()
        .find(|thread| thread["name"] == "fp-0")
        .unwrap();
    assert_eq!(fp["class"], "fp", "{report}");
}
