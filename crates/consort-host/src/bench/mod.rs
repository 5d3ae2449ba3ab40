//! Benches of the live machine: the daemon's cost, and the cost of being managed.

use crate::crew::LOAD;
use crate::crew::process::BenchProcess;
use consort_core::policies;
use consort_experiment::bench::{Bench, BenchCase, BenchError, BenchMeasure, Effort};
use consort_linux::live::Host;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

mod overhead;

pub use overhead::OverheadBench;

/// Every bench: those of the simulator and the policies, then those of the live machine, with
/// this bench of pairs.
#[must_use]
pub fn all_benches(overhead: OverheadBench) -> Vec<Box<dyn Bench>> {
    let mut all = consort_experiment::bench::all_benches();
    all.push(Box::new(DaemonBench));
    all.push(Box::new(overhead));
    all
}

/// Cost of the daemon while it manages a load, and of programs that watch the same load.
///
/// The load is a process of some threads that each work a part of the time, so that all of them
/// together want half of the CPUs, or, for policies of short quanta, all the time.
struct DaemonBench;

/// Threads, and the program that watches them.
#[derive(Clone, Copy)]
struct WatchedLoad {
    threads: u32,
    /// True if each works all the time, not a part of it.
    busy: bool,
    watcher: LoadWatcher,
}

#[derive(Clone, Copy)]
enum LoadWatcher {
    /// The daemon under a policy, with an interval in ms.
    Daemon(&'static str, u32),
    /// Another program: its arguments before the process id, and after it.
    Peer(
        &'static str,
        &'static [&'static str],
        &'static [&'static str],
    ),
}

const HUNDRED: WatchedLoad = WatchedLoad {
    threads: 100,
    busy: false,
    watcher: LoadWatcher::Daemon("auto", 1000),
};
const QUICKLY: WatchedLoad = WatchedLoad {
    watcher: LoadWatcher::Daemon("auto", 100),
    ..HUNDRED
};
const THOUSAND: WatchedLoad = WatchedLoad {
    threads: 1000,
    ..HUNDRED
};
const HRRS: WatchedLoad = WatchedLoad {
    threads: 4,
    busy: true,
    watcher: LoadWatcher::Daemon("hrrs", 4),
};
const KUTHS: WatchedLoad = WatchedLoad {
    watcher: LoadWatcher::Daemon("kuths", 4),
    ..HRRS
};
const PERF: WatchedLoad = WatchedLoad {
    watcher: LoadWatcher::Peer(
        "perf",
        &["stat", "-e", "task-clock", "-I", "100", "-p"],
        &[],
    ),
    ..HUNDRED
};
const PIDSTAT: WatchedLoad = WatchedLoad {
    watcher: LoadWatcher::Peer("pidstat", &["-u", "-w", "-t", "-p"], &["1"]),
    ..HUNDRED
};

impl Bench for DaemonBench {
    fn name(&self) -> String {
        "daemon".to_owned()
    }

    fn summary(&self) -> String {
        "CPU time and memory of the daemon here, work that the managed threads lose (in pairs), \
         and perf stat and pidstat where they are installed (minutes; run by its name only)"
            .to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let share = |name: &str, scene: WatchedLoad| {
            let measure: BenchMeasure = Box::new(move || {
                measure(scene, effort).map(|[own, _, passed]| 100.0 * own / passed)
            });
            BenchCase::from_measure(name.to_owned(), "% of a CPU", measure)
        };
        let share_of_managed: BenchMeasure = Box::new(move || {
            measure(HUNDRED, effort).map(|[own, managed, _]| 100.0 * own / managed)
        });
        let mut cases = vec![
            share("daemon-100-threads-1s", HUNDRED).with_target(0.5),
            share("daemon-100-threads-100ms", QUICKLY).with_target(1.0),
            BenchCase::from_measure(
                "daemon-100-threads-1s-of-managed".to_owned(),
                "% of managed CPU time",
                share_of_managed,
            )
            .with_target(1.0),
            share("daemon-4-threads-hrrs-4ms", HRRS),
            BenchCase::from_measure(
                "daemon-1000-threads-memory".to_owned(),
                "MB",
                memory(THOUSAND, effort),
            )
            .with_target(30.0),
        ];
        for (name, scene) in [
            ("daemon-100-threads-1s-lost", HUNDRED),
            ("daemon-100-threads-100ms-lost", QUICKLY),
            ("daemon-4-threads-hrrs-4ms-lost", HRRS),
        ] {
            let lost = work_lost(scene, effort);
            cases.push(BenchCase::from_measure(
                name.to_owned(),
                "% of the work",
                lost,
            ));
        }
        let optional = [
            ("daemon-4-threads-kuths-4ms", KUTHS),
            ("perf-stat-100-threads-100ms", PERF),
            ("pidstat-100-threads-1s", PIDSTAT),
        ];
        for (name, scene) in optional {
            if scene.watcher.is_available() {
                cases.push(share(name, scene));
            }
        }
        Ok(cases)
    }
}

struct RunningLoad {
    load: BenchProcess,
    watcher: BenchProcess,
    _folder: TempDir,
}

