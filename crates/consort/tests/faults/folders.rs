//! Folders for journals that somebody else has taken, or that cannot be written.

use super::common::{skipped, stderr};
use super::compiled::have;
use super::under::scene;

/// User and group `nobody`.
pub const AS_USER: &str = "setpriv --reuid=65534 --regid=65534 --clear-groups";

/// A `/tmp` of its own that anybody may write.
const OWN_TMP: &str = "mount -t tmpfs -o mode=1777 none /tmp";

/// Returns true where this test may mount, and be another user; says so if not.
pub fn may_play() -> bool {
    let tools = have("unshare") && have("setpriv") && have("mount");
    let script = format!("unshare -m sh -c '{OWN_TMP} && {AS_USER} \"$C\" --version'");
    let works = tools && scene(&script, "").status.success();
    if !works {
        skipped("nothing may be mounted here, or the binary is not for everybody");
    }
    works
}

/// Runs a script within mounts of its own.
pub fn within(script: &str) -> std::process::Output {
    let script = format!("unset XDG_RUNTIME_DIR; unshare -m sh -c '{OWN_TMP}; {script}'");
    scene(&script, "")
}

#[test]
fn the_folder_of_a_user_that_another_one_has_made_stops_no_run() {
    if !may_play() {
        return;
    }
    for args in ["", "--policy none", "--dry-run", "--group g"] {
        let script = format!(
            "mkdir -m 755 /tmp/consort-65534; \
             {AS_USER} \"$C\" run -q {args} -- echo started; code=$?; \
             {AS_USER} \"$C\" run -q {args} -- echo again; \
             ls -d /tmp/consort-65534* | wc -l; ls /tmp/consort-65534.*; exit $code"
        );
        let output = within(&script);
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{args}: {}", stderr(&output));
        // One folder beside the foreign one, used by both runs, and nothing left in it.
        assert_eq!(said, "started\nagain\n2\n", "{args}");
    }
}

#[test]
fn masks_that_a_killed_run_left_are_put_back_from_the_spare_folder() {
    if !may_play() || super::common::pus() < 2 {
        return;
    }
    let run = "run -q --interval 20ms --policy spread:active=0 --no-back-off --enact pin";
    let script = format!(
        "mkdir -m 755 /tmp/consort-65534; echo \"while :; do :; done\" > /tmp/busy; \
         {AS_USER} \"$C\" {run} -- sh /tmp/busy & run=$!; \
         until pid=$(pgrep -P $run -x sh); do sleep 0.1; done; \
         list() {{ grep Cpus_allowed_list /proc/$pid/status; }}; \
         own=$(grep Cpus_allowed_list /proc/self/status); \
         until [ \"$(list)\" != \"$own\" ]; do sleep 0.1; done; \
         guard=$(pgrep -P $run -x consort-guard); kill -9 $guard $run; \
         for dead in $guard $run; do \
           while grep -q \"^State:.[^ZX]\" /proc/$dead/status 2>/dev/null; do sleep 0.05; done; \
         done; \
         [ \"$(list)\" != \"$own\" ] && echo left; \
         {AS_USER} \"$C\" {run} -- true; \
         [ \"$(list)\" = \"$own\" ] && echo back; kill -9 $pid"
    );
    let output = within(&script);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "left\nback\n", "{}", stderr(&output));
}

#[test]
fn root_of_a_user_namespace_that_may_not_write_run_needs_no_run() {
    let works = "unshare --user --map-root-user true";
    if !have("unshare") || !scene(works, "").status.success() || !may_play() {
        return skipped("no user namespace may be made here");
    }
    // Root outside owns /run; root of the namespace is nobody outside.
    let script = format!(
        "mkdir -m 755 /tmp/run; mount --bind /tmp/run /run; \
         {AS_USER} unshare --user --map-root-user \"$C\" run -q -- echo started"
    );
    let output = within(&script);
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(output.stdout, b"started\n", "{}", stderr(&output));
}

