//! Daemons that are killed together with their guardians, as by a service manager, and started again
//! at once.

use super::common::{children_of, own_mask};
use super::{Daemon, Spinner, has_choice, wait_for_mask};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

/// Number of kills. One in two left masks narrowed while journals were looked at only once.
const KILLS: usize = 6;

/// Guardian of a daemon, by its name.
fn guardian_of(daemon: u32) -> Option<u32> {
    let is_guardian = |pid: &u32| {
        let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
        name.is_ok_and(|name| name.trim() == "consort-guard")
    };
    children_of(daemon).into_iter().find(is_guardian)
}

#[test]
fn daemon_started_again_at_once_restores_masks() {
    if !has_choice() {
        return;
    }
    let (own, spinner) = (own_mask(), Spinner::start());
    let mut daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    for _ in 0..KILLS {
        assert!(daemon.ask(&["attach", &spinner.id()]).status.success());
        wait_for_mask(spinner.pid(), |mask| mask != own);
        let consort = daemon.child.id();
        for pid in [Some(consort), guardian_of(consort)].into_iter().flatten() {
            kill(Pid::from_raw(pid.cast_signed()), Signal::SIGKILL).unwrap();
        }
        daemon.child.wait().unwrap();
        daemon.start_again(&["--policy", "spread:active=0"]);
        wait_for_mask(spinner.pid(), |mask| mask == own);
    }
    assert_eq!(daemon.stop(), Some(0));
}
