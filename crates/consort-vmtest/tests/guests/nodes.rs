//! Two NUMA nodes of two cores of two ways.

use crate::support::{WORKOVER, boot, check_ended, check_free, check_topology, guest, masks};
use consort_vmtest::{
    GuestTopology, Scenario, ScenarioKind, check_fp_paired_with_light, check_fp_spread,
};

#[test]
fn each_node_gets_its_share_of_fp_threads() {
    let two_nodes = GuestTopology {
        sockets: 2,
        nodes: 2,
        distance: 21,
        ..GuestTopology::smt(2, 2)
    };
    let scenario = Scenario {
        one_program_per_kind: true,
        ..Scenario::new("workover", ScenarioKind::Brief, WORKOVER, 4, 4)
    };
    let distances = "cat /sys/devices/system/node/node*/distance";
    let vm = guest(two_nodes).command("distance", distances);
    let Some(outcome) = boot(&scenario.add_to(vm)) else {
        return;
    };
    let topology = two_nodes.topology().unwrap();
    check_topology(&outcome, &topology);
    assert_eq!(outcome.output("distance").unwrap(), "10 21\n21 10");
    let masks = masks(&outcome, "workover-during");
    check_fp_spread(&masks, &topology).unwrap();
    check_fp_paired_with_light(&masks, &topology).unwrap();
    for node in topology.nodes() {
        let here = masks
            .iter()
            .filter(|thread| thread.mask.is_subset(&node.pus));
        let fp = here.clone().filter(|thread| thread.is_fp()).count();
        assert_eq!((fp, here.count()), (2, 4), "{masks:?}");
    }
    check_ended(&outcome, "workover");
    check_free(&outcome, "workover-after", 8, "0-7");
}
