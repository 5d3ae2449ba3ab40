//! Promise: programs under management see what they would see without, whenever they look.
//!
//! The policy `random` sends every thread elsewhere ten times a second, which no policy of use
//! does. A program that is not installed is skipped by name.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{consort, folder, json, pus, run, skipped, stderr};
use serde_json::Value;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that tells how many threads it would start: at once, and when it has been managed
/// for ten seconds, in which it keeps a PU busy.
struct Teller {
    name: &'static str,
    /// Tool that has to be there.
    needs: &'static str,
    file: &'static str,
    source: &'static str,
    /// Shell words that make it, beforehand and unmanaged.
    make: &'static str,
    /// Shell words that start it.
    start: &'static str,
}

const TELLERS: [Teller; 8] = [
    Teller {
        name: "python",
        needs: "python3",
        file: "pool.py",
        source: "
import os, time
first, end = len(os.sched_getaffinity(0)), time.time() + 10
while time.time() < end: pass
print('python', first, len(os.sched_getaffinity(0)))",
        make: "",
        start: "python3 pool.py",
    },
    Teller {
        name: "openmp",
        needs: "cc",
        file: "pool.c",
        source: "
#include <omp.h>
#include <stdio.h>
static int team(void) {
    int threads = 0;
    #pragma omp parallel
    #pragma omp single
    threads = omp_get_num_threads();
    return threads;
}
int main(void) {
    int first = team();
    for (double end = omp_get_wtime() + 10; omp_get_wtime() < end;) {}
    omp_set_num_threads(omp_get_num_procs());
    printf(\"openmp %d %d\\n\", first, team());
}",
        make: "cc -O1 -fopenmp -o pool-c pool.c",
        start: "./pool-c",
    },
    Teller {
        name: "rust",
        needs: "rustc",
        file: "pool.rs",
        source: "
use std::{thread::available_parallelism, time::{Duration, Instant}};
fn main() {
    let pool = || available_parallelism().unwrap();
    let (first, start) = (pool(), Instant::now());
    while start.elapsed() < Duration::from_secs(10) {}
    println!(\"rust {first} {}\", pool());
}",
        make: "rustc -O -o pool-rust pool.rs",
        start: "./pool-rust",
    },
    Teller {
        name: "java",
        needs: "javac",
        file: "Pool.java",
        source: "
class Pool {
    static int pool() { return Runtime.getRuntime().availableProcessors(); }
    public static void main(String[] a) {
        int first = pool();
        for (long end = System.nanoTime() + 10_000_000_000L; System.nanoTime() < end;) {}
        System.out.println(\"java \" + first + \" \" + pool());
    }
}",
        make: "javac Pool.java",
        start: "java -XX:-UseContainerSupport Pool",
    },
    Teller {
        name: "node",
        needs: "node",
        file: "pool.js",
        source: "
const pool = () => require('os').availableParallelism();
const first = pool(), end = Date.now() + 10000;
while (Date.now() < end);
console.log('node', first, pool());",
        make: "",
        start: "node pool.js",
    },
    Teller {
        name: "make",
        needs: "make",
        file: "Makefile",
        source: "
all: $(shell seq 1 20)
%:
\t@nproc >> counted",
        make: "",
        start: "timeout 10 sh -c 'while :; do :; done'; : > counted; jobs=$(nproc); \
                make -s -j$jobs; sort -u counted > once; \
                test $(wc -l < counted) = 20; read seen < once; echo make $jobs $seen",
    },
    Teller {
        name: "forks",
        needs: "nproc",
        file: "forks.sh",
        source: "
for i in $(seq 300); do nproc; done | sort -u > forked
while read seen; do echo forks $seen $seen; done < forked",
        make: "",
        start: "sh forks.sh",
    },
    Teller {
        name: "go",
        needs: "go",
        file: "pool.go",
        source: "
package main
import (\"fmt\"; \"runtime\"; \"time\")
func main() {
    first, start := runtime.GOMAXPROCS(0), time.Now()
    for time.Since(start) < 10*time.Second {
    }
    fmt.Println(\"go\", first, runtime.GOMAXPROCS(0))
}",
        make: "go build -o pool-go pool.go",
        start: "./pool-go",
    },
];

fn is_there(name: &str) -> bool {
    let found = Command::new(name)
        .arg("--version")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    found.is_ok()
}

/// `consort run` that moves everything all the time.
fn moving(folder: &Path, policy: &str) -> Command {
    let mut command = consort();
    command
        .args(["run", "-q", "--no-back-off", "--interval", "100ms"])
        .args(["--policy", policy, "--report"])
        .arg(folder.join("report.json"))
        .arg("--");
    command
}

fn report(folder: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(folder.join("report.json")).unwrap()).unwrap()
}

#[test]
fn pools_are_as_large_as_without() {
    let folder = folder();
    let there = TELLERS.iter().filter(|teller| {
        let there = is_there(teller.needs);
        if !there {
            skipped(&format!("{} is not installed", teller.needs));
        }
        there
    });
    let there: Vec<&Teller> = there.collect();
    for teller in &there {
        std::fs::write(folder.path().join(teller.file), teller.source).unwrap();
        let mut make = Command::new("sh");
        let made = run(make.args(["-ec", teller.make]).current_dir(folder.path()));
        assert!(made.status.success(), "{}: {}", teller.name, stderr(&made));
    }
    let starts: Vec<String> = there.iter().map(|t| format!("({}) &", t.start)).collect();
    let script = format!("cd {:?}; {} wait", folder.path(), starts.join("\n"));
    let output = run(moving(folder.path(), "random").args(["sh", "-c", &script]));
    let told = String::from_utf8_lossy(&output.stdout);
    for teller in &there {
        let line = told.lines().find(|line| line.starts_with(teller.name));
        let expected = format!("{0} {1} {1}", teller.name, pus());
        assert_eq!(line, Some(expected.as_str()), "{told}{}", stderr(&output));
    }
    assert_eq!(told.lines().count(), there.len(), "{told}");
    let report = report(folder.path());
    assert_eq!(report["restored"], true);
    assert_eq!(report["enactor"], "nudge");
    if pus() > 1 {
        assert!(report["nudges"].as_u64().unwrap() > 0, "{report:#}");
    }
}

/// Looks at its own mask and that of a busy thread as often as it can.
const LOOKER: &str = "
import os, threading
busy = threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True)
busy.start()
whole, looks, narrow = os.sched_getaffinity(0), 0, 0
while looks < 40000:
    looks += 2
    narrow += (os.sched_getaffinity(0) != whole) + (os.sched_getaffinity(busy.native_id) != whole)
print(looks, narrow)";

/// Between its two writes Consort may be interrupted, unless it has real-time priority.
const MOST_NARROW: f64 = 1e-3;

#[test]
fn whoever_looks_all_the_time_sees_its_own_mask() {
    if !is_there("python3") {
        return skipped("python3 is not installed");
    }
    let folder = folder();
    let output = run(moving(folder.path(), "random").args(["python3", "-c", LOOKER]));
    let told = String::from_utf8_lossy(&output.stdout);
    let numbers: Vec<f64> = told
        .split_whitespace()
        .map(|n| n.parse().unwrap())
        .collect();
    let [looks, narrow] = numbers[..] else {
        panic!("{told}{}", stderr(&output))
    };
    let nudges = &report(folder.path())["nudges"];
    println!("{narrow} of {looks} looks saw a narrowed mask, {nudges} nudges");
    assert!(narrow <= MOST_NARROW * looks, "{narrow} of {looks}");
}

/// Starts a thread when it has been pinned for a while, and tells the masks of both a second later.
const STARTER: &str = "
import os, threading, time
end, narrow = time.time() + 60, 0
# A nudge may be seen for some microseconds, a pin stays.
while time.time() < end and narrow < 1000:
    narrow = narrow + 1 if len(os.sched_getaffinity(0)) == 1 else 0
pinned = len(os.sched_getaffinity(0))
seen = []
def child():
    time.sleep(1)
    seen.append(len(os.sched_getaffinity(0)))
    seen.append(len(os.sched_getaffinity(os.getpid())))
thread = threading.Thread(target=child)
thread.start()
thread.join()
print(pinned, *seen)";

#[test]
fn a_pinned_thread_that_starts_another_is_let_free() {
    if !is_there("python3") || pus() < 2 {
        return skipped("this needs python3 and two PUs");
    }
    let mut command = consort();
    command.args(["run", "-q", "--no-back-off", "--interval", "100ms"]);
    command.args(["--enact", "pin", "--policy", "spread:active=0", "--"]);
    let output = run(command.args(["python3", "-c", STARTER]));
    let told = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        told.trim(),
        format!("1 {0} {0}", pus()),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_enactor_that_is_not_there_is_refused_with_the_reason() {
    let machine = json(&run(consort().args(["machine", "--format", "json"])));
    let enactors = machine["enactors"].as_array().unwrap().clone();
    let names: Vec<&str> = enactors
        .iter()
        .map(|e| e["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["nudge", "pin", "ext"]);
    let missing = enactors
        .iter()
        .filter(|enactor| enactor["available"] == false);
    for enactor in missing {
        let name = enactor["name"].as_str().unwrap();
        let output = run(consort().args(["run", "--enact", name, "--", "true"]));
        assert_eq!(output.status.code(), Some(2));
        let reason = enactor["reason"].as_str().unwrap();
        assert!(stderr(&output).contains(reason), "{}", stderr(&output));
    }
}
