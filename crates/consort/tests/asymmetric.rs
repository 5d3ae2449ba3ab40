//! Policies for large and small cores on this host: `consort run --emulate-asymmetry`.
//!
//! Tests that count futex calls need tracefs and root; where tracefs is not mounted they mount it
//! for themselves, in a mount namespace of their own.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;
#[path = "common/compiled.rs"]
mod compiled;

use common::{
    children_of, comm_of, consort, demo, folder, json, masks_of, own_mask, pus, run, skipped,
    stderr, wait_for,
};
use compiled::{compiled, have};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// The first CPU that this process may use.
fn first_pu() -> String {
    let mask = own_mask();
    let end = mask.find([',', '-']).unwrap_or(mask.len());
    mask[..end].to_owned()
}

/// Folder in which tracefs belongs.
const TRACEFS: &str = "/sys/kernel/tracing";

/// Runs a script in which tracefs is mounted; says why and returns none where that cannot be.
fn with_tracefs(script: &str, arguments: &[&str]) -> Option<Output> {
    let mounted = Path::new(TRACEFS).join("events/syscalls").exists();
    let mut command = if mounted {
        Command::new("sh")
    } else {
        let mut command = Command::new("unshare");
        command.args(["-m", "sh"]);
        command
    };
    let mount = format!("mount -t tracefs none {TRACEFS} 2>/dev/null || exit 99; ");
    let text = if mounted {
        script.to_owned()
    } else {
        mount + script
    };
    command
        .args(["-c", &text, env!("CARGO_BIN_EXE_consort")])
        .args(arguments);
    let output = run(&mut command);
    if output.status.code() == Some(99) || !nix::unistd::geteuid().is_root() {
        skipped("futex calls can be counted by root with tracefs only");
        return None;
    }
    Some(output)
}

/// Returns from futex calls that the report has for threads of that name.
fn futex_returns(report: &Value, name: &str) -> f64 {
    let threads = report["threads"].as_array().unwrap().iter();
    let named = threads.filter(|t| t["name"] == name);
    named.filter_map(|t| t["futex_returns"].as_f64()).sum()
}

fn within_one_percent(counted: f64, independently: f64) {
    assert!(
        independently > 1_000.0,
        "{independently} is nothing to compare with"
    );
    let difference = (counted - independently).abs() / independently;
    assert!(
        difference <= 0.01,
        "{counted} counted, {independently} independently: {difference:.4} apart"
    );
}

const KUTHS: &str = "exec \"$0\" run --policy kuths --emulate-asymmetry \"$1\" --enact pin --no-back-off --format json -- ";

#[test]
fn kuths_transitions_are_the_futex_calls_that_the_program_makes() {
    let Some(program) = compiled("futexes", &[]) else {
        return;
    };
    if pus() < 2 {
        return skipped("one CPU cannot be large and small");
    }
    let path = program.path();
    let script = format!("{KUTHS} \"$2\" 20000");
    let Some(output) = with_tracefs(&script, &[&first_pu(), path.to_str().unwrap()]) else {
        return;
    };
    let report = json(&output);
    let reported = stderr(&output);
    let reported = reported
        .lines()
        .find_map(|l| l.strip_suffix(" futex calls"));
    let made: f64 = reported
        .unwrap_or_else(|| panic!("{}", stderr(&output)))
        .parse()
        .unwrap();
    within_one_percent(futex_returns(&report, "program"), made);
    assert_eq!(report["restored"], true, "{report:#}");
}

#[test]
fn kuths_transitions_are_the_futex_calls_that_strace_counts() {
    let Some(program) = compiled("futexes", &[]) else {
        return;
    };
    if pus() < 2 || !have("strace") {
        return skipped("two CPUs and strace are needed");
    }
    let folder = folder();
    let file = folder.path().join("counts");
    // What ends in the last quantum is in no report: it must be few calls of many.
    let script = format!("{KUTHS} strace -f -c -e trace=futex -o \"$3\" \"$2\" 10000");
    let path = program.path();
    let arguments = [&first_pu(), path.to_str().unwrap(), file.to_str().unwrap()];
    let Some(output) = with_tracefs(&script, &arguments) else {
        return;
    };
    let Ok(counts) = std::fs::read_to_string(&file) else {
        return skipped(&format!("strace cannot trace here: {}", stderr(&output)));
    };
    let line = counts.lines().find(|line| line.ends_with(" futex"));
    let line = line.unwrap_or_else(|| panic!("{counts}"));
    let calls: f64 = line.split_whitespace().nth(3).unwrap().parse().unwrap();
    within_one_percent(futex_returns(&json(&output), "program"), calls);
}

