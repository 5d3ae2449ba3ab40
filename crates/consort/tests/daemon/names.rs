//! Names that try to be more than names.

use super::common::{comm_of, own_mask, wait_for};
use super::{Daemon, Spinner, has_choice};
use std::process::Command;

#[test]
fn line_end_in_a_thread_s_name_forges_no_line() {
    if !has_choice() {
        return;
    }
    let mut shell = Command::new("sh");
    let script = "printf 'a\\nWARN fake' > /proc/$$/comm; shift; eval \"$2\"";
    shell.args(["-c", script, "sh", "x"]);
    let spinner = Spinner::of(shell);
    assert!(
        comm_of(spinner.pid()).contains('\n'),
        "the kernel keeps the line end"
    );
    let daemon = Daemon::with("", &["--policy", "spread:active=0"]);
    assert!(daemon.ask(&["attach", &spinner.id()]).status.success());
    let own = own_mask();
    // A mask of its own choice is what the daemon warns of.
    wait_for("a warning", || {
        for cpu in [own.split([',', '-']).next(), own.rsplit([',', '-']).next()] {
            let mut taskset = Command::new("taskset");
            let set = taskset.args(["-cp", cpu.unwrap(), &spinner.id()]).output();
            set.unwrap();
        }
        daemon.log().contains("fake").then_some(())
    });
    let reported = super::run(
        super::consort()
            .args(["status", "--socket"])
            .arg(daemon.socket()),
    );
    let status = String::from_utf8(reported.stdout).unwrap();
    assert!(
        status.contains("warning: thread") && status.contains("fake"),
        "{status}"
    );
    for text in [&status, &daemon.log()] {
        let forged = |line: &&str| line.trim_start().starts_with("WARN fake");
        assert_eq!(text.lines().find(forged), None, "{text}");
    }
}
