//! `consort profile` of programs that go well and of programs that do not.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{consort, folder, json, run, stderr, wait_for};
use compiled::{Compiled, compiled, have};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The test program, where it can be profiled.
fn program(flags: &[&str]) -> Option<Compiled> {
    have("qemu-x86_64")
        .then(|| compiled("profiled", flags))
        .flatten()
}

/// `consort profile`, every instruction measured unless `options` say otherwise.
fn profiling(options: &[&str], command: &[&str]) -> Command {
    let mut profile = consort();
    profile.arg("profile").args(options);
    if !options.contains(&"--sampling") {
        profile.args(["--sampling", "none"]);
    }
    profile.arg("--").args(command);
    profile
}

/// Profiles a mode of the test program into `out`, a program file.
fn profiled(program: &Compiled, mode: &str, options: &[&str], out: &Path) -> Output {
    let (path, out) = (program.path(), out.to_str().unwrap());
    let options = [&["--format", "json", "-o", out], options].concat();
    run(&mut profiling(&options, &[path.to_str().unwrap(), mode]))
}

fn check_well(output: &Output, out: &Path) -> serde_json::Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    let shown = run(consort().args(["programs"]).arg(out));
    assert!(shown.status.success(), "{}", stderr(&shown));
    json(output)
}

/// One line, this exit code, and nothing on stdout or in the folder.
fn check_refused(output: &Output, code: i32, part: &str, folder: &Path) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains(part), "'{part}' is missing in: {text}");
    assert!(output.stdout.is_empty());
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "{text}");
}

fn has_note(document: &serde_json::Value, part: &str) -> bool {
    let notes = document["notes"].as_array().unwrap().iter();
    notes
        .filter_map(|note| note.as_str())
        .any(|note| note.contains(part))
}

#[test]
fn a_program_becomes_a_file_that_is_simulated() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let out = folder.path().join("own.toml");
    let document = check_well(&profiled(&program, "loop", &[], &out), &out);
    assert_eq!(document["program"], "own");
    assert!(document["profiled"].as_u64().unwrap() > 1_000_000);
    let workload = format!("{}+hmmer", out.display());
    let args = ["simulate", "--machine", "power7:smt=2", "--workload"];
    let output = run(consort().args(args).arg(workload));
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn two_loops_are_two_phases_that_simulate_and_are_drawn() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let (out, page) = (folder.path().join("out.toml"), folder.path().join("p.html"));
    let options = ["--sampling", "every=200k,window=50k,warm=50k"];
    let options = [&options[..], &["--report-html", page.to_str().unwrap()]].concat();
    let document = check_well(&profiled(&program, "phases", &options, &out), &out);
    assert!(document["windows"].as_u64().unwrap() > 50, "{document:#}");
    let text = std::fs::read_to_string(&out).unwrap();
    let phases: Vec<_> = text.split("[[phase]]").skip(1).collect();
    assert_eq!(document["phases"], phases.len());
    // Loops, with perhaps a phase for what comes before.
    assert!((2..=3).contains(&phases.len()), "{text}");
    let has_fp = |phase: &&str| !phase.contains("fp = 0.0000");
    assert!(phases.last().is_some_and(has_fp), "{text}");
    assert!(!has_fp(&phases[phases.len() - 2]), "{text}");
    assert!(text.contains("95 percent intervals over"), "{text}");
    let ci95 = &document["figures"][0]["ci95"];
    assert!(ci95.as_f64().unwrap() > 0.0);
    let page = std::fs::read_to_string(page).unwrap();
    assert_eq!(page.matches("<svg").count(), 5);
    assert!(page.contains("phase 2"));
}

#[test]
fn threads_are_roles_of_one_file_that_is_simulated() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let (out, page) = (
        folder.path().join("team.toml"),
        folder.path().join("p.html"),
    );
    let options = ["--report-html", page.to_str().unwrap()];
    let document = check_well(&profiled(&program, "roles", &options, &out), &out);
    assert!(
        has_note(&document, "at most 4 at a time share the work"),
        "{document:#}"
    );
    assert!(has_note(&document, "a lower bound"), "{document:#}");
    let text = std::fs::read_to_string(&out).unwrap();
    assert_eq!(text.matches("[[threads.stage]]").count(), 2, "{text}");
    for part in [
        "barrier = {",
        "lock = {",
        "shared_data = ",
        "# System calls: ",
    ] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
    let page = std::fs::read_to_string(page).unwrap();
    for part in ["Roles: threads", "Sharing while", "Locks, a lower bound"] {
        assert!(page.contains(part), "'{part}' is missing in the page");
    }
    let args = "simulate --machine power7:smt=2 --alone 3s --workload";
    let output = run(consort().args(args.split(' ')).arg(&out));
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn static_programs_scripts_and_parents_are_profiled() {
    let Some(program) = program(&["-static"]) else {
        return;
    };
    let folder = folder();
    for mode in ["loop", "fork"] {
        let out = folder.path().join(format!("{mode}.toml"));
        check_well(&profiled(&program, mode, &[], &out), &out);
    }
    let script = folder.path().join("script");
    let text = "#!/bin/sh\ni=0\nwhile [ $i -lt 2000 ]; do i=$((i + 1)); done\n";
    std::fs::write(&script, text).unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let out = folder.path().join("script.toml");
    let options = ["--format", "json", "-o", out.to_str().unwrap()];
    let output = run(&mut profiling(&options, &[script.to_str().unwrap()]));
    check_well(&output, &out);
}