/// Scenes in which the usual folder is there, private, and nothing can be written in it.
const UNWRITABLE: [(&str, &str); 3] = [
    (
        "read-only",
        "mount -t tmpfs none /run; mkdir -m 700 /run/consort; mount -o remount,ro /run",
    ),
    (
        "full",
        "mount -t tmpfs -o size=64k none /run; mkdir -m 700 /run/consort; \
         dd if=/dev/zero of=/run/fill bs=1k count=200 2>/dev/null",
    ),
    (
        "without a free inode",
        "mount -t tmpfs -o nr_inodes=2 none /run; mkdir -m 700 /run/consort",
    ),
];

#[test]
fn unwritable_folder_is_passed_over() {
    if !may_play() {
        return;
    }
    for (why, scene) in UNWRITABLE {
        for args in ["--policy spread", "--policy spread --group g"] {
            let script = format!(
                "{scene}; \"$C\" run -q --no-daemon {args} -- echo started; code=$?; \
                 ls -d /tmp/consort-0.* | wc -l; exit $code"
            );
            let output = within(&script);
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(output.status.success(), "{why} {args}: {}", stderr(&output));
            assert_eq!(said, "started\n1\n", "{why} {args}: {}", stderr(&output));
        }
    }
}

#[test]
fn own_folder_without_write_permission_is_passed_over() {
    if !may_play() {
        return;
    }
    let script = format!(
        "mkdir -m 500 /tmp/consort-65534; chown 65534 /tmp/consort-65534; \
         {AS_USER} \"$C\" run -q --policy spread -- echo started; ls -d /tmp/consort-65534.* | wc -l"
    );
    let output = within(&script);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "started\n1\n", "{}", stderr(&output));
}

#[test]
fn without_any_folder_commands_run_and_are_watched() {
    if !may_play() {
        return;
    }
    let read_only = "mount -t tmpfs -o ro none /run; mount -o remount,ro /tmp";
    for args in ["--policy none", "--dry-run"] {
        let script = format!("{read_only}; \"$C\" run {args} -- echo started");
        let output = within(&script);
        assert!(output.status.success(), "{args}: {}", stderr(&output));
        assert_eq!(output.stdout, b"started\n", "{args}: {}", stderr(&output));
        assert!(!stderr(&output).contains("only watched"), "{args}");
    }
    for args in ["--policy spread", "--group g"] {
        let script = format!("{read_only}; \"$C\" run {args} -- sh -c \"echo started; exit 7\"");
        let output = within(&script);
        assert_eq!(output.status.code(), Some(7), "{}", stderr(&output));
        assert_eq!(output.stdout, b"started\n", "{args}");
        let said = stderr(&output);
        assert!(
            said.contains("the command is only watched"),
            "{args}: {said}"
        );
    }
}

#[test]
fn proc_that_shows_only_processes_suffices() {
    let only_processes = "mount -t proc -o subset=pid proc /proc";
    let works = format!("unshare -m sh -c '{only_processes}'");
    if !may_play() || !scene(&works, "").status.success() {
        return skipped("no /proc of processes alone can be mounted here");
    }
    for args in ["--policy spread", "--policy none"] {
        let output = within(&format!(
            "{only_processes}; \"$C\" run -q --no-daemon {args} -- echo started"
        ));
        assert!(output.status.success(), "{args}: {}", stderr(&output));
        assert_eq!(output.stdout, b"started\n", "{args}: {}", stderr(&output));
    }
}

#[test]
fn missing_proc_and_foreign_proc_are_different_errors() {
    if !may_play() {
        return;
    }
    let foreign = "unshare -pf sh -c '\"$C\" run -q --no-daemon -- true'";
    let output = scene(foreign, "");
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(said.contains("another PID namespace"), "{said}");
    let missing = within("umount -l /proc; \"$C\" run -q --no-daemon -- true");
    assert_eq!(missing.status.code(), Some(1));
    let said = stderr(&missing);
    assert!(!said.contains("PID namespace"), "{said}");
}
