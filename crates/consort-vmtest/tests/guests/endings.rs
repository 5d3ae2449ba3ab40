//! Guests that do not end as they should.

use crate::support::LIMIT;
use consort_vmtest::{GuestTools, GuestTopology, Vm};
use std::time::Duration;

#[test]
fn a_guest_that_hangs_is_killed_and_quoted() {
    let Some(host) = GuestTools::find_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(1, 1)).command("hang", "echo waiting; sleep 1000000");
    let error = vm.run(&host, Duration::from_secs(2)).unwrap_err();
    assert!(error.to_string().contains("killed after 2s"), "{error}");
}

#[test]
fn qemus_own_refusal_is_quoted() {
    let Some(host) = GuestTools::find_or_skip() else {
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
    let Some(host) = GuestTools::find_or_skip() else {
        return;
    };
    let vm = Vm::new(GuestTopology::smt(1, 1)).command("stop", "echo goodbye; poweroff -f");
    let error = vm.run(&host, LIMIT).unwrap_err().to_string();
    assert!(
        error.contains("stopped early") && error.contains("goodbye"),
        "{error}"
    );
}
