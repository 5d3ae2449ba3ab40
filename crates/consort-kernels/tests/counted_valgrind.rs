//! The counted loops, counted by callgrind (`valgrind --tool=callgrind`), which
//! executes every instruction itself and so counts exactly.
//!
//! The difference between two numbers of iterations must be the difference of
//! the known counts. Calls from outside a loop's function are not collected.

#![expect(
    clippy::unwrap_used,
    reason = "tests may fail loudly, their helpers too"
)]

mod skip;

use consort_kernels::counted::{self, CountedLoop, KnownCounts};
use skip::skipped;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

fn callgrind_missing() -> bool {
    let found = Command::new("valgrind").arg("--version").output();
    !found.is_ok_and(|output| output.status.success())
}

/// Runs the loop under callgrind; returns its output file.
fn callgrind(counted: &CountedLoop, iterations: u64, dir: &Path) -> String {
    let file = dir.join(format!("{}.{iterations}", counted.name));
    let run = Command::new("valgrind")
        .arg("--tool=callgrind")
        .args(["--cache-sim=yes", "--branch-sim=yes"])
        // By address: programs of tests have no lines.
        .args(["--collect-jumps=yes", "--dump-instr=yes"])
        .arg(format!("--toggle-collect=*{}*", counted.name))
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env!("CARGO_BIN_EXE_consort-demo"))
        .args(["counted", counted.name, "--iterations"])
        .arg(iterations.to_string())
        .output()
        .unwrap();
    assert!(
        run.status.success(),
        "{}",
        String::from_utf8_lossy(&run.stderr)
    );
    std::fs::read_to_string(file).unwrap()
}

/// Totals by event name, and `taken`: conditional jumps that were taken.
fn totals(text: &str) -> BTreeMap<String, u64> {
    let field = |name| {
        text.lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap()
    };
    let names = field("events: ").split_whitespace();
    let values = field("totals: ").split_whitespace();
    let mut totals: BTreeMap<String, u64> = names
        .zip(values)
        .map(|(name, value)| (name.to_owned(), value.parse().unwrap()))
        .collect();
    totals.insert("taken".to_owned(), taken_jumps(text));
    totals
}

/// The sum over lines `jcnd=TAKEN/EXECUTED TARGET ...`.
fn taken_jumps(text: &str) -> u64 {
    text.lines()
        .filter_map(|line| line.strip_prefix("jcnd="))
        .map(|rest| rest.split('/').next().unwrap().parse::<u64>().unwrap())
        .sum()
}

fn measured(counted: &CountedLoop, iterations: u64, dir: &Path) -> KnownCounts {
    let text = callgrind(counted, iterations, dir);
    let totals = totals(&text);
    KnownCounts {
        instructions: totals["Ir"],
        loads: totals["Dr"],
        stores: totals["Dw"],
        branches: totals["Bc"],
        taken_branches: totals["taken"],
        ..KnownCounts::default()
    }
}

/// Difference of the counts that callgrind can make, `more` minus `less`.
fn difference(more: KnownCounts, less: KnownCounts) -> KnownCounts {
    KnownCounts {
        instructions: more.instructions - less.instructions,
        loads: more.loads - less.loads,
        stores: more.stores - less.stores,
        branches: more.branches - less.branches,
        taken_branches: more.taken_branches - less.taken_branches,
        ..KnownCounts::default()
    }
}

#[test]
fn callgrind_counts_what_is_known() {
    if callgrind_missing() {
        skipped("valgrind is not installed");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    for counted in counted::LOOPS {
        let (less, more) = (1_000, 5_000);
        assert_eq!(
            difference(
                measured(counted, more, dir.path()),
                measured(counted, less, dir.path())
            ),
            difference(counted.counts(more), counted.counts(less)),
            "{}",
            counted.name
        );
    }
}