/// Tracepoints make every system call of the machine dearer, so nobody counts them in vain.
#[test]
fn calls_are_counted_for_policies_and_recordings_that_use_them_alone() {
    let Some(program) = compiled("futexes", &[]) else {
        return;
    };
    let folder = folder();
    let file = folder.path().join("r.parquet");
    let arguments = [program.path(), file].map(|path| path.to_str().unwrap().to_owned());
    let arguments = arguments.each_ref().map(String::as_str);
    // As many threads as CPUs, or fewer, are left where they are, so nothing is to be waited for.
    let spread =
        "exec \"$0\" run --policy spread --interval 50ms --format json -- \"$1\" 2000 at-once";
    let Some(output) = with_tracefs(spread, &arguments) else {
        return;
    };
    let report = json(&output);
    let counted = |report: &Value, key: &str| {
        let mut threads = report["threads"].as_array().unwrap().iter();
        threads.any(|t| !t[key].is_null())
    };
    assert!(!counted(&report, "futex_returns"), "{report:#}");
    assert!(!counted(&report, "blocking_returns"), "{report:#}");
    let record = "exec \"$0\" record --policy spread --interval 50ms --format json -o \"$2\" -- \
                  \"$1\" 100000 at-once";
    let output = with_tracefs(record, &arguments).unwrap();
    let report = json(&output);
    assert!(counted(&report, "futex_returns"), "{report:#}");
}

#[test]
fn threads_are_exchanged_between_large_and_small_pus_and_left_as_they_were() {
    if pus() < 2 {
        return skipped("one CPU cannot be large and small");
    }
    let large = first_pu();
    for policy in ["hrrs", "tcs"] {
        let output = run(consort()
            .args(["run", "--format", "json", "--policy", policy])
            .args(["--emulate-asymmetry", &large, "--no-back-off", "--"])
            .arg(demo())
            .args(["int", "--threads", "4", "--seconds", "1"]));
        let report = json(&output);
        assert_eq!(report["exit_code"], 0, "{report:#}");
        assert_eq!(report["restored"], true, "{report:#}");
        assert_eq!(report["asymmetry"]["large"], *large);
        assert_eq!(report["asymmetry"]["emulated"], true);
        assert_eq!(report["quantum"]["asked_ms"], 4.0);
        let threads = report["threads"].as_array().unwrap();
        let workers = threads
            .iter()
            .filter(|t| t["name"].as_str().unwrap().starts_with("int-"));
        let moves: Vec<u64> = workers.map(|t| t["moves"].as_u64().unwrap()).collect();
        assert_eq!(moves.len(), 4, "{report:#}");
        assert!(moves.iter().all(|&n| n > 2), "{policy}: {moves:?}");
    }
}

/// `SCHED_FIFO`.
const FIFO: u32 = 1;

/// The scheduling policy of a process's main thread; field 41 of `proc_pid_stat(5)`.
fn policy_of(pid: u32) -> u32 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = text.rsplit(") ").next().unwrap().split(' ');
    fields
        .skip(41 - 3)
        .map(|n| n.parse().unwrap())
        .next()
        .unwrap()
}

