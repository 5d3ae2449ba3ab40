//! Cost of managing a command: `cargo bench -p consort --bench overhead [-- PAIRS [WORKLOAD]]`.
//!
//! The same fixed work is run with and without Consort, in turn and in changing
//! order, and compared pair by pair: by the CPU time of everything, which is the
//! command's, with the timer interrupts that sampling causes in it, and Consort's
//! own with its guardian's; and by the time that passed. CPU time stands still
//! while others run, time that passed does not; the median over pairs is not
//! moved by the few that the host disturbed.

#![expect(clippy::unwrap_used, reason = "a bench may fail loudly")]

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

const PAIRS: usize = 16;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let pairs = args.iter().find_map(|arg| arg.parse().ok());
    let folder = std::env::temp_dir().join(format!("consort-overhead-{}", std::process::id()));
    std::fs::create_dir(&folder).unwrap();
    let wanted = |name: &str| {
        let names = args
            .iter()
            .filter(|arg| arg.starts_with(char::is_alphabetic));
        let names: Vec<_> = names.collect();
        names.is_empty() || names.into_iter().any(|n| n == name)
    };
    for workload in workloads(&folder) {
        if !wanted(workload.name) {
            continue;
        }
        match &workload.missing {
            Some(program) => println!("{}: skipped: no {program}", workload.name),
            None => measure(&workload, &folder, pairs.unwrap_or(PAIRS)),
        }
    }
    std::fs::remove_dir_all(folder).unwrap();
}

/// Fixed work of some seconds.
struct Workload {
    name: &'static str,
    words: Vec<String>,
    /// A program that it needs and that is not installed.
    missing: Option<&'static str>,
}

fn workloads(folder: &Path) -> Vec<Workload> {
    let demo = demo().to_str().unwrap().to_owned();
    let of_demo = |name, kernel: &str, threads: &str, work: &str| Workload {
        name,
        words: [&demo, kernel, "--threads", threads, "--work", work]
            .map(str::to_owned)
            .to_vec(),
        missing: None,
    };
    let of_shell = |name, script: String, needs: &[&'static str]| Workload {
        name,
        words: ["sh", "-c", &script].map(str::to_owned).to_vec(),
        missing: needs.iter().copied().find(|program| !have(program)),
    };
    let here = folder.display();
    write_sources(folder);
    vec![
        of_demo("one-int", "int", "1", "1000000"),
        of_demo("two-fp", "fp", "2", "1000000"),
        of_shell(
            "xz",
            format!("seq 12000000 | xz -T1 -3 -c > {here}/out.xz"),
            &["xz"],
        ),
        of_shell(
            "build",
            format!("make -s -B -C {here} -j2"),
            &["make", "cc"],
        ),
    ]
}

/// Files that a compiler has some tens of milliseconds of work with, as in most projects.
const SOURCES: usize = 60;

fn write_sources(folder: &Path) {
    let mut makefile = "all:".to_owned();
    for file in 0..SOURCES {
        let mut source =
            String::from("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n");
        for f in 0..40 {
            writeln!(
                source,
                "double f{f}(double x, int n) {{ for (int i = 0; i < n; i++) \
                 x = x * {f}.5 + i / (x + {f}); return x; }}"
            )
            .unwrap();
        }
        std::fs::write(folder.join(format!("f{file}.c")), source).unwrap();
        write!(makefile, " f{file}.o").unwrap();
    }
    makefile.push_str("\n%.o: %.c\n\tcc -O2 -c $< -o $@\n");
    std::fs::write(folder.join("Makefile"), makefile).unwrap();
}

/// Times that a run took, s.
#[derive(Clone, Copy)]
struct Took {
    cpu_s: f64,
    wall_s: f64,
}

fn measure(workload: &Workload, folder: &Path, pairs: usize) {
    let report = folder.join("report.json");
    let mut plain = command(workload, None);
    let mut managed = command(workload, Some(&report));
    let (mut cpu, mut wall, mut reports) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..pairs {
        let (alone, with) = if pair % 2 == 0 {
            let alone = run(&mut plain);
            (alone, run(&mut managed))
        } else {
            let with = run(&mut managed);
            (run(&mut plain), with)
        };
        cpu.push(100.0 * (with.cpu_s / alone.cpu_s - 1.0));
        wall.push(100.0 * (with.wall_s / alone.wall_s - 1.0));
        let told: Value = serde_json::from_slice(&std::fs::read(&report).unwrap()).unwrap();
        reports.push(told);
    }
    let of = |key: &str| -> Vec<f64> {
        let values = reports.iter().map(|r| r["overhead"][key].as_f64().unwrap());
        values.collect()
    };
    let share = of("share_of_managed").iter().map(|s| 100.0 * s).collect();
    let name = workload.name;
    print(name, "increase of CPU time, paired", "percent", cpu);
    print(name, "increase of time passed, paired", "percent", wall);
    print(name, "overhead by the report, estimated", "percent", share);
    print(name, "Consort's own CPU time", "s", of("cpu_s"));
    print(
        name,
        "of that for samples, estimated",
        "s",
        of("sampling_s_estimated"),
    );
    print(name, "peak resident memory", "KiB", of("peak_rss_kib"));
}

fn print(name: &str, what: &str, unit: &str, mut values: Vec<f64>) {
    values.sort_by(f64::total_cmp);
    let quantile = |q: f64| values[((values.len() - 1) as f64 * q).round() as usize];
    println!(
        "{name}: {what}: median {:.3} {unit}, quartiles {:.3} to {:.3}, n = {}",
        quantile(0.5),
        quantile(0.25),
        quantile(0.75),
        values.len()
    );
}

fn demo() -> PathBuf {
    Path::new(env!("CARGO_BIN_EXE_consort")).with_file_name("consort-demo")
}

fn have(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn command(workload: &Workload, report: Option<&Path>) -> Command {
    let mut words = workload.words.iter();
    let mut command = match report {
        None => Command::new(words.next().unwrap()),
        Some(report) => {
            let mut command = Command::new(env!("CARGO_BIN_EXE_consort"));
            command
                .args(["run", "-q", "--report"])
                .arg(report)
                .arg("--");
            command
        }
    };
    command.args(words).stdout(Stdio::null());
    command
}

/// Runs a command; the CPU time is its own and that of all its children.
fn run(command: &mut Command) -> Took {
    let (before, start) = (children_s(), Instant::now());
    let went_well = command.status().is_ok_and(|status| status.success());
    assert!(
        went_well,
        "{command:?}: build consort-demo first (cargo build --release --workspace)"
    );
    Took {
        cpu_s: children_s() - before,
        wall_s: start.elapsed().as_secs_f64(),
    }
}

fn children_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).unwrap();
    (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
}
