//! `consort trial`: whole runs of a command with and without management, in rounds of random order.

use super::compare::split_policies;
use super::manage::{MetricArgs, NONE, check_policy, detect_host, is_auto};
use crate::config;
use crate::failure::bad_input;
use crate::options::{count_parser, parse_interval, seed_parser};
use crate::output::{self, OutputColumn, OutputFormat, number, or_dash, text};
use crate::{progress, values};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use consort_core::stats::ConfidenceInterval;
use consort_core::trial::{EffectEstimate, MetricKind, PairedEffect, RoundOrders, Verdict};
use consort_core::{AUTO, choose_policy};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use serde::{Deserialize, Serialize};
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::thread;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Args)]
pub(crate) struct RunTrialArgs {
    /// Rounds: in each, the command runs once without management and once with each policy
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10, value_parser = count_parser::<usize>(4..=1_000))]
    pub(crate) rounds: usize,
    /// Policies to compare with no management, comma-separated; surely worse ones are dropped early
    #[arg(short, long, value_name = "POLICIES", default_value = AUTO, alias = "policy", add = values::live_policy_list())]
    pub(crate) policies: String,
    /// Time after which no further round begins, for example 10m
    #[arg(long, value_name = "TIME", value_parser = humantime::parse_duration)]
    pub(crate) budget: Option<Duration>,
    /// Quantum between decisions; each policy's own if not given
    #[arg(short, long, value_name = "TIME", value_parser = parse_interval)]
    pub(crate) interval: Option<Duration>,
    #[command(flatten)]
    pub(crate) metric: MetricArgs,
    /// Write the winner into the configuration, as the policy of `consort run`
    #[arg(long)]
    pub(crate) write: bool,
    /// Runs before the first round, which do not count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = count_parser::<usize>(0..=100))]
    pub(crate) warm_up: usize,
    /// Seed of the order
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Show the command's output, on stderr
    #[arg(long)]
    pub(crate) show_output: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
    /// The command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "CMD", add = values::command())]
    pub(crate) command: Vec<OsString>,
}

/// The JSON document of `consort trial`. Keys are a contract: add, never rename.
#[derive(Clone, Debug, Serialize)]
struct TrialReport {
    /// The best policy's effect, or that none has one.
    verdict: Verdict,
    /// The policy that is surely faster than no management; `None` if none is.
    winner: Option<String>,
    command: String,
    /// Reason for which no gain is to be expected on this host, if there is one.
    note: Option<String>,
    /// Rounds that were run.
    rounds: usize,
    arms: Vec<TrialArm>,
}

/// One policy of a [`TrialReport`], or `none`.
#[derive(Clone, Debug, Serialize)]
struct TrialArm {
    policy: String,
    runs: usize,
    /// Wall-clock time of the command from its exec to its end, s.
    wall_s: Option<ConfidenceInterval>,
    /// CPU time of the command with its descendants and, if managed, of Consort meanwhile, s.
    cpu_s: Option<ConfidenceInterval>,
    /// The user's number; `None` without `--metric`.
    metric: Option<ConfidenceInterval>,
    /// Effect over no management; `None` of the arm without.
    verdict: Option<Verdict>,
    /// True if it was dropped before the last round.
    dropped: bool,
}

const COLUMNS: &[OutputColumn<TrialArm>] = &[
    text("policy", |a| a.policy.clone()),
    number("runs", |a| a.runs.to_string()),
    number("wall (s)", |a| mean_text(a.wall_s)),
    number("CPU (s)", |a| mean_text(a.cpu_s)),
    number("metric", |a| mean_text(a.metric)),
    text("effect", |a| {
        let effect = a.verdict.as_ref().map(|verdict| verdict.text.clone());
        let dropped = if a.dropped { "; dropped" } else { "" };
        format!("{}{dropped}", effect.as_deref().unwrap_or("-"))
    }),
];

fn mean_text(value: Option<ConfidenceInterval>) -> String {
    or_dash(value, |value| match value.ci95 {
        Some(half) => format!("{:.3} ± {half:.3}", value.mean),
        None => format!("{:.3}", value.mean),
    })
}

/// Measurements of one run.
#[derive(Clone, Copy, Debug)]
struct MeasuredRun {
    wall_s: f64,
    cpu_s: f64,
    metric: Option<f64>,
}