#[test]
fn what_is_behind_an_exec_is_told_not_to_be_there() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let out = folder.path().join("out.toml");
    let document = check_well(&profiled(&program, "exec", &[], &out), &out);
    assert!(has_note(&document, "replaced itself"), "{document:#}");
}

#[test]
fn a_program_without_end_is_ended_at_the_limit() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let out = folder.path().join("out.toml");
    let limit = ["--instructions", "3M"];
    let document = check_well(&profiled(&program, "forever", &limit, &out), &out);
    assert!(has_note(&document, "ended at the limit"), "{document:#}");
    let profiled = document["profiled"].as_u64().unwrap();
    assert!((2_990_000..3_010_000).contains(&profiled), "{profiled}");
}

/// Sends `signal` to Consort alone once the program runs.
fn interrupted(program: &Compiled, signal: Signal, out: &Path) -> Output {
    let path = program.path();
    let options = ["--format", "json", "-o", out.to_str().unwrap()];
    let mut command = profiling(&options, &[path.to_str().unwrap(), "forever"]);
    let (mut said, says) = std::io::pipe().unwrap();
    command.stdout(Stdio::piped()).stderr(says);
    let child = command.spawn().unwrap();
    // Else this process keeps the pipe open.
    drop(command);
    let mut line = [0; 4];
    std::io::Read::read_exact(&mut said, &mut line).unwrap();
    assert_eq!(&line, b"runs");
    kill(Pid::from_raw(child.id().cast_signed()), signal).unwrap();
    let mut output = child.wait_with_output().unwrap();
    std::io::Read::read_to_end(&mut said, &mut output.stderr).unwrap();
    output
}

#[test]
fn an_interrupt_ends_the_program_and_keeps_what_was_seen() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let out = folder.path().join("out.toml");
    let output = interrupted(&program, Signal::SIGINT, &out);
    let document = check_well(&output, &out);
    assert!(has_note(&document, "cut short"), "{document:#}");
}

#[test]
fn a_termination_ends_the_program_and_writes_nothing() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    let output = interrupted(&program, Signal::SIGTERM, &folder.path().join("out.toml"));
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("ended by signal 15 (SIGTERM), so nothing was written"));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    let end = || {
        let mut search = Command::new("pgrep");
        let found = run(search.arg("-f").arg(program.path()));
        found.stdout.is_empty().then_some(())
    };
    if have("pgrep") {
        wait_for("the program's end", end);
    }
}

#[test]
fn programs_that_fail_leave_no_profile() {
    if !have("qemu-x86_64") {
        return;
    }
    let folder = folder();
    let out = folder.path().join("out.toml");
    let options = ["-o", out.to_str().unwrap()];
    for (script, part) in [
        ("exit 3", "the program ended with status 3"),
        ("kill -9 $$", "the program was ended by signal 9 (SIGKILL)"),
    ] {
        let output = run(&mut profiling(&options, &["sh", "-c", script]));
        check_refused(&output, 1, part, folder.path());
        for way in ["--any-status", "--instructions N"] {
            assert!(stderr(&output).contains(way), "{}", stderr(&output));
        }
    }
    let options = [&options[..], &["--skip", "1G"]].concat();
    let output = run(&mut profiling(&options, &["sh", "-c", "true"]));
    check_refused(&output, 1, "smaller --skip", folder.path());
}

#[test]
fn failed_program_is_kept_on_request() {
    if !have("qemu-x86_64") {
        return;
    }
    let folder = folder();
    for (script, status) in [
        ("exit 3", "the program ended with status 3"),
        (
            "kill -SEGV $$",
            "the program was ended by signal 11 (SIGSEGV)",
        ),
    ] {
        let out = folder.path().join(format!("{}.toml", script.len()));
        let options = ["--any-status", "--format", "json", "-o"];
        let options = [&options[..], &[out.to_str().unwrap()]].concat();
        let output = run(&mut profiling(&options, &["sh", "-c", script]));
        let document = check_well(&output, &out);
        assert!(has_note(&document, status), "{document:#}");
        let text = std::fs::read_to_string(&out).unwrap();
        assert!(text.contains(&format!("# Note: {status}.")), "{text}");
    }
}

