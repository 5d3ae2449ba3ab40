//! A daemon that is stopped while programs take turns.

use super::Daemon;
use super::common::{children_of, comm_of, consort, demo, is_paused, ticks, wait_for};
use std::process::{Child, Stdio};
use std::time::Duration;

/// A run that handed its command over to a daemon; ended with that.
struct Handed {
    run: Child,
    program: u32,
}

impl Handed {
    fn to(daemon: &Daemon) -> Self {
        let run = consort()
            .args(["run", "-q", "--"])
            .arg(demo())
            .args(["int", "--threads", "2", "--seconds", "120"])
            .env("XDG_RUNTIME_DIR", daemon.folder.path())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let program = wait_for("the program", || {
            let mut children = children_of(run.id()).into_iter();
            children.find(|pid| comm_of(*pid) == "consort-demo")
        });
        Self { run, program }
    }
}

impl Drop for Handed {
    fn drop(&mut self) {
        let program = nix::unistd::Pid::from_raw(self.program.cast_signed());
        let _ = nix::sys::signal::kill(program, nix::sys::signal::Signal::SIGKILL);
        let _ = self.run.wait();
    }
}

#[test]
fn programs_of_a_stopped_daemon_run_on() {
    let daemon = Daemon::with("", &["--policy", "gang:quantum=4"]);
    let usual = daemon.folder.path().join("consort");
    std::fs::create_dir_all(&usual).unwrap();
    std::os::unix::fs::symlink(daemon.socket(), usual.join("control.sock")).unwrap();
    let handed = [(); 2].map(|()| Handed::to(&daemon));
    let pids = handed.each_ref().map(|handed| handed.program);
    for pid in pids {
        wait_for("a pause", || is_paused(pid).then_some(()));
    }
    daemon.signal("-STOP");
    for pid in pids {
        let before = ticks(pid);
        wait_for("a program that runs on", || {
            (!is_paused(pid) && ticks(pid) > before + 10).then_some(())
        });
    }
    for _ in 0..60 {
        std::thread::sleep(Duration::from_millis(50));
        assert!(!pids.into_iter().any(is_paused));
    }
    daemon.signal("-CONT");
    for pid in pids {
        wait_for("the next pause", || is_paused(pid).then_some(()));
    }
    drop(handed);
    assert_eq!(daemon.stop(), Some(0));
}
