//! Promise: a mask that somebody else has set is never written back.
//!
//! The command is a shell that starts processes all the time. Somebody else pins the shell and
//! whatever it has started to one CPU, one that Consort uses for threads of this very tree, at any
//! moment: what comes after must stay there.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{children_of, consort, mask_of, masks_of, pus, skipped, wait_for};
use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const TRIES: u32 = 8;
/// Starts processes of some milliseconds, without end.
const SHELL: &str = "while :; do i=0; while [ $i -lt 2000 ]; do i=$((i+1)); done; /bin/true; done";

struct Managed(Child);

impl Drop for Managed {
    fn drop(&mut self) {
        let pid = Pid::from_raw(self.0.id().cast_signed());
        // It passes the signal on, so the shell ends as well.
        let _ = nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM);
        let _ = self.0.wait();
    }
}

fn start(enact: &str) -> (Managed, u32) {
    let consort = consort()
        .args(["run", "-q", "--no-back-off", "--interval", "100ms"])
        .args([
            "--policy", "random", "--enact", enact, "--", "sh", "-c", SHELL,
        ])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let shell = wait_for("the shell", || {
        let mut children = children_of(consort.id()).into_iter();
        children.find(|pid| common::comm_of(*pid) == "sh")
    });
    (Managed(consort), shell)
}

fn last_pu() -> usize {
    let own = sched_getaffinity(Pid::from_raw(0)).unwrap();
    let allowed = (0..CpuSet::count()).filter(|pu| own.is_set(*pu).unwrap());
    allowed.max().unwrap()
}

fn pin(pid: u32, pu: usize) {
    let mut set = CpuSet::new();
    set.set(pu).unwrap();
    // A child may be gone by now.
    let _ = sched_setaffinity(Pid::from_raw(pid.cast_signed()), &set);
}

fn stays(enact: &str) {
    if pus() < 2 {
        return skipped("one CPU leaves nothing to choose");
    }
    let pu = last_pu();
    for attempt in 0..TRIES {
        let (_managed, shell) = start(enact);
        // Moments spread over quanta, some before the shell is known.
        std::thread::sleep(Duration::from_millis(u64::from(attempt) * 73 % 400));
        pin(shell, pu);
        children_of(shell)
            .into_iter()
            .for_each(|child| pin(child, pu));
        for _ in 0..20 {
            std::thread::sleep(Duration::from_millis(25));
            let mask = mask_of(Path::new(&format!("/proc/{shell}")));
            assert_eq!(mask, Some(pu.to_string()), "attempt {attempt}");
            // What it starts inherits the mask, which is its own by somebody's choice.
            let children = children_of(shell).into_iter().flat_map(masks_of);
            for mask in children {
                assert_eq!(mask, pu.to_string(), "a child in attempt {attempt}");
            }
        }
    }
}

#[test]
fn a_mask_that_somebody_else_set_stays_under_nudges() {
    stays("nudge");
}

#[test]
fn a_mask_that_somebody_else_set_stays_under_pins() {
    stays("pin");
}