#[test]
fn masks_are_put_back_after_kill_9_at_quanta_of_milliseconds() {
    if pus() < 2 {
        return skipped("one CPU cannot be large and small");
    }
    let mut consort = consort()
        .args([
            "run",
            "--policy",
            "hrrs",
            "--emulate-asymmetry",
            &first_pu(),
        ])
        .args(["--no-back-off", "--enact", "pin", "--"])
        .arg(demo())
        .args(["int", "--threads", "4", "--seconds", "120"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let command = wait_for("the command", || {
        let mut children = children_of(consort.id()).into_iter();
        children.find(|pid| comm_of(*pid) == "consort-demo")
    });
    let own = own_mask();
    wait_for("changed masks", || {
        let masks = masks_of(command);
        // The first thread has started the others, so it is not pinned; others come and go.
        (masks.iter().filter(|mask| **mask != own).count() >= 2).then_some(())
    });
    if nix::unistd::geteuid().is_root() {
        let policies = (policy_of(consort.id()), policy_of(command));
        assert_eq!(
            policies,
            (FIFO, 0),
            "Consort is on time, nobody inherits that"
        );
    }
    consort.kill().unwrap();
    consort.wait().unwrap();
    wait_for("every mask as before", || {
        let masks = masks_of(command);
        (!masks.is_empty() && masks.iter().all(|mask| *mask == own)).then_some(())
    });
    let pid = command.to_string();
    run(Command::new("kill").args(["-KILL", &pid]));
}

/// The most of a CPU that turns may take is a fifth; opening and closing come on top.
const MOST_OWN: f64 = 0.35;

/// Consort's own share of a CPU in a run of two seconds under a policy.
fn own_share(policy: &str) -> f64 {
    let mut command = consort();
    command.args(["run", "--format", "json", "--policy", policy]);
    command.args(["--emulate-asymmetry", &first_pu(), "--"]);
    command.arg(demo());
    let report = json(&run(command.args([
        "int",
        "--threads",
        "8",
        "--seconds",
        "2",
    ])));
    let [own_s, run_s] = ["/overhead/cpu_s", "/duration_s"]
        .map(|key| report.pointer(key).and_then(Value::as_f64).unwrap());
    own_s / run_s
}

#[test]
fn the_end_of_a_command_is_not_waited_for_at_real_time_priority() {
    for policy in ["hrrs", "fair-time", "tcs"] {
        // Runs beside this one are real-time, too: a single end may fall into theirs.
        let mut shares = (0..2).map(|_| own_share(policy));
        assert!(shares.any(|share| share <= MOST_OWN), "{policy}");
    }
}

/// Message of `consort run` with these arguments, which exits with code 2.
fn refusal(args: &[&str]) -> String {
    let output = run(consort().arg("run").args(args).args(["--", "true"]));
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    stderr(&output).trim_end().to_owned()
}

#[test]
fn bad_input_is_refused_with_what_would_be_right() {
    let (own, pus) = (own_mask(), pus());
    assert_eq!(
        refusal(&["--emulate-asymmetry", &own]),
        format!(
            "consort: --emulate-asymmetry: all CPUs would be large, so that there is nothing to \
             exchange; name some of {own}, not all"
        )
    );
    assert_eq!(
        refusal(&["--emulate-asymmetry", "65535"]),
        format!(
            "consort: --emulate-asymmetry: CPUs 65535 cannot be used here; large can be some of {own}"
        )
    );
    assert_eq!(
        refusal(&["--interval", "500us"]),
        "consort: invalid value '500us' for '--interval <TIME>': expected a time from 1ms to 1h; \
         see --help"
    );
    let machine = run(consort().args(["machine", "--format", "json"]));
    let machine = json(&machine);
    if machine["core_types"].as_array().unwrap().len() > 1 || machine["smt"] != 1 {
        return skipped("the cores of this host are not alike");
    }
    assert_eq!(
        refusal(&["--policy", "hrrs"]),
        format!(
            "consort: policy hrrs exchanges threads between large and small cores, and all {pus} \
             cores are alike here; use 'spread', or name large ones by --emulate-asymmetry"
        )
    );
}

#[test]
fn kuths_without_tracepoints_is_refused_with_the_signal_that_it_needs() {
    if pus() < 2 || Path::new(TRACEFS).join("events").exists() {
        return skipped("tracefs is mounted, or there is one CPU only");
    }
    let reported = refusal(&["--policy", "kuths", "--emulate-asymmetry", &first_pu()]);
    let begin = "consort: policy kuths needs futex-returns, but this machine offers ";
    assert!(reported.starts_with(begin), "{reported}");
    assert!(
        reported.ends_with("; `consort machine` says why"),
        "{reported}"
    );
}

#[test]
fn the_machine_is_shown_with_the_core_types_that_were_asked_for() {
    if pus() < 2 {
        return skipped("one CPU cannot be large and small");
    }
    let large = first_pu();
    let output =
        run(consort().args(["machine", "--emulate-asymmetry", &large, "--format", "json"]));
    let machine = json(&output);
    assert_eq!(machine["core_types"][0]["name"], "large");
    assert_eq!(machine["core_types"][0]["pus"], *large);
    assert_eq!(machine["core_types"][1]["name"], "small");
    let notes = machine["notes"].to_string();
    let note = format!("core types are emulated: {large} counts as large");
    assert!(notes.contains(&note), "{notes}");
}
