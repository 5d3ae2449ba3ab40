//! Compressors, interpreters, a virtual machine, a database, OpenMP, NumPy, a build.

use super::common::{folder, run, skipped};
use super::compiled::{compiled, have};
use super::side_by_side::{assert_decoded, assert_fp, command_of, compare, threads};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// A command from its words.
pub fn command(words: &[&str]) -> Command {
    let mut command = Command::new(words[0]);
    command.args(&words[1..]);
    command
}

fn shell(script: &str) -> Command {
    command(&["sh", "-c", script])
}

/// Some megabytes that can be compressed, but not to nothing; enough for several quanta on a fast
/// host, since the last one's ended threads are in no report.
fn text(place: &Path) {
    let words = (0u32..1_500_000).map(|i| format!("{} ", i.wrapping_mul(2_654_435_761) >> 12));
    std::fs::write(place, words.collect::<String>()).unwrap();
}

fn busiest(report: &Value) -> &Value {
    &threads(report)[0]
}

#[test]
fn compressors_make_the_same_files() {
    let folder = folder();
    let file = folder.path().join("text");
    text(&file);
    for words in [["xz", "-2", "-T2"], ["zstd", "-12", "-T2"]] {
        if !have(words[0]) {
            continue;
        }
        let mut compress = command(&words);
        compress.arg("-qc").arg(&file);
        let report = compare(compress);
        assert_fp(&report, false);
        assert_decoded(&report, 0.9);
        assert!(
            busiest(&report)["cpu_s"].as_f64().unwrap() > 0.3 * report["cpu_s"].as_f64().unwrap(),
            "{report:#}"
        );
    }
}

#[test]
fn an_interpreter_computes_the_same() {
    if have("python3") {
        let report = compare(command(&[
            "python3",
            "-c",
            "print(sum(i * i % 7 for i in range(3000000)))",
        ]));
        assert_fp(&report, false);
        assert_decoded(&report, 0.9);
    }
}

#[test]
fn code_that_a_java_machine_compiles_is_decoded_and_classified() {
    if !have("java") {
        return;
    }
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/foreign/Worker.java");
    let report = compare(command(&["java", source]));
    if report["exit_code"] != 0 {
        return skipped("java: it cannot run a source file");
    }
    assert_decoded(&report, 0.5);
    for (name, is_fp) in [("fp-worker", true), ("int-worker", false)] {
        let row = threads(&report).iter().find(|t| t["name"] == name);
        let row = row.unwrap_or_else(|| panic!("no {name} in {report:#}"));
        let fp = row["mix"]["fp"].as_f64();
        assert!(fp.is_none_or(|fp| (fp >= 0.15) == is_fp), "{row:#}");
    }
}

#[test]
fn a_database_in_a_file_answers_the_same() {
    if have("sqlite3") {
        let report = compare(command(&[
            "sqlite3",
            ":memory:",
            "create table t(a integer primary key, b text); \
             with recursive n(i) as (select 1 union all select i + 1 from n where i < 300000) \
             insert into t select i, hex(i * 7919 % 10007) from n; \
             select count(distinct b), max(b) from t; \
             select sum(a) from t where b like '%3%';",
        ]));
        assert_fp(&report, false);
        assert_decoded(&report, 0.9);
    }
}

#[test]
fn openmp_threads_are_found_and_told_from_others() {
    let Some(program) = compiled("openmp", &["-fopenmp"]) else {
        return;
    };
    let report = compare(command_of(&program, &[]));
    assert_fp(&report, true);
    assert!(threads(&report).len() >= 4, "{report:#}");
}

#[test]
fn numpy_computes_the_same() {
    let has_numpy = |python: &&str| {
        let import = run(&mut command(&[python, "-c", "import numpy"]));
        import.status.success()
    };
    let pythons = ["/usr/bin/python3", "python3"];
    let there = pythons.into_iter().filter(|python| have(python));
    let Some(python) = there.into_iter().find(has_numpy) else {
        return skipped("numpy is not installed");
    };
    // Long enough that loading numpy is a small part of it; one thread, because those of BLAS spin
    // while they wait for each other, the longer the busier the host is.
    let mut program = command(&[
        python,
        "-c",
        "import numpy as n; a = n.ones((500, 500)) * 0.01\n\
         for _ in range(60): a = n.sin(a @ a)\n\
         print(round(float(a.sum()), 3))",
    ]);
    program.envs([("OPENBLAS_NUM_THREADS", "1"), ("OMP_NUM_THREADS", "1")]);
    let report = compare(program);
    assert_fp(&report, true);
    assert_decoded(&report, 0.9);
}

#[test]
fn a_build_makes_the_same_objects() {
    if !have("make") || !have("cc") {
        return;
    }
    let folder = folder();
    let names: Vec<String> = (0..8).map(|i| format!("part{i}")).collect();
    for name in &names {
        let line = |i: u32| format!("int {name}_{i}(int x) {{ return x * {i} + x % 7 / 3; }}\n");
        let source: String = (0..100).map(line).collect();
        std::fs::write(folder.path().join(format!("{name}.c")), source).unwrap();
    }
    let objects: Vec<String> = names.iter().map(|name| format!("{name}.o")).collect();
    let rules = format!(
        "all: {}\n%.o: %.c\n\tcc -O2 -c $< -o $@\n",
        objects.join(" ")
    );
    std::fs::write(folder.path().join("Makefile"), rules).unwrap();
    let mut build = shell("make -s -j4 all && cat *.o | cksum && rm *.o");
    build.current_dir(folder.path());
    let report = compare(build);
    assert_fp(&report, false);
    assert!(
        threads(&report).iter().any(|t| t["name"] == "cc1"),
        "{report:#}"
    );
}

#[test]
fn a_32_bit_program_is_placed_like_any_other() {
    let Some(program) = compiled("whoami", &["-m32"]) else {
        return;
    };
    let report = compare(command_of(&program, &[]));
    assert_eq!(threads(&report)[0]["name"], "program", "{report:#}");
}
