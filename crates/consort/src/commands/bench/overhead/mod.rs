//! Cost of being watched and managed, by pairs: the same load with and without Consort, in random
//! order, and next to it what the report says of its own cost.

mod servers;
mod work;

pub(super) use work::work;

use super::load::LOAD;
use super::process::Process;
use consort_bench::{Bench, BenchError, Case, Effort, Measure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use servers::Server;
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

/// The bench, with what is wanted of it.
#[derive(Clone, Default)]
pub(super) struct Overhead {
    /// The only load, if one is named.
    pub(super) only: Option<String>,
    /// Policy of the managed arm; `none` if not given.
    pub(super) policy: Option<String>,
    /// Rate of watching, Consort's own choice if not given.
    pub(super) watch: Option<String>,
    /// True for a third arm, under `perf record -a`.
    pub(super) with_perf: bool,
}

/// A load that is run for some seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Load {
    Pgbench,
    Redis,
    Nginx,
    /// Requests and answers over sockets between processes, with bursts of work.
    Serve,
    Churn,
    Forks,
    PingPong,
    Loops,
}

/// Outcome of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Outcome {
    /// Cost of a unit of work: time that passed for servers, CPU time for all others.
    cost: f64,
    /// Median and 99th percentile of the time that a request took, us; 0 where there are none.
    median_us: f64,
    p99_us: f64,
}

/// Surroundings of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Arm {
    Alone,
    Managed,
    Perf,
}

/// Changes between the arms of one round, in percent.
#[derive(Clone, Copy, Debug, Default)]
struct Changes {
    cost: f64,
    median: f64,
    p99: f64,
    reported: f64,
    perf: f64,
}

impl Load {
    const ALL: [Self; 8] = [
        Self::Pgbench,
        Self::Redis,
        Self::Nginx,
        Self::Serve,
        Self::Churn,
        Self::Forks,
        Self::PingPong,
        Self::Loops,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Pgbench => "pgbench",
            Self::Redis => "redis",
            Self::Nginx => "nginx",
            Self::Serve => "serve",
            Self::Churn => "churn",
            Self::Forks => "forks",
            Self::PingPong => "ping-pong",
            Self::Loops => "loops",
        }
    }

    fn has_requests(self) -> bool {
        matches!(
            self,
            Self::Pgbench | Self::Redis | Self::Nginx | Self::Serve
        )
    }

    /// Most percent that it may cost.
    fn target(self) -> Option<f64> {
        match self {
            Self::Pgbench | Self::Redis | Self::Nginx | Self::Serve => Some(2.0),
            Self::Churn | Self::PingPong => Some(5.0),
            Self::Loops => Some(1.0),
            Self::Forks => None,
        }
    }
}

impl Overhead {
    pub(super) const NAME: &'static str = "overhead";
}

impl Bench for Overhead {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn summary(&self) -> String {
        "what being managed costs servers, threads, processes and loops here, in pairs with and \
         without (minutes; run by its name only)"
            .to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<Case>, BenchError> {
        let is_wanted = |load: &Load| self.only.as_deref().is_none_or(|name| name == load.name());
        let loads: Vec<Load> = Load::ALL.into_iter().filter(is_wanted).collect();
        if let (true, Some(name)) = (loads.is_empty(), &self.only) {
            let names = Load::ALL.map(Load::name).join(", ");
            return Err(BenchError::Unknown {
                name: name.clone(),
                hint: format!("the loads are {names}"),
            });
        }
        let there = loads.into_iter().filter(|load| servers::is_there(*load));
        Ok(there.flat_map(|load| self.cases_of(load, effort)).collect())
    }
}

impl Overhead {
    fn cases_of(&self, load: Load, effort: Effort) -> Vec<Case> {
        let changes = Rc::new(Cell::new(Changes::default()));
        let (wanted, kept) = (self.clone(), Rc::clone(&changes));
        let measure: Measure = Box::new(move || {
            kept.set(wanted.round(load, effort)?);
            Ok(kept.get().cost)
        });
        let (what, unit) = match load.has_requests() {
            true => ("time", "% more time per request"),
            false => ("cpu", "% more CPU time"),
        };
        let named = |what: &str| format!("overhead-{}-{what}", load.name());
        let mut first = Case::measured(named(what), unit, measure);
        if let Some(target) = load.target() {
            first = first.with_target(target);
        }
        let of = |what: &str, unit, value: fn(Changes) -> f64| {
            let changes = Rc::clone(&changes);
            Case::measured(
                named(what),
                unit,
                Box::new(move || Ok(value(changes.get()))),
            )
        };
        let mut cases = vec![first];
        if load.has_requests() {
            cases.push(of("median", "% longer", |c| c.median).with_target(3.0));
            cases.push(of("p99", "% longer", |c| c.p99));
        }
        cases.push(of("reported", "% of managed CPU time", |c| c.reported));
        if self.with_perf {
            cases.push(of("perf", unit, |c| c.perf));
        }
        cases
    }

