//! `consort simulate` and `compare`: keys, sameness, bad input.

mod common;

use common::{check_refused, consort, folder, json, run, stderr};
use serde_json::Value;

const BULLDOZER: [&str; 4] = ["-m", "bulldozer-6282se", "-w", "4*hmmer+4*povray"];

fn simulate(more: &[&str]) -> Value {
    let args = [&["simulate", "--alone", "2s"], &BULLDOZER[..], more].concat();
    json(&run(
        consort().args([&args[..], &["--format", "json"]].concat())
    ))
}

fn compare(more: &[&str]) -> Vec<u8> {
    let args = [&["compare", "--alone", "2s"], &BULLDOZER[..], more].concat();
    let output = run(consort().args([&args[..], &["--format", "json"]].concat()));
    assert!(output.status.success(), "{}", stderr(&output));
    output.stdout
}

/// Output of a command for people, as one line.
fn printed(line: &str) -> String {
    let output = run(consort().args(line.split(' ')));
    String::from_utf8_lossy(&output.stdout).replace('\n', " ")
}

#[test]
fn a_run_has_its_keys() {
    let run = simulate(&["--policy", "workover"]);
    for key in [
        "machine",
        "workload",
        "policy",
        "seed",
        "stp",
        "antt",
        "unfairness",
        "makespan_s",
        "energy_j",
        "ed",
        "moves",
        "simulated_s",
        "host_s",
        "simulated_minstr_per_host_s",
    ] {
        assert!(!run[key].is_null(), "{key}");
    }
    assert!(run["decision_us"]["mean"].is_f64() && run["decision_us"]["max"].is_f64());
    let programs = run["programs"].as_array().unwrap();
    assert_eq!(programs.len(), 8);
    for program in programs {
        for key in [
            "alone_s",
            "together_s",
            "slowdown",
            "instructions",
            "ipc",
            "energy_j",
        ] {
            assert!(program[key].as_f64().unwrap() > 0.0, "{key}");
        }
    }
    // Eight programs on eight CPUs of four cores are slower than alone, and not by much more
    // than twice.
    let stp = run["stp"].as_f64().unwrap();
    assert!((3.0..8.0).contains(&stp), "{stp}");
}

#[test]
fn a_comparison_has_its_keys_and_intervals() {
    let text = compare(&["-p", "aggregate,linux,workover", "--runs", "3"]);
    let compared: Value = serde_json::from_slice(&text).unwrap();
    assert_eq!(compared["baseline"], "linux");
    assert_eq!(compared["runs"], 3);
    for row in compared["results"].as_array().unwrap() {
        for key in [
            "stp",
            "antt",
            "unfairness",
            "makespan_s",
            "energy_j",
            "ed",
            "speedup",
        ] {
            assert!(row[key]["mean"].is_f64(), "{key}");
            assert!(row[key]["ci95"].is_f64(), "{key}");
        }
    }
}

/// As in W3, the integer programs are longer, so `aggregate` leaves half of the cores idle at the end.
#[test]
fn whole_programs_are_compared_by_last_end() {
    let args = "compare -p aggregate,workover --runs 2 --until all-finished --baseline workover";
    let args: Vec<&str> = args.split(' ').chain(BULLDOZER).collect();
    let compared = json(&run(
        consort().args([&args[..], &["--format", "json"]].concat())
    ));
    assert_eq!(compared["until"], "all-finished");
    let [aggregate, workover] = compared["results"].as_array().unwrap().as_slice() else {
        panic!("two policies were compared")
    };
    let mean = |row: &Value, key: &str| row[key]["mean"].as_f64().unwrap();
    assert!(mean(aggregate, "turnaround_s") < mean(aggregate, "makespan_s"));
    let (speedup, longer) = (
        mean(aggregate, "speedup"),
        mean(aggregate, "makespan_s") / mean(workover, "makespan_s"),
    );
    assert!(longer > 1.1 && (speedup * longer - 1.0).abs() < 1e-3);
    let table = printed(&args.join(" "));
    assert!(
        table.contains("each program runs once and whole"),
        "{table}"
    );

    let alone = [&args[..], &["--alone", "2s"]].concat();
    check_refused(&alone, &["--alone", "--until all-finished"]);
    let text = printed("simulate -m bulldozer-6282se -w hmmer --until all-finished");
    assert!(text.contains("all have finished after"), "{text}");
}

