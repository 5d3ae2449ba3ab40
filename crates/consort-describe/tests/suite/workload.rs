//! Workloads: expressions and files become programs that can run, or one line of what is wrong.

use consort_describe::describe::DescribeError;
use consort_describe::program::{self, ProgramSpec, ThreadsSpec};
use consort_describe::workload::{
    DescriptionFile, LoadError, ProgramSource, Workload, WorkloadError, WorkloadFile, WorkloadSpec,
};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A single-threaded program, called `plain`.
const PROGRAM: &str = include_str!("../small/program.toml");

const FILE: &str = r#"
title = "two kinds"
[[entry]]
program = "hmmer"
count = 2
start_ms = 5.0
[[entry]]
program = "mine.toml"
[[entry]]
program = "streamcluster"
threads = 3
"#;

fn program(name: &str, suite: &str) -> ProgramSpec {
    let mut program: ProgramSpec = toml::from_str(PROGRAM).unwrap();
    (program.name, program.suite) = (name.to_owned(), suite.to_owned());
    program
}

fn threaded(name: &str, default: u32, max: u32) -> ProgramSpec {
    let threads: ThreadsSpec =
        toml::from_str(&format!("default = {default}\nmax = {max}")).unwrap();
    let mut program = program(name, "parsec");
    program.threads = Some(threads);
    program
}

/// A few programs and a file each of a program and a workload.
struct Few(Vec<Arc<ProgramSpec>>);

impl Few {
    fn new() -> Self {
        let single = ["hmmer", "povray", "mcf"].map(|name| program(name, "spec2006"));
        let threaded = [threaded("streamcluster", 2, 16), threaded("fixed", 4, 4)];
        Self(single.into_iter().chain(threaded).map(Arc::new).collect())
    }
}

impl ProgramSource for Few {
    fn find(&self, name: &str) -> Result<Option<Arc<ProgramSpec>>, LoadError> {
        Ok(self.0.iter().find(|p| p.name == name).cloned())
    }

    fn suite(&self, name: &str) -> Result<Vec<Arc<ProgramSpec>>, LoadError> {
        Ok(self.0.iter().filter(|p| p.suite == name).cloned().collect())
    }

    fn is_file(&self, path: &str) -> bool {
        self.load(path).is_ok()
    }

    fn load(&self, path: &str) -> Result<DescriptionFile, LoadError> {
        let text = match path {
            "./my.toml" | "w/mine.toml" => PROGRAM,
            "w/load.toml" => FILE,
            "w/nested.toml" => "[[entry]]\nprogram = 'load.toml'",
            "w/empty.toml" => "entry = []",
            "w/late.toml" => "[[entry]]\nprogram = 'mcf'\nstart_ms = -1.0",
            "w/typo.toml" => "[[entry]]\nprogram = 'mcf'\n\n[[entry]]\nprogram = 'hmer'",
            "w/wide.toml" => "[[entry]]\nprogram = 'streamcluster'\nthreads = 17",
            "w/gone.toml" => "[[entry]]\ncount = 2\nprogram = './none.toml'",
            "w/many.toml" => {
                "[[entry]]\nprogram = 'mcf'\ncount = 40000\n[[entry]]\nprogram = 'mcf'\ncount = 40000"
            }
            _ => return Err(LoadError(format!("{path}: no such file"))),
        };
        let reported = |error: DescribeError| LoadError(error.to_string());
        if WorkloadSpec::is_workload_text(text) {
            let file = WorkloadFile::parse(path, text);
            return file.map(DescriptionFile::Workload).map_err(reported);
        }
        let program = program::parse(path, text).map_err(reported)?;
        Ok(DescriptionFile::Program(Arc::new(program)))
    }

    fn programs(&self) -> Vec<String> {
        self.0.iter().map(|p| p.name.clone()).collect()
    }

    fn suites(&self) -> Vec<String> {
        vec!["parsec".to_owned(), "spec2006".to_owned()]
    }
}

fn names(workload: &Workload) -> Vec<&str> {
    workload.entries.iter().map(|e| e.name.as_str()).collect()
}

fn resolved(text: &str) -> Workload {
    Workload::resolve(text, &Few::new()).unwrap()
}

fn check_error(text: &str, expect: &str) {
    let error: WorkloadError = Workload::resolve(text, &Few::new()).unwrap_err();
    assert_eq!(error.to_string(), expect);
}

