//! Promise: programs under management see what they would see without, whenever they look.
//!
//! The policy `random` sends every thread elsewhere ten times a second, which no policy of use
//! does. A program that is not installed is skipped by name.

#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

mod common;

use common::{consort, folder, install, json, pus, run, skipped, stderr};
use serde_json::Value;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// A program that tells how many threads it would start: at once, and when it has been managed
/// for ten seconds, in which it keeps a CPU busy.
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
    let reported = String::from_utf8_lossy(&output.stdout);
    for teller in &there {
        let line = reported.lines().find(|line| line.starts_with(teller.name));
        let expected = format!("{0} {1} {1}", teller.name, pus());
        assert_eq!(
            line,
            Some(expected.as_str()),
            "{reported}{}",
            stderr(&output)
        );
    }
    assert_eq!(reported.lines().count(), there.len(), "{reported}");
    let report = report(folder.path());
    assert_eq!(report["restored"], true);
    assert_eq!(report["enactor"], "nudge");
    if pus() > 1 {
        assert!(report["nudges"].as_u64().unwrap() > 0, "{report:#}");
    }
}

/// Looks at its own mask and that of a busy thread as often as it can. Prints the number of looks, of
/// those that saw a narrow mask and of times at which masks became narrow, and the longest time,
/// us, for which it saw one narrow without looking away for a millisecond.
const LOOKER: &str = "
import os, threading, time
busy = threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True)
busy.start()
whole = os.sched_getaffinity(0)
looks = narrow = times = longest = 0
since, last = {0: None, busy.native_id: None}, {}
while looks < 40000:
    for tid in since:
        before = time.monotonic()
        is_narrow = os.sched_getaffinity(tid) != whole
        after = time.monotonic()
        looks += 1
        narrow += is_narrow
        times += is_narrow and since[tid] is None
        if not is_narrow: since[tid] = None
        elif since[tid] is None or before - last[tid] > 1e-3: since[tid] = after
        else: longest = max(longest, 1e6 * (before - since[tid]))
        last[tid] = after
print(looks, narrow, times, longest)";

/// Share of looks that may see a narrow mask where Consort has real-time priority.
const MOST_NARROW: f64 = 1e-3;

/// Runs the looker under moves every so many milliseconds, as another user if one is given.
fn look(interval: &str, user: Option<u32>) {
    let folder = folder();
    std::fs::set_permissions(folder.path(), Permissions::from_mode(0o777)).unwrap();
    let binary = folder.path().join("consort");
    install(env!("CARGO_BIN_EXE_consort").as_ref(), &binary);
    let mut command = Command::new(binary);
    if let Some(user) = user {
        command.uid(user).gid(user).env_remove("XDG_RUNTIME_DIR");
    }
    command
        .current_dir(folder.path())
        .env("TMPDIR", folder.path());
    command.args(["run", "-q", "--no-back-off", "--policy", "random"]);
    command.args(["--interval", interval, "--report", "report.json"]);
    let output = run(command.args(["--", "python3", "-c", LOOKER]));
    let reported = String::from_utf8_lossy(&output.stdout);
    let numbers = reported.split_whitespace().map(|n| n.parse().unwrap());
    let numbers: Vec<f64> = numbers.collect();
    assert_eq!(numbers.len(), 4, "{reported}{}", stderr(&output));
    let (looks, narrow, times, longest_us) = (numbers[0], numbers[1], numbers[2], numbers[3]);
    let windows = &report(folder.path())["windows"];
    println!("{interval}, user {user:?}: {narrow} of {looks} looks, {times} times, {windows}");
    let of = |key: &str| windows[key].as_f64().unwrap_or(0.0);
    assert!(times <= of("n"), "{times} times, {windows}");
    // Reading the clock may be interrupted for a while.
    assert!(
        longest_us <= of("longest_us") + 1e3,
        "{longest_us} us, {windows}"
    );
    if user.is_none() && nix::unistd::geteuid().is_root() {
        assert!(narrow <= MOST_NARROW * looks, "{narrow} of {looks}");
    }
}

#[test]
fn looks_see_narrow_masks_only_within_measured_windows() {
    if !is_there("python3") {
        return skipped("python3 is not installed");
    }
    for interval in ["100ms", "4ms"] {
        look(interval, None);
        if nix::unistd::geteuid().is_root() {
            look(interval, Some(65534));
        }
    }
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
        return skipped("this needs python3 and two CPUs");
    }
    let mut command = consort();
    command.args(["run", "-q", "--no-back-off", "--interval", "100ms"]);
    command.args(["--enact", "pin", "--policy", "spread:active=0", "--"]);
    let output = run(command.args(["python3", "-c", STARTER]));
    let reported = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        reported.trim(),
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

/// Waits until its second thread is pinned, and takes a CPU by itself with the first. Prints, among
/// others, true if few of the looks at the second one see a narrow mask from then on.
const CHOOSER: &str = "
import os, threading, time
whole = os.sched_getaffinity(0)
worker = threading.Thread(target=lambda: [0 for _ in iter(int, 1)], daemon=True)
worker.start()
wide = lambda: os.sched_getaffinity(worker.native_id) == whole
def lasts(is_so):
    end, times = time.time() + 60, 0
    while time.time() < end and times < 1000:
        times = times + 1 if is_so() else 0
    return times == 1000
print(lasts(lambda: not wide()))
# Not where Consort has pinned it, if it has: an equal mask cannot be noticed.
os.sched_setaffinity(0, {min(whole - os.sched_getaffinity(0) or whole)})
print(lasts(wide))
narrow = 0
for _ in range(300):
    time.sleep(0.005)
    narrow += not wide()
print(narrow < 30)";

#[test]
fn program_that_sets_a_mask_is_pinned_no_more() {
    if !is_there("python3") || pus() < 2 {
        return skipped("this needs python3 and two CPUs");
    }
    let mut command = consort();
    command.args(["run", "-q", "--no-back-off", "--interval", "100ms"]);
    command.args(["--enact", "pin", "--policy", "spread:active=0", "--"]);
    let output = run(command.args(["python3", "-c", CHOOSER]));
    let reported = String::from_utf8_lossy(&output.stdout);
    let expected = "True\n".repeat(3);
    assert_eq!(reported, expected, "{}", stderr(&output));
}
