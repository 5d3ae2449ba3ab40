//! Cost of being watched and managed, by pairs: the same load with and without Consort, in random
//! order, and next to it the cost that the report shows.

mod servers;

use crate::crew::LOAD;
use crate::crew::process::BenchProcess;
use consort_experiment::bench::{Bench, BenchCase, BenchError, BenchMeasure, Effort};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde_json::Value;
use servers::{LoadServer, missing_program};
use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

/// The bench of pairs, with its options.
#[derive(Clone, Default)]
pub struct OverheadBench {
    /// The only load, if one is named.
    pub only: Option<String>,
    /// Policy of the managed arm; `none` if not given.
    pub policy: Option<String>,
    /// Rate of watching, Consort's own choice if not given.
    pub watch: Option<String>,
    /// True for a third arm, under `perf record -a`.
    pub with_perf: bool,
}

/// A load that is run for some seconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OverheadLoad {
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
pub(super) struct LoadCost {
    /// Cost of a unit of work: time that passed for servers, CPU time for all others.
    cost: f64,
    /// Median and 99th percentile of the time that a request took, us; 0 if there are none.
    median_us: f64,
    p99_us: f64,
}

/// Surroundings of a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverheadArm {
    Alone,
    Managed,
    Perf,
}

/// Changes between the arms of one round, in percent.
#[derive(Clone, Copy, Debug, Default)]
struct ArmChanges {
    cost: f64,
    median: f64,
    p99: f64,
    reported: f64,
    perf: f64,
}

impl OverheadLoad {
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

impl OverheadBench {
    /// Name of the bench.
    pub const NAME: &'static str = "overhead";
}

impl Bench for OverheadBench {
    fn name(&self) -> String {
        Self::NAME.to_owned()
    }

    fn summary(&self) -> String {
        "what being managed costs servers, threads, processes and loops here, in pairs with and \
         without (minutes; run by its name only)"
            .to_owned()
    }

    fn cases(&self, effort: Effort) -> Result<Vec<BenchCase>, BenchError> {
        let is_wanted =
            |load: &OverheadLoad| self.only.as_deref().is_none_or(|name| name == load.name());
        let loads: Vec<OverheadLoad> = OverheadLoad::ALL.into_iter().filter(is_wanted).collect();
        if let (true, Some(name)) = (loads.is_empty(), &self.only) {
            let names = OverheadLoad::ALL.map(OverheadLoad::name).join(", ");
            return Err(BenchError::Unknown {
                name: name.clone(),
                hint: format!("the loads are {names}"),
            });
        }
        if let ([load], Some(name)) = (&loads[..], &self.only)
            && let Some(missing) = missing_program(*load)
        {
            return Err(BenchError::Live(format!(
                "cannot measure {name}: {missing} is not installed; install it, or name another load"
            )));
        }
        let there = { loads.into_iter() }.filter(|load| missing_program(*load).is_none());
        Ok(there
            .flat_map(|load| self.load_cases(load, effort))
            .collect())
    }
}

impl OverheadBench {
    fn load_cases(&self, load: OverheadLoad, effort: Effort) -> Vec<BenchCase> {
        let changes = Rc::new(Cell::new(ArmChanges::default()));
        let (wanted, kept) = (self.clone(), Rc::clone(&changes));
        let measure: BenchMeasure = Box::new(move || {
            kept.set(wanted.run_round(load, effort)?);
            Ok(kept.get().cost)
        });
        let (what, unit) = match load.has_requests() {
            true => ("time", "% more time per request"),
            false => ("cpu", "% more CPU time"),
        };
        let named = |what: &str| format!("overhead-{}-{what}", load.name());
        let mut first = BenchCase::from_measure(named(what), unit, measure);
        if let Some(target) = load.target() {
            first = first.with_target(target);
        }
        let figure = |what: &str, unit, value: fn(ArmChanges) -> f64| {
            let changes = Rc::clone(&changes);
            BenchCase::from_measure(
                named(what),
                unit,
                Box::new(move || Ok(value(changes.get()))),
            )
        };
        let mut cases = vec![first];
        if load.has_requests() {
            cases.push(figure("median", "% longer", |c| c.median).with_target(3.0));
            cases.push(figure("p99", "% longer", |c| c.p99));
        }
        cases.push(figure("reported", "% of managed CPU time", |c| c.reported));
        if self.with_perf {
            cases.push(figure("perf", unit, |c| c.perf));
        }
        cases
    }

