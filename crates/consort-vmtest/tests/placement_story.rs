//! Promise: the placement story tells a good placement from a bad one and sees masks restored,
//! whoever plays `consort`. Here shell scripts do, so that the story is tested apart from it.

use consort_vmtest::{
    GuestTopology, Host, Outcome, PlacementScenario, ThreadMask, Vm, VmError,
    each_fp_paired_with_light, fp_threads_on_different_cores, same_masks, thread_masks,
};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(400);
const GUEST: fn() -> GuestTopology = || GuestTopology::smt(4, 2);

fn tell(host: &Host, policy: &str) -> Result<Outcome, VmError> {
    let vm = Vm::new(GUEST())
        .file("/bin/consort", include_bytes!("stand_in/consort"))
        .file("/bin/consort-demo", include_bytes!("stand_in/consort-demo"));
    let scenario = PlacementScenario {
        stable_polls: 2,
        ..PlacementScenario::new(policy, 4, 4)
    };
    scenario.add_to(vm).run(host, LIMIT)
}

fn seen(outcome: &Outcome, section: &str) -> Result<Vec<ThreadMask>, VmError> {
    thread_masks(outcome.output(section)?)
}

fn all_free(masks: &[ThreadMask]) -> bool {
    masks.len() == 8 && masks.iter().all(|thread| thread.mask.len() == 8)
}

#[test]
fn a_spread_is_seen_and_its_end_restores_every_mask() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let outcome = tell(&host, "workover").unwrap();
    let topology = GUEST().topology().unwrap();
    assert!(all_free(&seen(&outcome, "before").unwrap()));
    for section in ["during", "again"] {
        let masks = seen(&outcome, section).unwrap();
        fp_threads_on_different_cores(&masks, &topology).unwrap();
        each_fp_paired_with_light(&masks, &topology).unwrap();
    }
    for (placed, section) in [("during", "after"), ("again", "killed")] {
        let free = seen(&outcome, section).unwrap();
        assert!(all_free(&free), "{section}: {free:?}");
        assert!(same_masks(&seen(&outcome, placed).unwrap(), &free).is_err());
    }
    assert_eq!(outcome.output("report").unwrap(), r#"{"restored": true}"#);
}

#[test]
fn like_beside_like_is_seen_as_bad() {
    let Some(host) = Host::find_or_skip() else {
        return;
    };
    let outcome = tell(&host, "aggregate").unwrap();
    let topology = GUEST().topology().unwrap();
    let masks = seen(&outcome, "during").unwrap();
    let error = fp_threads_on_different_cores(&masks, &topology).unwrap_err();
    assert!(error.contains("core 0 has fp-0"), "{error}");
    assert!(each_fp_paired_with_light(&masks, &topology).is_err());
}