    /// Runs each arm once, in random order.
    fn round(&self, load: Load, effort: Effort) -> Result<Changes, BenchError> {
        let folder = tempfile::tempdir().map_err(|error| BenchError::Live(error.to_string()))?;
        let mut arms = vec![Arm::Alone, Arm::Managed];
        if self.with_perf {
            arms.push(Arm::Perf);
        }
        // A fresh hasher is random.
        arms.sort_by_cached_key(|arm| RandomState::new().hash_one(*arm as u8));
        let time = match effort {
            Effort::Quick => Duration::from_millis(300),
            Effort::Full => Duration::from_secs(4),
        };
        let mut server = Server::start(load, folder.path())?;
        let (mut alone, mut managed, mut perf) = <(Outcome, Outcome, Outcome)>::default();
        let mut reported = 0.0;
        for arm in arms {
            match arm {
                Arm::Alone => alone = self.run(arm, load, &mut server, time, folder.path())?,
                Arm::Perf => perf = self.run(arm, load, &mut server, time, folder.path())?,
                Arm::Managed => {
                    managed = self.run(arm, load, &mut server, time, folder.path())?;
                    reported = reported_percent(&folder.path().join("report.json"));
                }
            }
        }
        let more = |with: f64, without: f64| 100.0 * (with / without.max(1e-12) - 1.0);
        Ok(Changes {
            cost: more(managed.cost, alone.cost),
            median: more(managed.median_us, alone.median_us),
            p99: more(managed.p99_us, alone.p99_us),
            reported,
            perf: more(perf.cost, alone.cost),
        })
    }

    fn run(
        &self,
        arm: Arm,
        load: Load,
        server: &mut Option<Server>,
        time: Duration,
        folder: &Path,
    ) -> Result<Outcome, BenchError> {
        let mut perf = None;
        if arm == Arm::Perf {
            let mut command = Command::new("perf");
            command.args(["record", "-a", "-F", "499", "-e", "cpu-clock", "-o"]);
            command.arg(folder.join("perf.data")).stdout(Stdio::null());
            perf = Some(Process::start(command)?);
            settle();
        }
        let report = folder.join("report.json").display().to_string();
        let outcome = match server {
            Some(server) => {
                let watcher = match arm {
                    Arm::Managed => Some(self.attach(server, &report, folder)?),
                    _ => None,
                };
                let outcome = server.ask(time);
                drop(watcher);
                outcome?
            }
            None => {
                let seconds = time.as_secs_f64().to_string();
                let load = [LOAD, load.name(), &seconds].map(str::to_owned);
                let mut words: Vec<String> = Vec::new();
                let own = std::env::current_exe().map_err(|e| BenchError::Live(e.to_string()))?;
                if arm == Arm::Managed {
                    words.extend(
                        ["run", "-q", "--no-daemon", "--report", &report].map(str::to_owned),
                    );
                    words.extend(self.options());
                    words.extend(["--".to_owned(), own.display().to_string()]);
                }
                words.extend(load);
                finished(Process::own(folder, &words)?)?
            }
        };
        drop(perf);
        Ok(outcome)
    }

    fn options(&self) -> Vec<String> {
        let policy = self.policy.as_deref().unwrap_or("none");
        let mut words = vec!["--policy".to_owned(), policy.to_owned()];
        if let Some(watch) = &self.watch {
            words.extend(["--watch".to_owned(), watch.clone()]);
        }
        words
    }

    fn attach(&self, server: &Server, report: &str, folder: &Path) -> Result<Process, BenchError> {
        let mut words: Vec<String> = ["attach", "--foreground", "-q", "--report", report]
            .map(str::to_owned)
            .to_vec();
        words.extend(self.options());
        words.push(server.pid().to_string());
        let mut command = Process::own(folder, &words)?;
        command.stdout(Stdio::null());
        let watcher = Process::start(command)?;
        settle();
        Ok(watcher)
    }
}

/// Waits until a watcher watches.
fn settle() {
    std::thread::sleep(Duration::from_millis(400));
}

/// Runs a load of ours to its end: CPU time is that of everything, Consort's too.
fn finished(mut command: Command) -> Result<Outcome, BenchError> {
    let failed = |why: String| BenchError::Live(format!("a load failed: {why}"));
    let before = children_s();
    let output = command.stdin(Stdio::null()).output();
    let output = output.map_err(|error| failed(error.to_string()))?;
    let cpu_s = children_s() - before;
    let text = String::from_utf8_lossy(&output.stdout);
    let done: Value = serde_json::from_str(text.trim())
        .map_err(|_| failed(String::from_utf8_lossy(&output.stderr).into_owned()))?;
    let number = |key: &str| done[key].as_f64().unwrap_or(0.0);
    let per_work = 1.0 / number("work").max(1.0);
    Ok(Outcome {
        cost: match number("median_us") > 0.0 {
            true => number("seconds") * per_work,
            false => cpu_s * per_work,
        },
        median_us: number("median_us"),
        p99_us: number("p99_us"),
    })
}

fn children_s() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN);
    usage.map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}

/// Cost of managing as a report gives it, percent; NaN without a report.
fn reported_percent(report: &Path) -> f64 {
    let text = std::fs::read_to_string(report).unwrap_or_default();
    let report: Value = serde_json::from_str(&text).unwrap_or_default();
    report["overhead"]["share_of_managed"]
        .as_f64()
        .map_or(f64::NAN, |share| 100.0 * share)
}