    /// Runs each arm once, in random order.
    fn run_round(&self, load: OverheadLoad, effort: Effort) -> Result<ArmChanges, BenchError> {
        let folder = tempfile::tempdir().map_err(|error| BenchError::Live(error.to_string()))?;
        let mut arms = vec![OverheadArm::Alone, OverheadArm::Managed];
        if self.with_perf {
            arms.push(OverheadArm::Perf);
        }
        // A fresh hasher is random.
        arms.sort_by_cached_key(|arm| RandomState::new().hash_one(*arm as u8));
        let time = match effort {
            Effort::Quick => Duration::from_millis(300),
            Effort::Full => Duration::from_secs(4),
        };
        let mut server = LoadServer::start(load, folder.path())?;
        let (mut alone, mut managed, mut perf) = <(LoadCost, LoadCost, LoadCost)>::default();
        let mut reported = 0.0;
        for arm in arms {
            match arm {
                OverheadArm::Alone => {
                    alone = self.run(arm, load, &mut server, time, folder.path())?;
                }
                OverheadArm::Perf => {
                    perf = self.run(arm, load, &mut server, time, folder.path())?;
                }
                OverheadArm::Managed => {
                    managed = self.run(arm, load, &mut server, time, folder.path())?;
                    let report = folder.path().join("report.json");
                    let report = std::fs::read_to_string(report).unwrap_or_default();
                    let report: Value = serde_json::from_str(&report).unwrap_or_default();
                    let share = report["overhead"]["share_of_managed"].as_f64();
                    reported = share.map_or(f64::NAN, |share| 100.0 * share);
                }
            }
        }
        let more = |with: f64, without: f64| 100.0 * (with / without.max(1e-12) - 1.0);
        Ok(ArmChanges {
            cost: more(managed.cost, alone.cost),
            median: more(managed.median_us, alone.median_us),
            p99: more(managed.p99_us, alone.p99_us),
            reported,
            perf: more(perf.cost, alone.cost),
        })
    }

    fn run(
        &self,
        arm: OverheadArm,
        load: OverheadLoad,
        server: &mut Option<LoadServer>,
        time: Duration,
        folder: &Path,
    ) -> Result<LoadCost, BenchError> {
        let mut perf = None;
        if arm == OverheadArm::Perf {
            let mut command = Command::new("perf");
            command.args(["record", "-a", "-F", "499", "-e", "cpu-clock", "-o"]);
            command.arg(folder.join("perf.data")).stdout(Stdio::null());
            perf = Some(BenchProcess::start(command)?);
            await_watcher();
        }
        let report = folder.join("report.json").display().to_string();
        let outcome = match server {
            Some(server) => {
                let watcher = match arm {
                    OverheadArm::Managed => Some(self.attach(server, &report, folder)?),
                    _ => None,
                };
                let outcome = server.run_client(time);
                drop(watcher);
                outcome?
            }
            None => {
                let seconds = time.as_secs_f64().to_string();
                let load = [LOAD, load.name(), &seconds].map(str::to_owned);
                let mut words: Vec<String> = Vec::new();
                let own = std::env::current_exe().map_err(|e| BenchError::Live(e.to_string()))?;
                if arm == OverheadArm::Managed {
                    words.extend(
                        ["run", "-q", "--no-daemon", "--report", &report].map(str::to_owned),
                    );
                    words.extend(self.options());
                    words.extend(["--".to_owned(), own.display().to_string()]);
                }
                words.extend(load);
                run_own_load(BenchProcess::own_command(folder, &words)?)?
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

    fn attach(
        &self,
        server: &LoadServer,
        report: &str,
        folder: &Path,
    ) -> Result<BenchProcess, BenchError> {
        let mut words: Vec<String> = ["attach", "--foreground", "-q", "--report", report]
            .map(str::to_owned)
            .to_vec();
        words.extend(self.options());
        words.push(server.pid().to_string());
        let mut command = BenchProcess::own_command(folder, &words)?;
        command.stdout(Stdio::null());
        let watcher = BenchProcess::start(command)?;
        await_watcher();
        Ok(watcher)
    }
}

/// Waits until a watcher has begun to watch.
fn await_watcher() {
    std::thread::sleep(Duration::from_millis(400));
}

/// Runs a load of this program to its end; its CPU time includes Consort's.
fn run_own_load(mut command: Command) -> Result<LoadCost, BenchError> {
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
    Ok(LoadCost {
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