impl MeasuredRun {
    /// Progress: the user's number, or the inverse of the time.
    fn progress(&self, kind: MetricKind) -> f64 {
        match (self.metric, kind) {
            (None, _) => 1.0 / self.wall_s,
            (Some(value), MetricKind::Less) => 1.0 / value,
            (Some(value), _) => value,
        }
    }
}

/// An arm while the trial runs; the first is without management.
struct RunningArm {
    policy: String,
    runs: Vec<MeasuredRun>,
    effect: PairedEffect,
    dropped: bool,
}

pub(crate) fn execute(args: &RunTrialArgs) -> Result<ExitCode> {
    let policies: Vec<String> = { split_policies(&args.policies) }
        .into_iter()
        .filter(|policy| policy != NONE)
        .collect();
    for policy in &policies {
        check_policy(policy).map_err(|why| bad_input(format!("--policies: {why}")))?;
    }
    if policies.is_empty() {
        return Err(bad_input("--policies: name a policy to compare with none"));
    }
    let place = args.write.then(ConfigPlace::find).transpose()?;
    let mut arms: Vec<RunningArm> = [NONE.to_owned()]
        .into_iter()
        .chain(policies)
        .map(RunningArm::new)
        .collect();
    let note = idle_note(&arms)?;
    let report = TrialReport {
        note,
        ..run_rounds(args, &mut arms)?
    };
    if let (Some(place), Some(winner)) = (place, &report.winner) {
        place.write(winner)?;
    }
    output::print(args.format, COLUMNS, &report.arms, &report, || {
        report.text()
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Says so if the automatic choice places nothing on this host, so that only the cost of watching is
/// compared.
fn idle_note(arms: &[RunningArm]) -> Result<Option<String>> {
    if !arms.iter().any(|arm| is_auto(&arm.policy)) {
        return Ok(None);
    }
    let host = detect_host(None)?;
    let choice = choose_policy(&host.discovery.topology, &host.offers(), None);
    Ok((choice.name == NONE).then_some(choice.why))
}

/// The file that `--write` makes: one of its own, because the user's files have comments.
struct ConfigPlace(PathBuf);

impl ConfigPlace {
    const NAME: &str = "50-trial.toml";

    fn find() -> Result<Self> {
        let folders = config::folders();
        let [own, _, ..] = &folders[..] else {
            let why = "--write: there is no folder for your configuration; set HOME";
            return Err(bad_input(why));
        };
        Ok(Self(own.join("config.d")))
    }

    fn write(&self, policy: &str) -> Result<()> {
        let text = format!("# Written by consort trial --write.\n[run]\npolicy = {policy:?}\n");
        std::fs::create_dir_all(&self.0)
            .and_then(|()| consort_data::write_atomically(&self.0, Self::NAME, text.as_bytes()))
            .with_context(|| format!("cannot write {}", self.0.join(Self::NAME).display()))?;
        output::print_text_to_stderr(&format!(
            "wrote policy {policy} to {}\n",
            self.0.join(Self::NAME).display()
        ))
    }
}

fn run_rounds(args: &RunTrialArgs, arms: &mut [RunningArm]) -> Result<TrialReport> {
    let begun = Instant::now();
    let mut orders = RoundOrders::new(args.seed);
    let meter = progress::start_meter("runs");
    let total = args.warm_up + args.rounds * arms.len();
    let mut done = 0;
    for _ in 0..args.warm_up {
        run_once(args, NONE)?;
        done += 1;
        meter.set_done(done, total);
    }
    let mut rounds = 0;
    while rounds < args.rounds {
        // A round that would end beyond the budget does not begin.
        let next = begun.elapsed() + begun.elapsed() / (rounds.max(1) as u32);
        let is_spent = args
            .budget
            .is_some_and(|budget| rounds > 0 && next > budget);
        let left: Vec<usize> = (0..arms.len()).filter(|&at| !arms[at].dropped).collect();
        if is_spent || left.len() < 2 {
            break;
        }
        let order = orders.shuffle(left);
        for &at in &order {
            let run = run_once(args, &arms[at].policy)?;
            arms[at].runs.push(run);
            done += 1;
            meter.set_done(done, total.max(done));
        }
        rounds += 1;
        compare_round(args, arms, &order);
    }
    meter.finish();
    Ok(report(args, arms, rounds))
}

/// Adds a round's pairs, and drops the policies that are surely worse than none or than another.
fn compare_round(args: &RunTrialArgs, arms: &mut [RunningArm], order: &[usize]) {
    let kind = args.metric.metric_is.into();
    let last = |arm: &RunningArm| arm.runs.last().map_or(0.0, |run| run.progress(kind));
    let unmanaged = last(&arms[0]);
    let place = |wanted: usize| order.iter().position(|&at| at == wanted);
    for &at in order.iter().filter(|&&at| at > 0) {
        let managed = last(&arms[at]);
        let is_first = place(at) < place(0);
        arms[at].effect.add(managed, unmanaged, is_first);
    }
    let known: Vec<Option<EffectEstimate>> = arms.iter().map(|arm| arm.effect.anytime()).collect();
    let best = known
        .iter()
        .flatten()
        .map(|effect| effect.low)
        .fold(1.0, f64::max);
    for (arm, effect) in arms.iter_mut().zip(&known) {
        arm.dropped |= effect.is_some_and(|effect| effect.high < best);
    }
}

fn report(args: &RunTrialArgs, arms: &[RunningArm], rounds: usize) -> TrialReport {
    let measure = match &args.metric.metric {
        Some(source) => source.to_string(),
        None => "wall time".to_owned(),
    };
    // The best of several is best by luck too, and a trial that may end early ends when it looks good:
    // then only the interval that allows for looking again and again will do.
    let several = arms.len() > 2 || args.budget.is_some();
    let estimate = |arm: &RunningArm| match several || arm.dropped {
        true => arm.effect.anytime(),
        false => arm.effect.estimate(),
    };
    let rows: Vec<TrialArm> = { arms.iter().enumerate() }
        .map(|(at, arm)| {
            let verdict =
                (at > 0).then(|| Verdict::from_named(estimate(arm), arm.effect.pairs(), &measure));
            arm.row(verdict)
        })
        .collect();
    let best = { rows.iter() }
        .filter(|row| row.verdict.is_some())
        .max_by(|a, b| effect_of(a).total_cmp(&effect_of(b)));
    let mut verdict = best
        .and_then(|best| best.verdict.clone())
        .unwrap_or_default();
    let is_faster = verdict.low.is_some_and(|low| low > 1.0);
    let winner = best.filter(|_| is_faster).map(|best| best.policy.clone());
    if arms.len() > 2 {
        verdict.text = match best {
            Some(best) if is_faster => format!("{}: {}", best.policy, verdict.text),
            Some(best) => format!(
                "no policy is surely faster; best {}: {}",
                best.policy, verdict.text
            ),
            None => verdict.text,
        };
    }
    let words = args.command.iter().map(|word| word.to_string_lossy());
    TrialReport {
        verdict,
        winner,
        command: words.collect::<Vec<_>>().join(" "),
        note: None,
        rounds,
        arms: rows,
    }
}

fn effect_of(row: &TrialArm) -> f64 {
    let effect = row.verdict.as_ref().and_then(|verdict| verdict.effect);
    effect.unwrap_or(f64::NEG_INFINITY)
}

impl RunningArm {
    fn new(policy: String) -> Self {
        Self {
            policy,
            runs: Vec::new(),
            effect: PairedEffect::default(),
            dropped: false,
        }
    }

    fn row(&self, verdict: Option<Verdict>) -> TrialArm {
        let interval = |of: fn(&MeasuredRun) -> Option<f64>| {
            let values: Option<Vec<f64>> = self.runs.iter().map(of).collect();
            ConfidenceInterval::from_values(&values?)
        };
        TrialArm {
            policy: self.policy.clone(),
            runs: self.runs.len(),
            wall_s: interval(|run| Some(run.wall_s)),
            cpu_s: interval(|run| Some(run.cpu_s)),
            metric: interval(|run| run.metric),
            verdict,
            dropped: self.dropped,
        }
    }
}

impl TrialReport {
    fn text(&self) -> String {
        let table = output::table(COLUMNS, &self.arms);
        let note = self
            .note
            .as_ref()
            .map_or_else(String::new, |note| format!("note: {note}\n"));
        format!(
            "{}\n\n{table}\n{note}{} rounds of {}; ± is the 95 % interval. CPU times include Consort's \
             while the command ran; its start and end do not count.\n",
            self.verdict.text, self.rounds, self.command
        )
    }
}

/// Runs the command once, under a policy or without management.
fn run_once(args: &RunTrialArgs, policy: &str) -> Result<MeasuredRun> {
    let (ended, times) = match policy {
        NONE => run_alone(&args.command)?,
        policy => run_managed(args, policy)?,
    };
    let printed = String::from_utf8_lossy(&ended.stdout);
    if args.show_output {
        output::print_text_to_stderr(&printed)?;
        output::print_text_to_stderr(&String::from_utf8_lossy(&ended.stderr))?;
    }
    if !ended.status.success() {
        let said = String::from_utf8_lossy(&ended.stderr);
        let said = said
            .trim()
            .lines()
            .last()
            .map_or_else(String::new, |line| format!(": {line}"));
        return Err(anyhow!(
            "the command failed under policy {policy} ({}), so nothing is concluded{said}",
            ended.status
        ));
    }
    let times = times.context("the managed run has written no report")?;
    let metric = args.metric.metric.as_ref();
    let metric = metric.map(|source| source.read(Some(&printed)));
    Ok(MeasuredRun {
        wall_s: times.wall_s,
        // Managing takes CPU time from the command, so that it counts. Starting Consort does not.
        cpu_s: times.cpu_s + times.own_cpu_s,
        metric: metric
            .transpose()
            .map_err(|why| bad_input(format!("--metric: {why}")))?,
    })
}

/// Times of the command in a run, as the report of `consort run` has them.
#[derive(Debug, Default, Deserialize)]
struct RunTimes {
    wall_s: f64,
    cpu_s: f64,
    own_cpu_s: f64,
}

/// The part of the report of `consort run` that a trial reads.
#[derive(Debug, Deserialize)]
struct ManagedRunReport {
    command: RunTimes,
}

/// Runs the command to its end under a policy. The times are `None` if there is no report of them.
fn run_managed(args: &RunTrialArgs, policy: &str) -> Result<(Output, Option<RunTimes>)> {
    let own = std::env::current_exe().context("cannot find this program's own file")?;
    let folder = tempfile::tempdir().context("cannot make a folder for reports")?;
    let report = folder.path().join("report.json");
    let mut command = Command::new(own);
    command.args(["run", "--quiet", "--no-daemon", "--policy", policy]);
    command.arg("--report").arg(&report);
    if let Some(interval) = args.interval {
        command
            .arg("--interval")
            .arg(format!("{}us", interval.as_micros()));
    }
    command.arg("--").args(&args.command);
    let ended = command
        .stdin(Stdio::null())
        .output()
        .context("cannot start consort run")?;
    Ok((ended, read_times(&report)))
}

fn read_times(report: &Path) -> Option<RunTimes> {
    let report = std::fs::read(report).ok()?;
    let report: ManagedRunReport = serde_json::from_slice(&report).ok()?;
    Some(report.command)
}

/// Runs the command to its end without management.
fn run_alone(words: &[OsString]) -> Result<(Output, Option<RunTimes>)> {
    let cannot = |what: &str| format!("cannot {what} {}", words[0].to_string_lossy());
    let mut child = Command::new(&words[0])
        .args(&words[1..])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| cannot("start"))?;
    // The exec is over, as at the time from which a managed run counts.
    let (begun, cpu_before_s) = (Instant::now(), children_cpu_s());
    // By threads of their own, because the command may end before another process closes them.
    let stdout = child.stdout.take().map(read_in_background);
    let stderr = child.stderr.take().map(read_in_background);
    let status = child.wait().with_context(|| cannot("wait for"))?;
    let times = RunTimes {
        wall_s: begun.elapsed().as_secs_f64(),
        cpu_s: children_cpu_s() - cpu_before_s,
        own_cpu_s: 0.0,
    };
    let read = |reader: Option<thread::JoinHandle<Vec<u8>>>| {
        reader
            .and_then(|reader| reader.join().ok())
            .unwrap_or_default()
    };
    let ended = Output {
        status,
        stdout: read(stdout),
        stderr: read(stderr),
    };
    Ok((ended, Some(times)))
}

fn read_in_background(mut pipe: impl Read + Send + 'static) -> thread::JoinHandle<Vec<u8>> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was read before an error is kept.
        let _ = pipe.read_to_end(&mut bytes);
        bytes
    })
}

/// CPU time of all children that have ended, s.
fn children_cpu_s() -> f64 {
    getrusage(UsageWho::RUSAGE_CHILDREN).map_or(0.0, |usage| {
        (usage.user_time() + usage.system_time()).num_microseconds() as f64 / 1e6
    })
}
