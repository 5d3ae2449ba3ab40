//! Workloads that cannot be had, and those that merely take their turns.

use crate::check_refused;
use crate::common::{consort, folder, json, run, stderr};

#[test]
fn what_a_workload_file_cannot_have_is_told_with_file_line_and_key() {
    let folder = folder();
    let refused = |text: &str, parts: &[&str]| {
        let path = folder.path().join("mine.toml");
        std::fs::write(&path, text).unwrap();
        let path = path.to_str().unwrap();
        check_refused(&["simulate", "-m", "acmp-1+1", "-w", path], parts);
    };
    refused(
        "[[entry]]\nprogram = 'hmer'\n",
        &["mine.toml:2: entry[0].program", "did you mean 'hmmer'"],
    );
    refused(
        "[[entry]]\nprogram = 'streamcluster'\nthreads = 65\n",
        &["mine.toml:3: entry[0].threads", "1 to 64 threads"],
    );
    refused(
        "[[entry]]\nprogram = 'hmmer'\ncount = 0\n",
        &["mine.toml:3: entry[0].count", "1 to 65536"],
    );
}

#[test]
fn more_threads_than_pus_take_turns_under_every_policy_that_the_machine_feeds() {
    for policy in ["linux", "pinned", "spread", "random", "workover", "none"] {
        let mut command = consort();
        command.args(["simulate", "-m", "bulldozer-6282se:smt=1", "-p", policy]);
        command.args(["-w", "40*hmmer", "--alone", "100ms", "--format", "json"]);
        let output = run(&mut command);
        assert!(output.status.success(), "{policy}: {}", stderr(&output));
        let programs = json(&output)["programs"].as_array().unwrap().len();
        assert_eq!(programs, 40, "{policy}");
    }
}

#[test]
fn a_run_that_takes_far_longer_than_its_programs_alone_is_given_up_in_one_line() {
    // All threads in turns on one small core, where alone they have all cores.
    let args = ["simulate", "-m", "acmp-8+24", "-p", "mapping:map=31"];
    let args = [&args[..], &["-w", "blackscholes@32", "--alone", "1s"]].concat();
    check_refused(&args, &["had not done its work", "more threads than"]);
}
