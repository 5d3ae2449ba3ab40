//! Promise: the programs of this workspace run in a guest as they were built, with the libraries
//! of the host taken along.

use consort_vmtest::{GuestTopology, Host, PlacementScenario, Vm, built_program, thread_masks};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(400);

#[test]
fn the_demo_runs_and_names_its_threads() {
    let (Some(host), Some(demo)) = (Host::find_or_skip(), built_program("consort-demo")) else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(2, 2))
        .program("/bin/consort-demo", &demo)
        .unwrap()
        .file("/bin/consort", include_bytes!("stand_in/consort"))
        .command("work", "consort-demo int --work 3");
    let scenario = PlacementScenario {
        stable_polls: 1,
        ..PlacementScenario::new("workover", 1, 1)
    };
    let outcome = scenario.add_to(vm).run(&host, LIMIT).unwrap();
    assert!(outcome.output("work").unwrap().contains("ok"));
    let during = thread_masks(outcome.output("during").unwrap()).unwrap();
    let names: Vec<&str> = during.iter().map(|thread| thread.comm.as_str()).collect();
    assert_eq!(names, ["fp-0", "int-0"]);
    assert!(
        during
            .iter()
            .all(|thread| thread.mask.len() == 1 && thread.tid != thread.program)
    );
}