#[test]
fn copies_are_numbered_with_requested_or_default_threads() {
    let workload = resolved("2*hmmer+streamcluster@4+streamcluster+./my.toml");
    let expect = [
        "hmmer#1",
        "hmmer#2",
        "streamcluster#1",
        "streamcluster#2",
        "plain",
    ];
    assert_eq!(names(&workload), expect);
    let threads: Vec<u32> = workload.entries.iter().map(|e| e.threads).collect();
    assert_eq!(threads, [1, 1, 4, 2, 1]);
    assert_eq!(
        workload.text,
        "2*hmmer+streamcluster@4+streamcluster+./my.toml"
    );
}

#[test]
fn draw_repeats_no_program_before_all() {
    let workload = resolved("mix:spec2006/4?seed=7");
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for entry in &workload.entries {
        *counts.entry(entry.program.name.as_str()).or_default() += 1;
    }
    let mut times: Vec<u32> = counts.values().copied().collect();
    times.sort_unstable();
    assert_eq!(times, [1, 1, 2]);
    assert_eq!(workload, resolved("mix:spec2006/4?seed=7"));
    assert_eq!(resolved("2*mix:spec2006/2?seed=7").entries.len(), 4);
}

#[test]
fn workload_file_has_delays_and_relative_paths() {
    let workload = resolved("w/load.toml");
    assert_eq!(
        names(&workload),
        ["hmmer#1", "hmmer#2", "plain", "streamcluster"]
    );
    let starts: Vec<f64> = workload.entries.iter().map(|e| e.start_ms).collect();
    assert_eq!(starts, [5.0, 5.0, 0.0, 0.0]);
    assert_eq!(workload.entries[3].threads, 3);
}

#[test]
fn unknown_keys_of_a_workload_file_are_errors() {
    let error = WorkloadFile::parse("w.toml", "[[entry]]\nprogram = 'a'\ncuont = 2").unwrap_err();
    let expect = "w.toml:3: entry[0].cuont: is not a known key; did you mean 'count'?";
    assert_eq!(error.to_string(), expect);
}

#[test]
fn errors_say_what_would_be_right() {
    check_error("4*hmer", "unknown program 'hmer'; did you mean 'hmmer'?");
    check_error(
        "mix:spec2007/3",
        "unknown suite 'spec2007'; did you mean 'spec2006'?",
    );
    check_error(
        "streamcluster@17",
        "program streamcluster cannot run with 17 threads; it has 1 to 16 threads",
    );
    check_error(
        "hmmer@2",
        "program hmmer cannot run with 2 threads; it has a single thread",
    );
    check_error(
        "fixed@2",
        "program fixed cannot run with 2 threads; it has exactly 4 threads",
    );
    check_error("./none.toml", "./none.toml: no such file");
}

#[test]
fn errors_of_files_and_sizes_name_expectation() {
    check_error(
        "w/load.toml@2",
        "'w/load.toml' is a workload file; give thread counts inside it",
    );
    check_error(
        "w/nested.toml",
        "w/nested.toml:2: entry[0].program: 'w/load.toml' is a workload file; \
         the entries of a workload file are programs",
    );
    check_error(
        "w/empty.toml",
        "w/empty.toml:1: entry: is empty; expected at least one program",
    );
    check_error(
        "w/late.toml",
        "w/late.toml:3: entry[0].start_ms: is -1; expected 0 to 86400000",
    );
    check_error(
        "40000*mcf+40000*hmmer",
        "the workload has 80000 instances; at most 65536 are possible",
    );
    check_error(
        "65536*mix:spec2006/65536",
        "the workload has 4294967296 instances; at most 65536 are possible",
    );
}

#[test]
fn entry_errors_name_file_line_and_key() {
    check_error(
        "w/typo.toml",
        "w/typo.toml:5: entry[1].program: unknown program 'hmer'; did you mean 'hmmer'?",
    );
    check_error(
        "w/wide.toml",
        "w/wide.toml:3: entry[0].threads: program streamcluster cannot run with 17 threads; \
         it has 1 to 16 threads",
    );
    check_error(
        "w/gone.toml",
        "w/gone.toml:3: entry[0].program: w/./none.toml: no such file",
    );
    check_error(
        "w/many.toml",
        "w/many.toml:6: entry[1].count: the workload has 80000 instances; \
         at most 65536 are possible",
    );
}