/// Profiles a loop of so many instructions, without a choice of windows.
fn with_usual_windows(options: &[&str], instructions: &str) -> Option<(serde_json::Value, String)> {
    let program = program(&[])?;
    let folder = folder();
    let out = folder.path().join("out.toml");
    let mut command = consort();
    command.args(["profile", "--format", "json"]).args(options);
    command.arg("-o").arg(&out).arg("--").arg(program.path());
    let output = run(command.args(["sized", instructions]));
    let document = check_well(&output, &out);
    Some((document, std::fs::read_to_string(&out).unwrap()))
}

#[test]
fn short_program_has_several_windows() {
    let Some((document, text)) = with_usual_windows(&[], "30000000") else {
        return;
    };
    let windows = document["windows"].as_u64().unwrap();
    // The distance is 2 million there.
    assert!((14..=16).contains(&windows), "{document:#}");
    assert!(
        text.contains("windows of 500000 instructions every 2000000"),
        "{text}"
    );
    assert!(!has_note(&document, "1 window"), "{document:#}");
    let (document, text) = with_usual_windows(&[], "3000000").unwrap();
    assert!(text.contains("every instruction"), "{text}");
    let executed = document["executed"].as_u64().unwrap();
    let profiled = document["profiled"].as_u64().unwrap();
    assert!(executed - profiled < 1000, "{document:#}");
}

#[test]
fn single_window_is_warned_of() {
    let fixed = ["--sampling", "every=50M,window=500k,warm=500k"];
    let Some((document, _)) = with_usual_windows(&fixed, "30000000") else {
        return;
    };
    assert_eq!(document["windows"], 1);
    assert!(has_note(&document, "1 window: "), "{document:#}");
    assert!(
        has_note(&document, "or run the program longer"),
        "{document:#}"
    );
}

#[test]
fn killed_program_has_its_length() {
    let fixed = [
        "--any-status",
        "--sampling",
        "every=10M,window=100k,warm=100k",
    ];
    let Some((document, _)) = with_usual_windows(&fixed, "-30000000") else {
        return;
    };
    let executed = document["executed"].as_u64().unwrap();
    assert!((28_000_000..32_000_000).contains(&executed), "{document:#}");
}

#[test]
fn commands_that_cannot_be_profiled_are_bad_input() {
    if !have("qemu-x86_64") {
        return;
    }
    let (folder, elsewhere) = (folder(), folder());
    let out = folder.path().join("out.toml");
    let options = ["-o", out.to_str().unwrap()];
    let text = elsewhere.path().join("text");
    std::fs::write(&text, "no program").unwrap();
    std::fs::set_permissions(&text, std::fs::Permissions::from_mode(0o755)).unwrap();
    for (command, part) in [
        ("consort-no-such-program", "cannot find program"),
        (text.to_str().unwrap(), "is no program"),
    ] {
        let output = run(&mut profiling(&options, &[command]));
        check_refused(&output, 2, part, folder.path());
    }
}

#[test]
fn bad_sampling_and_bad_outputs_are_told_before_anything_runs() {
    let (folder, elsewhere) = (folder(), folder());
    let ran = folder.path().join("ran");
    let command = ["touch", ran.to_str().unwrap()];
    let there = elsewhere.path().join("there.toml");
    std::fs::write(&there, "kept").unwrap();
    let there = there.to_str().unwrap();
    for (options, part) in [
        (["--sampling", "each=1M"], "unknown key 'each'"),
        (
            ["--sampling", "every=1M,window=2M"],
            "every at least window",
        ),
        (["--instructions", "many"], "expected a whole number"),
        (["-o", there], "exists; --force replaces it"),
        (["--trace", there], "exists; --force replaces it"),
        (["-o", "/dev/full"], "exists"),
        (["-o", "/no/such/folder/x.toml"], "cannot write profile"),
    ] {
        let output = run(&mut profiling(&options, &command));
        let text = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{options:?}: {text}");
        assert!(text.contains(part), "'{part}' is missing in: {text}");
        assert!(!ran.exists(), "{options:?}");
    }
    let device = ["--force", "-o", "/dev/full"];
    let output = run(&mut profiling(&device, &command));
    check_refused(&output, 2, "it is no file", folder.path());
    assert_eq!(std::fs::read_to_string(there).unwrap(), "kept");
}

#[test]
fn a_full_disk_is_one_line_and_leaves_nothing() {
    let Some(program) = program(&[]) else { return };
    let folder = folder();
    // A limit on the size of files is what a test can have of a full disk without root. The
    // recorder fits into it, a trace does not.
    let script = "trap '' XFSZ; ulimit -f 96; exec \"$C\" profile --sampling none \
                  --trace \"$T\" -- \"$P\" roles";
    let mut shell = Command::new("sh");
    shell.args(["-c", script]).env("P", program.path());
    shell.env("C", consort().get_program());
    shell.env("T", folder.path().join("out.trace"));
    let output = run(&mut shell);
    check_refused(&output, 1, "cannot write", folder.path());
}
