//! Eight cores of four ways.

use crate::support::{WORKOVER, boot, check_ended, check_free, check_topology, guest, masks};
use consort_vmtest::{
    GuestTopology, LoadShare, Scenario, ScenarioKind, check_fp_paired_with_light, check_fp_spread,
};

#[test]
fn eight_fp_threads_get_a_core_each() {
    let guest_topology = GuestTopology::smt(8, 4);
    let scenario = Scenario {
        one_program_per_kind: true,
        share: LoadShare::Turns {
            work_ms: 3,
            rest_ms: 97,
        },
        interval_ms: 1000,
        ..Scenario::new("workover", ScenarioKind::Brief, WORKOVER, 8, 24)
    };
    let Some(outcome) = boot(&scenario.add_to(guest(guest_topology))) else {
        return;
    };
    let topology = guest_topology.topology().unwrap();
    check_topology(&outcome, &topology);
    let masks = masks(&outcome, "workover-during");
    check_fp_spread(&masks, &topology).unwrap();
    check_fp_paired_with_light(&masks, &topology).unwrap();
    check_ended(&outcome, "workover");
    check_free(&outcome, "workover-after", 32, "0-31");
}
