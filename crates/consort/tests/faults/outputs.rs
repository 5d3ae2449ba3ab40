//! Full disks, devices and closed descriptors where the report should go.

use super::common::{folder, stderr};
use super::under::{RUN, complaints, scene};
use std::os::unix::fs::{FileTypeExt, PermissionsExt, symlink};

/// A command that leaves a trace of its own end, and a status.
const COMMAND: &str = "sh -c 'sleep 0.2; touch \"$P\"; exit 7'";

/// Runs the scene and checks that the command came to its end all the same, and that its status
/// stands.
fn fails_in_one_line(script: &str) {
    let folder = folder();
    let trace = folder.path().join("trace");
    let output = scene(script, trace.to_str().unwrap());
    assert!(trace.exists(), "{script}: {}", stderr(&output));
    assert_eq!(
        output.status.code(),
        Some(7),
        "{script}: {}",
        stderr(&output)
    );
    let complaints = complaints(&output);
    let reported = |l: &&String| l.contains("warning: cannot write");
    let lines: Vec<&String> = complaints.iter().filter(reported).collect();
    assert_eq!(lines.len(), 1, "{script}: {}", stderr(&output));
}

#[test]
fn a_full_disk_under_the_report_is_told_in_one_line_and_the_command_s_status_stands() {
    fails_in_one_line(&format!("\"$C\" {RUN} -q --report /dev/full -- {COMMAND}"));
    fails_in_one_line(&format!(
        "\"$C\" {RUN} --format json -- {COMMAND} >/dev/full"
    ));
    fails_in_one_line(&format!(
        "cd \"${{P%/*}}\"; ulimit -f 1; \"$C\" {RUN} -q --report r.json -- {COMMAND} && exit; \
         s=$?; [ -e r.json ] && exit 3; exit $s"
    ));
}

#[test]
fn a_full_disk_under_stderr_leaves_the_command_s_status() {
    for code in [0, 7] {
        let script = format!("\"$C\" {RUN} -- sh -c 'exit {code}' 2>/dev/full");
        assert_eq!(scene(&script, "").status.code(), Some(code));
    }
}

#[test]
fn a_report_to_a_device_leaves_the_device_in_place() {
    let folder = folder();
    let link = folder.path().join("null");
    symlink("/dev/null", &link).unwrap();
    for (path, code) in [("/dev/null", 0), (link.to_str().unwrap(), 2)] {
        let output = scene(&format!("\"$C\" {RUN} -q --report \"$P\" -- true"), path);
        assert_eq!(output.status.code(), Some(code), "{}", stderr(&output));
    }
    assert!(link.is_symlink());
    let null = std::fs::metadata("/dev/null").unwrap();
    assert!(null.file_type().is_char_device());
    let output = scene(&format!("\"$C\" {RUN} -q --report /dev/stdout -- true"), "");
    assert_eq!(super::common::json(&output)["exit_code"], 0);
}

#[test]
fn report_replaces_a_link_and_spares_its_target() {
    for option in ["--report", "--report-html"] {
        let folder = folder();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        std::fs::write(&file, "old").unwrap();
        symlink("file", &link).unwrap();
        let script = format!("umask 022; \"$C\" {RUN} -q {option} \"$P\" -- true");
        let output = scene(&script, link.to_str().unwrap());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(!link.is_symlink());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "old");
        let mode = link.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o644, "as any file that a command writes");
    }
}

#[test]
fn pipe_without_a_reader_does_not_hold_up_the_run() {
    let folder = folder();
    let pipe = folder.path().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    let pipe = pipe.to_str().unwrap();
    let output = scene(&format!("\"$C\" {RUN} -q --report \"$P\" -- true"), pipe);
    assert_eq!(output.status.code(), Some(2));
    assert!(
        stderr(&output).contains("no process reads from it"),
        "{}",
        stderr(&output)
    );
    // The reader may open the pipe after the first attempts.
    let script = format!(
        "cat \"$P\" & cat=$!; until \"$C\" {RUN} -q --report \"$P\" -- true; do sleep 0.1; done; \
         wait $cat"
    );
    let output = scene(&script, pipe);
    assert_eq!(super::common::json(&output)["exit_code"], 0);
}

#[test]
fn closed_descriptors_do_no_harm() {
    for closed in ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"] {
        let script = format!("\"$C\" {RUN} -- sh -c 'exit 4' {closed}");
        assert_eq!(scene(&script, "").status.code(), Some(4), "{closed}");
    }
}