#[test]
fn idle_policies_warn_and_attainable_gain_is_shown() {
    let args = "compare -m bulldozer-6282se -w 4*mcf+4*povray -p aggregate,oracle --alone 200ms";
    let text = printed(&format!("{args} --runs 1"));
    for part in ["% of attainable", "over aggregate", " 100 "] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
    let args = "-m bulldozer-6282se -w 4*mcf+4*povray -p workover --alone 200ms --format json";
    for verb in ["compare", "simulate"] {
        let output = run(consort().arg(verb).args(args.split(' ')));
        let warning = "workover decided once: its quantum is 1 s";
        assert!(
            json(&output)["warnings"][0]
                .as_str()
                .unwrap()
                .starts_with(warning)
        );
    }
    let text = printed("simulate -m bulldozer-6282se -w 4*mcf -p workover --alone 200ms");
    assert!(
        text.contains("warning: workover decided once and moved nothing"),
        "{text}"
    );
    let text = printed("compare -m power8:smt=2 -w mcf+povray -p linux --alone 1s --runs 2");
    assert!(
        text.contains("% of attainable is unknown: 2 threads on 10 cores"),
        "{text}"
    );
}

#[test]
fn same_seed_same_bytes_for_any_number_of_workers() {
    let with = |jobs: &str| compare(&["-p", "random,linux", "--runs", "4", "--jobs", jobs]);
    let one = with("1");
    assert_eq!(one, with("2"));
    assert_eq!(one, with("7"));
    let other = compare(&["-p", "random,linux", "--runs", "4", "--seed", "2"]);
    assert_ne!(one, other);
}

#[test]
fn fpu_heavy_threads_are_spread_over_cores_by_the_simulated_counters_alone() {
    let base = "simulate --alone 2s -m bulldozer-6282se --format json -w 4*pure-fp+4*pure-int";
    let unfairness = |policy: &str| {
        let args = base.split(' ').chain(["-p", policy]);
        json(&run(consort().args(args)))["unfairness"]
            .as_f64()
            .unwrap()
    };
    let (apart, together) = (unfairness("workover"), unfairness("aggregate"));
    assert!(apart < together, "{apart} {together}");
}

#[test]
fn a_timeline_is_whole_and_an_explanation_sums_up() {
    let folder = folder();
    let path = folder.path().join("t.json");
    let run = simulate(&["--timeline", path.to_str().unwrap(), "--explain", "5"]);
    let timeline: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let events = timeline["traceEvents"].as_array().unwrap();
    let count = |ph: &str, text: &str| {
        let has = |event: &&Value| event["ph"] == ph && event["name"].to_string().contains(text);
        events.iter().filter(has).count()
    };
    // Eight programs end, and each has slices and a counter.
    assert!(count("X", "") >= 8 && count("i", "has done its work") >= 8);
    assert!(count("C", "IPC of ") >= 8 && count("C", "memory of node") >= 1);
    assert_eq!(count("X", "switching"), 0);
    // By hand: the differences by cause, over all cycles alone, are the slowdown; a program on a CPU
    // of its own waits for nothing.
    let terms = run["explain"]["stack"].as_array().unwrap();
    let of = |term: &Value, key: &str| term[key].as_f64().unwrap();
    let sum = |key: &str| -> f64 { terms.iter().map(|term| of(term, key)).sum() };
    let (alone, together) = (sum("alone"), sum("value"));
    assert!((together / run["explain"]["cpi"].as_f64().unwrap() - 1.0).abs() < 1e-9);
    let program = &run["programs"][5];
    assert_eq!(run["explain"]["thread"], program["name"]);
    let slowdown = program["slowdown"].as_f64().unwrap();
    assert!((together / alone / slowdown - 1.0).abs() < 1e-3);
    assert!((1.0 + sum("slowdown_part") - together / alone).abs() < 1e-9);
    let waiting = terms.iter().find(|term| term["name"] == "waiting").unwrap();
    assert!(of(waiting, "value").abs() < 1e-3 * together, "{waiting}");
    // hmmer runs its work at 2.6 GHz, so cycles follow from the times of the programs' table.
    let by_hand = of(program, "together_s") * 2.6e9 / of(program, "instructions");
    assert!(
        (together / by_hand - 1.0).abs() < 1e-9,
        "{together} {by_hand}"
    );
}

