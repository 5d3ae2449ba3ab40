//! Promise: a sweep gives the same table whoever runs its shards, in whatever order; nothing is run
//! twice; what is missing is named.

mod common;

use common::{consort, folder, json, run, stderr};
use std::path::Path;
use std::process::Output;

const DESCRIPTION: &str = "machines = [\"bulldozer-6282se\"]\nworkloads = [\"2*hmmer+2*povray\"]\n\
    policies = [\"aggregate\", \"linux\"]\nruns = 3\nseed = 5\nalone_s = 1.0\n\
    shard_s = 0.001\nhost_s_per_thread_s = 0.001\n";

fn sweep(place: &Path, arguments: &[&str]) -> Output {
    run(consort().arg("sweep").args(arguments).current_dir(place))
}

fn done(place: &Path, arguments: &[&str]) -> String {
    let output = sweep(place, arguments);
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn planned() -> tempfile::TempDir {
    let place = folder();
    std::fs::write(place.path().join("s.toml"), DESCRIPTION).expect("the folder is ours");
    let reported = done(place.path(), &["plan", "s.toml"]);
    assert!(
        reported.starts_with("6 runs in 6 shards, about "),
        "{reported}"
    );
    place
}

#[test]
fn merged_shards_are_what_compare_writes_byte_for_byte() {
    let place = planned();
    for shards in ["5", "2-3,0", "all"] {
        done(place.path(), &["run", shards]);
    }
    done(place.path(), &["merge", "--out", "merged.csv"]);
    let mut compare = consort();
    compare.args(
        "compare -m bulldozer-6282se -w 2*hmmer+2*povray --policies aggregate,linux".split(' '),
    );
    compare.args("--runs 3 --seed 5 --alone 1s --out serial.csv".split(' '));
    assert!(run(compare.current_dir(place.path())).status.success());
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    let merged = read("merged.csv");
    assert_eq!(merged, read("serial.csv"));
    assert!(merged.starts_with("case,policy,seed,program,measure,value,unit\n"));
}

#[test]
fn what_is_there_is_not_run_again_and_gaps_are_named() {
    let place = planned();
    done(place.path(), &["run", "1"]);
    let again = sweep(place.path(), &["run", "1"]);
    assert!(
        stderr(&again).ends_with(".csv is there\n"),
        "{}",
        stderr(&again)
    );
    let status = json(&sweep(place.path(), &["status", "--format", "json"]));
    assert_eq!(status["missing"], serde_json::json!([0, 2, 3, 4, 5]));
    assert_eq!(
        (status["done"].as_u64(), status["foreign"].as_u64()),
        (Some(1), Some(0))
    );
    let merge = sweep(place.path(), &["merge", "--out", "merged.csv"]);
    let expected = "consort: 5 of 6 shards have no result: 0,2-5; `consort sweep run` runs them\n";
    assert_eq!(
        (merge.status.code(), stderr(&merge).as_str()),
        (Some(1), expected)
    );
    assert!(!place.path().join("merged.csv").exists());
}

#[test]
fn a_change_of_a_file_between_plan_and_run_is_refused() {
    let place = folder();
    let machine = run(consort().args(["schema", "machine"]));
    assert!(machine.status.success());
    let preset =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../consort-describe/machines/power7.toml");
    let text = std::fs::read_to_string(preset).unwrap();
    std::fs::write(place.path().join("mine.toml"), &text).unwrap();
    let description = DESCRIPTION.replace("bulldozer-6282se", "./mine.toml");
    std::fs::write(place.path().join("s.toml"), description).unwrap();
    done(place.path(), &["plan", "s.toml", "--dir", "d"]);
    done(place.path(), &["run", "0", "--dir", "d"]);
    let changed = text.replacen("frequency_ghz = ", "frequency_ghz = 1", 1);
    assert_ne!(changed, text);
    std::fs::write(place.path().join("mine.toml"), changed).unwrap();
    let refused = sweep(place.path(), &["run", "1", "--dir", "d"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("shard 1: what it runs is not what was planned"));
}

#[test]
fn bad_input_is_one_line_and_writes_nothing() {
    let place = folder();
    let bad = DESCRIPTION.replace("runs = 3", "runs = 0");
    std::fs::write(place.path().join("s.toml"), bad).unwrap();
    let check = |arguments: &[&str], expected: &str| {
        let output = sweep(place.path(), arguments);
        let reported = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{reported}");
        assert!(
            reported.starts_with(&format!("consort: {expected}")),
            "{reported}"
        );
        assert_eq!(reported.lines().count(), 1);
    };
    check(
        &["plan", "s.toml"],
        "s.toml:4: runs: is 0; expected 1 to 10000",
    );
    check(&["plan", "none.toml"], "none.toml: ");
    check(&["run", "0"], "consort-sweep: there is no plan");
    check(&["status"], "consort-sweep: there is no plan");
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    std::fs::write(place.path().join("s.toml"), DESCRIPTION).unwrap();
    done(place.path(), &["plan", "s.toml"]);
    check(&["run", "6"], "there is no shard 6; the plan has 0 to 5");
    check(&["run", "a"], "shard 'a'; expected numbers such as 7");
    done(place.path(), &["run", "all"]);
    check(
        &["merge", "--out", "x.xlsx"],
        "x.xlsx: the name does not say the format",
    );
    check(
        &["submit", "--slurm", "--partition", "a b"],
        "--partition 'a b': expected letters",
    );
}

#[test]
fn array_jobs_name_the_shards_that_are_missing() {
    let place = planned();
    done(place.path(), &["run", "2"]);
    let options = [
        "submit",
        "--slurm",
        "--dry-run",
        "--array-size",
        "3",
        "--time",
        "10:00",
    ];
    let reported = done(place.path(), &options);
    let scripts: Vec<&str> = reported.lines().collect();
    assert_eq!(scripts.len(), 2);
    let slurm = place.path().join("consort-sweep/slurm");
    let read = |name: &str| std::fs::read_to_string(slurm.join(name)).unwrap();
    assert_eq!(read("shards-0.txt"), "0\n1\n3\n");
    assert_eq!(read("shards-1.txt"), "4\n5\n");
    let script = read("submit-1.sh");
    for line in [
        "#SBATCH --array=1-2",
        "#SBATCH --requeue",
        "#SBATCH --time=10:00",
        "#SBATCH --mem=512M",
    ] {
        assert!(script.lines().any(|l| l == line), "{line} in {script}");
    }
    // The script is one that a shell runs: the second task of the second job is shard 5.
    let task = run(std::process::Command::new("sh")
        .arg(slurm.join("submit-1.sh"))
        .env("SLURM_ARRAY_TASK_ID", "2")
        .current_dir(place.path()));
    assert!(
        stderr(&task).starts_with("consort: shard 5: "),
        "{}",
        stderr(&task)
    );
    done(place.path(), &["run", "all"]);
    assert_eq!(
        done(place.path(), &["submit", "--slurm"]),
        "nothing to submit: all 6 shards have a result\n"
    );
}

/// Names and contents of the results that are there.
fn results(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder.join("shards")).expect("the plan made it");
    let paths = entries.map(|entry| entry.expect("it can be listed").path());
    let results = paths.filter(|path| path.extension().is_some_and(|end| end == "csv"));
    let read = |path: std::path::PathBuf| {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let content = std::fs::read(&path).expect("it can be read");
        (name.unwrap_or_default(), content)
    };
    let mut all: Vec<_> = results.map(read).collect();
    all.sort();
    all
}

#[test]
fn a_shard_that_is_killed_leaves_a_whole_result_or_none() {
    let place = folder();
    let description = DESCRIPTION.replace("alone_s = 1.0", "alone_s = 6.0");
    let description = description.replace("shard_s = 0.001", "shard_s = 0.1");
    std::fs::write(place.path().join("s.toml"), description).unwrap();
    done(place.path(), &["plan", "s.toml", "--dir", "whole"]);
    done(place.path(), &["plan", "s.toml", "--dir", "killed"]);
    let start = std::time::Instant::now();
    done(place.path(), &["run", "0", "--dir", "whole"]);
    let whole = results(&place.path().join("whole"));
    let step = start.elapsed() / 8;
    let killed = place.path().join("killed");
    let mut ended_early = 0;
    for delay in 0..8 {
        let mut shard = consort();
        shard.args(["sweep", "run", "0", "--dir", "killed"]);
        let child = shard.current_dir(place.path()).spawn();
        let mut child = child.expect("it starts");
        std::thread::sleep(step * delay);
        child.kill().expect("it is ours");
        child.wait().expect("it ends");
        let left = results(&killed);
        assert!(left.is_empty() || left == whole, "{:?}", left.first());
        ended_early += usize::from(left.is_empty());
    }
    assert!(ended_early > 0, "no run was killed before it was done");
    done(place.path(), &["run", "0", "--dir", "killed"]);
    assert_eq!(results(&killed), whole);
    let status = json(&sweep(
        place.path(),
        &["status", "--dir", "killed", "--format", "json"],
    ));
    assert_eq!(
        (status["done"].as_u64(), status["foreign"].as_u64()),
        (Some(1), Some(0))
    );
}

#[test]
fn merged_studies_are_what_reproduce_writes_byte_for_byte() {
    let place = folder();
    let description = "studies = [\"M1\", \"S4\"]\nquick = true\nshard_s = 1\n";
    std::fs::write(place.path().join("s.toml"), description).unwrap();
    assert!(done(place.path(), &["plan", "s.toml"]).starts_with("2 studies in 2 shards, about "));
    done(place.path(), &["run", "1"]);
    done(place.path(), &["run", "0"]);
    done(place.path(), &["merge", "--out", "merged.csv"]);
    let mut serial = consort();
    serial.args("reproduce M1 S4 --quick --out studies --out serial.csv".split(' '));
    assert!(run(serial.current_dir(place.path())).status.success());
    let read = |name: &str| std::fs::read_to_string(place.path().join(name)).unwrap();
    assert_eq!(read("merged.csv"), read("serial.csv"));
}

#[test]
fn the_same_description_gives_the_same_plan_and_cases_in_any_folder() {
    let (one, two) = (planned(), planned());
    for name in ["plan.json", "cases.csv"] {
        let read = |place: &Path| std::fs::read(place.join("consort-sweep").join(name)).unwrap();
        assert_eq!(read(one.path()), read(two.path()));
    }
}