impl WatchedLoad {
    fn start(self) -> Result<RunningLoad, BenchError> {
        let (load, folder) = self.start_load()?;
        let watcher = self.watcher.start(load.id(), folder.path())?;
        Ok(RunningLoad {
            load,
            watcher,
            _folder: folder,
        })
    }

    /// Starts the threads alone, with a folder for the other programs.
    fn start_load(self) -> Result<(BenchProcess, TempDir), BenchError> {
        let folder = tempfile::tempdir().map_err(|error| BenchError::Live(error.to_string()))?;
        let pus = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
        let share = if self.busy {
            1.0
        } else {
            0.5 * pus / f64::from(self.threads)
        };
        let words = [LOAD.to_owned(), self.threads.to_string(), share.to_string()];
        let load = BenchProcess::start_and_read(BenchProcess::own_command(folder.path(), &words)?)?;
        Ok((load, folder))
    }
}

impl LoadWatcher {
    fn is_available(self) -> bool {
        match self {
            Self::Daemon(policy, _) => {
                let info = policies::REGISTRY.iter().find(|info| info.name == policy);
                let host = Host::detect(Path::new("/"));
                // The daemon refuses a policy whose signals this host does not offer.
                info.zip(host.ok()).is_some_and(|(info, host)| {
                    host.offers().missing_signals(info.needs).is_empty()
                })
            }
            Self::Peer(program, ..) => Command::new(program)
                .arg("--version")
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status()
                .is_ok(),
        }
    }

    fn start(self, pid: u32, folder: &Path) -> Result<BenchProcess, BenchError> {
        match self {
            Self::Daemon(policy, interval_ms) => start_daemon(policy, interval_ms, pid, folder),
            Self::Peer(program, before, after) => {
                let mut command = Command::new(program);
                command.args(before).arg(pid.to_string()).args(after);
                command.stdout(Stdio::null());
                BenchProcess::start(command)
            }
        }
    }
}

/// Starts a daemon of its own that manages this process.
fn start_daemon(
    policy: &str,
    interval_ms: u32,
    pid: u32,
    folder: &Path,
) -> Result<BenchProcess, BenchError> {
    let config = folder.join("config.toml");
    std::fs::write(&config, "").map_err(|error| BenchError::Live(error.to_string()))?;
    let interval = format!("{interval_ms}ms");
    let config = config.display().to_string();
    let socket = folder.join("control.sock").display().to_string();
    let mut words = vec!["daemon", "--policy", policy, "--interval", &interval];
    // Quanta of milliseconds are for unlike cores, which most hosts lack.
    if interval_ms < 100 {
        words.extend(["--emulate-asymmetry", "0"]);
    }
    words.extend(["--config", &config, "--socket", &socket]);
    let mut process = BenchProcess::start(BenchProcess::own_command(folder, &words)?)?;
    let pid = pid.to_string();
    process.await_answer(|| BenchProcess::own_command(folder, &["status", "--socket", &socket]))?;
    process.await_answer(|| {
        BenchProcess::own_command(folder, &["attach", &pid, "--socket", &socket])
    })?;
    Ok(process)
}

/// Waits until the work that is done once at the start is over.
fn warm_up(effort: Effort) {
    std::thread::sleep(match effort {
        Effort::Quick => Duration::from_millis(200),
        Effort::Full => Duration::from_millis(1500),
    });
}

/// Returns the duration over which CPU time is measured.
fn window(effort: Effort) -> Duration {
    match effort {
        Effort::Quick => Duration::from_millis(300),
        Effort::Full => Duration::from_secs(4),
    }
}

/// Returns the CPU time of the watcher and of the load, s, and the time that passed, s.
fn measure(scene: WatchedLoad, effort: Effort) -> Result<[f64; 3], BenchError> {
    let running = scene.start()?;
    warm_up(effort);
    let begin = Instant::now();
    let before = [running.watcher.cpu_s(), running.load.cpu_s()];
    std::thread::sleep(window(effort));
    let after = [running.watcher.cpu_s(), running.load.cpu_s()];
    let passed = begin.elapsed().as_secs_f64();
    Ok([after[0] - before[0], after[1] - before[1], passed])
}

/// Share of the threads' work that they lose to the watcher, percent: the same load with and without
/// it, in random order.
fn work_lost(scene: WatchedLoad, effort: Effort) -> BenchMeasure {
    let rate = move |load: &mut BenchProcess| {
        warm_up(effort);
        let begin = Instant::now();
        let before = load.query_steps()?;
        std::thread::sleep(window(effort));
        let done = load.query_steps()? - before;
        Ok::<_, BenchError>(done / begin.elapsed().as_secs_f64())
    };
    Box::new(move || {
        let alone = || rate(&mut scene.start_load()?.0);
        let watched = || rate(&mut scene.start()?.load);
        // A fresh hasher is random.
        let (with, without) = match RandomState::new().hash_one(0).is_multiple_of(2) {
            true => (watched()?, alone()?),
            false => {
                let without = alone()?;
                (watched()?, without)
            }
        };
        Ok(100.0 * (1.0 - with / without.max(1.0)))
    })
}

fn memory(scene: WatchedLoad, effort: Effort) -> BenchMeasure {
    Box::new(move || {
        let running = scene.start()?;
        warm_up(effort);
        Ok(running.watcher.resident_mb())
    })
}