#[test]
fn a_program_is_explained_by_name_or_number() {
    let explained = |wanted: &str| simulate(&["--explain", wanted])["explain"].clone();
    assert_eq!(explained("povray")["thread"], "povray#1");
    assert_eq!(explained("hmmer#2"), explained("1"));
    let text =
        printed("simulate -m bulldozer-6282se -w 4*bzip2+4*povray --alone 2s --explain bzip2");
    for part in ["alone  together", "slower by (%)", "dispatch: slots"] {
        assert!(text.contains(part), "'{part}' is missing in: {text}");
    }
    check_refused(
        &[
            "simulate",
            "-m",
            "power7",
            "-w",
            "hmmer",
            "--explain",
            "hmer",
        ],
        &["--explain hmer", "did you mean 'hmmer'"],
    );
}

#[test]
fn bad_input_is_one_line_and_nothing_is_written() {
    let simulate = |more: &[&'static str]| [&["simulate"], more].concat();
    let refused = |args: &[&'static str], parts: &[&str]| check_refused(&simulate(args), parts);
    refused(
        &["-m", "buldozer-6282se", "-w", "hmmer"],
        &["did you mean 'bulldozer-6282se'"],
    );
    refused(&["-m", "power7:smt=9", "-w", "hmmer"], &["smt"]);
    refused(&["-m", "power7", "-w", "hmmr"], &["did you mean 'hmmer'"]);
    refused(&["-m", "power7", "-w", "4*"], &["4*"]);
    refused(&["-m", "power7", "-w", "mix:spec2016/3"], &["spec2006"]);
    refused(
        &["-m", "power7", "-w", "hmmer", "-p", "workovr"],
        &["workover"],
    );
    refused(&["-m", "power7", "-w", "hmmer", "--os", "linx"], &["linux"]);
    refused(&["-m", "power7", "-w", "hmmer", "--alone", "30"], &["30s"]);
    refused(
        &["-m", "power7", "-w", "hmmer", "--explain", "1"],
        &["0 to 0"],
    );
    refused(
        &["-m", "core-i9-12900k", "-w", "hmmer", "-p", "workover"],
        &["fp-usage"],
    );
    refused(
        &["-m", "power7", "-w", "hmmer", "--timeline", "/dev/null"],
        &["ordinary"],
    );
    refused(
        &["-m", "power7", "-w", "hmmer", "--timeline", "/no/such/t"],
        &["/no/such/t", "there is no folder /no/such\n"],
    );
    refused(&["-m", "live", "-w", "hmmer"], &["consort list machines"]);
    check_refused(
        &[
            "compare", "-m", "power7", "-w", "hmmer", "-p", "linux", "--runs", "0",
        ],
        &["--runs"],
    );
    check_refused(
        &[
            "compare",
            "-m",
            "power7",
            "-w",
            "hmmer",
            "-p",
            "linux",
            "--baseline",
            "linx",
        ],
        &["did you mean 'linux'"],
    );
}

#[test]
fn a_broken_machine_file_is_named_with_its_line() {
    let folder = folder();
    let path = folder.path().join("mine.toml");
    std::fs::write(&path, "name = \"mine\"\ntitle = 3\n").unwrap();
    let path = path.to_str().unwrap();
    check_refused(
        &["simulate", "-m", path, "-w", "hmmer"],
        &["mine.toml:2", "title"],
    );
}
