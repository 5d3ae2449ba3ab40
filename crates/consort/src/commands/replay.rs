//! `consort replay`: the plans that a policy would have made for a recording.

use crate::failure::bad_input;
use crate::options::{ResultOut, seed_parser};
use crate::output::file::{ReportFile, ResultFiles};
use crate::output::{self, OutputColumn, OutputFormat, count, number, text};
use crate::values;
use anyhow::Result;
use clap::Args;
use consort_core::policy::{PolicySpec, published_name};
use consort_core::{
    Backoff, ControlLoop, ControlTurn, EnactmentReport, Machine, Observation, Placement, Plan,
    SignalOffers, ThreadId, Topology, escape_invisible, policies,
};
use consort_data::long::{LongRows, RowOwner};
use consort_data::recording::{Quanta, RecordedQuantum, Recording, RecordingError};
use consort_data::{List, Table, TraceTrack, TraceWriter, figures_page};
use serde::Serialize;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(Clone, Debug, Args)]
pub(crate) struct ReplayArgs {
    /// Recording, or the folder FILE.parts that a killed run leaves
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
    /// Policy with options to replay; the recorded one if not given
    #[arg(short, long, value_name = "POLICY", add = values::live_policies())]
    pub(crate) policy: Option<String>,
    /// Seed of all randomness in the policy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = seed_parser())]
    pub(crate) seed: u64,
    /// Write a timeline with recorded and replayed placements to FILE, for Perfetto (ui.perfetto.dev)
    #[arg(long, value_name = "FILE")]
    pub(crate) timeline: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) files: ResultOut,
    /// Output format
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// The JSON document. Keys are a contract: add, never rename.
#[derive(Debug, Serialize)]
struct ReplayDocument {
    /// The recorded command.
    command: String,
    /// The policy that decided then.
    recorded_policy: String,
    /// The policy that was replayed.
    policy: String,
    /// Recorded quanta.
    quanta: u64,
    /// Recorded time, s.
    duration_s: f64,
    /// Placements that the policy would have changed.
    changes: u64,
    /// Share of threads and quanta that it would have placed as they were, 0 to 1; `None` if
    /// no thread was managed.
    agreement: Option<f64>,
    /// Threads, by CPU time.
    threads: Vec<ReplayThreadRow>,
}

impl ReplayDocument {
    /// Every number, one per row.
    fn table(&self, seed: u64) -> Table {
        let mut rows = LongRows::default();
        let command = escape_invisible(&self.command);
        let whole = RowOwner {
            case: &command,
            policy: Some(&self.policy),
            seed: Some(seed),
            program: None,
        };
        rows.push(whole, "quanta", self.quanta as f64, None);
        rows.push(whole, "duration_s", self.duration_s, Some("s"));
        rows.push(whole, "changes", self.changes as f64, None);
        rows.push_if_some(whole, "agreement", self.agreement, None);
        for thread in &self.threads {
            let name = format!("{}:{}", escape_invisible(&thread.name), thread.tid);
            let owner = whole.with_program(&name);
            rows.push(owner, "cpu_s", thread.cpu_s, Some("s"));
            rows.push(owner, "quanta", thread.quanta as f64, None);
            rows.push(owner, "agreement", thread.agreement, None);
            rows.push(owner, "changes", thread.changes as f64, None);
        }
        rows.table()
    }
}

#[derive(Clone, Debug, Default, Serialize)]
struct ReplayThreadRow {
    tid: u32,
    name: String,
    /// CPU time while it was recorded, s.
    cpu_s: f64,
    /// Quanta in which it was there and managed.
    quanta: u64,
    /// Of these, placed as it was, as a share.
    agreement: f64,
    /// Placements that the policy would have changed.
    changes: u64,
    /// Placement that the policy would have given it last.
    placed: String,
    /// Placement that was recorded last.
    recorded: String,
    /// Rule by which the policy placed it last; empty if it gave none.
    chosen: String,
}

/// A recording as a machine. Its observations do not depend on plans.
struct RecordingPlayback {
    topology: Topology,
    offers: SignalOffers,
    quanta: Quanta,
    /// The plan that was recorded with the last observation.
    plan: Plan,
}

impl Machine for RecordingPlayback {
    type Error = RecordingError;

    fn topology(&self) -> &Topology {
        &self.topology
    }

    fn offers(&self) -> &SignalOffers {
        &self.offers
    }

    fn observe(&mut self) -> Result<Option<Observation>, RecordingError> {
        let Some(quantum) = self.quanta.next() else {
            return Ok(None);
        };
        let RecordedQuantum { observation, plan } = quantum?;
        self.plan = plan;
        Ok(Some(observation))
    }

    fn enact(&mut self, _: &Plan) -> Result<EnactmentReport, RecordingError> {
        Ok(EnactmentReport::default())
    }
}

pub(crate) fn execute(args: &ReplayArgs) -> Result<ExitCode> {
    let files = ResultFiles::begin(&args.files)?;
    let timeline_file = ReportFile::begin(args.timeline.as_deref())?;
    let recording = Recording::open(&args.file).map_err(bad_input)?;
    let about = recording.info();
    let playback = RecordingPlayback {
        topology: about.topology.clone(),
        offers: about.all_offers(),
        quanta: recording.quanta(),
        plan: Plan::default(),
    };
    let name = published_name(args.policy.as_deref().unwrap_or(&about.policy));
    let mut spec: PolicySpec = name.parse().map_err(bad_input)?;
    spec.attach(consort_describe::input::read_if_file)
        .map_err(bad_input)?;
    let policy = policies::open(&playback.topology, &playback.offers, &spec);
    let policy = policy.map_err(bad_input)?;
    let mut control_loop = ControlLoop::new(playback, policy, Backoff::off(), args.seed);
    let mut sums = ReplaySums::default();
    let mut timeline = match timeline_file {
        Some(file) => Some((file, ReplayTimeline::new()?)),
        None => None,
    };
    while let Some(turn) = control_loop.run_turn().map_err(bad_input)? {
        sums.add(&turn, &control_loop.machine().plan);
        if let Some((_, timeline)) = &mut timeline {
            timeline.add(&turn, &control_loop.machine().plan)?;
        }
    }
    let replayed = sums.into_document(&recording, &name);
    if let Some((file, timeline)) = timeline {
        file.write(&timeline.into_text()?)?;
    }
    if let Some(file) = files.page {
        let threads = List::new(COLUMNS, &replayed.threads);
        let threads = threads.to_report_table("threads", "Threads, by CPU time")?;
        let title = format!("{} on a recording of {}", replayed.policy, replayed.command);
        let facts = [sentence(&replayed)];
        file.write(&figures_page(&title, &facts, &[threads], &[])?)?;
    }
    if let Some(file) = files.document {
        file.write_json(&replayed)?;
    }
    files.table.write(|| replayed.table(args.seed))?;
    let threads = &replayed.threads;
    output::print(args.format, COLUMNS, threads, &replayed, || {
        let table = output::table(COLUMNS, threads);
        format!("{table}\n{}\n", sentence(&replayed))
    })?;
    Ok(ExitCode::SUCCESS)
}

/// Sums over a replay.
#[derive(Default)]
struct ReplaySums {
    quanta: u64,
    end_ns: u64,
    threads: BTreeMap<ThreadId, ReplayThreadRow>,
    same: u64,
    all: u64,
}

impl ReplaySums {
    fn add(&mut self, turn: &ControlTurn, recorded: &Plan) {
        self.quanta += 1;
        self.end_ns = turn.observation.time_ns;
        for thread in &turn.observation.threads {
            let row = self.threads.entry(thread.id).or_default();
            row.tid = thread.id.tid;
            row.name = thread.name.to_string();
            row.cpu_s += thread.sample.cpu_time_ns() / 1e9;
            if !thread.managed {
                continue;
            }
            let then = recorded.placements.get(&thread.id);
            let then = then.unwrap_or(&Placement::Unrestricted);
            let now = turn.plan.placements.get(&thread.id);
            let now = now.unwrap_or(&Placement::Unrestricted);
            row.quanta += 1;
            row.agreement += f64::from(u8::from(then == now));
            self.all += 1;
            self.same += u64::from(then == now);
            (row.placed, row.recorded) = (now.to_string(), then.to_string());
            let reason = turn.plan.report.threads.get(&thread.id);
            row.chosen = reason.map_or_else(String::new, |reason| reason.chosen.clone());
        }
        for id in &turn.changed {
            self.threads.entry(*id).or_default().changes += 1;
        }
    }

    fn into_document(self, recording: &Recording, policy: &str) -> ReplayDocument {
        let mut threads: Vec<ReplayThreadRow> = self.threads.into_values().collect();
        for row in &mut threads {
            row.agreement /= row.quanta.max(1) as f64;
        }
        threads.sort_by(|a, b| b.cpu_s.total_cmp(&a.cpu_s).then(a.tid.cmp(&b.tid)));
        let about = recording.info();
        ReplayDocument {
            command: about.command.clone(),
            recorded_policy: about.policy.clone(),
            policy: policy.to_owned(),
            quanta: self.quanta,
            duration_s: self.end_ns as f64 / 1e9,
            changes: threads.iter().map(|row| row.changes).sum(),
            agreement: (self.all > 0).then(|| self.same as f64 / self.all as f64),
            threads,
        }
    }
}

const COLUMNS: &[OutputColumn<ReplayThreadRow>] = &[
    number("thread", |r| r.tid.to_string()),
    text("name", |r| r.name.clone()),
    number("CPU (s)", |r| format!("{:.2}", r.cpu_s)),
    number("quanta", |r| r.quanta.to_string()),
    number("unchanged %", |r| format!("{:.0}", 100.0 * r.agreement)),
    number("changes", |r| r.changes.to_string()),
    text("would be on", |r| r.placed.clone()),
    text("was on", |r| r.recorded.clone()),
    text("why", |r| r.chosen.clone()),
];

fn sentence(replayed: &ReplayDocument) -> String {
    let agreement = replayed
        .agreement
        .map_or("nothing was placed".to_owned(), |share| {
            format!("{:.0} % of placements are as they were", 100.0 * share)
        });
    format!(
        "{} on a recording of {} over {:.1} s ({} quanta): {}; {agreement}",
        replayed.policy,
        replayed.recorded_policy,
        replayed.duration_s,
        replayed.quanta,
        count(replayed.changes as usize, "change")
    )
}

/// A row per thread, with its class and its recorded and replayed places in each quantum.
struct ReplayTimeline {
    trace: TraceWriter<Vec<u8>>,
    named: BTreeSet<ThreadId>,
}

impl ReplayTimeline {
    fn new() -> io::Result<Self> {
        Ok(Self {
            trace: TraceWriter::new(Vec::new())?,
            named: BTreeSet::new(),
        })
    }

    /// Adds a quantum: the threads that ran.
    fn add(&mut self, turn: &ControlTurn, recorded: &Plan) -> io::Result<()> {
        let observation = &turn.observation;
        let from_ns = observation.time_ns.saturating_sub(observation.interval_ns);
        let span_s = [from_ns, observation.time_ns].map(|ns| ns as f64 / 1e9);
        for thread in &observation.threads {
            let share = observation.cpu_share(thread);
            if share <= 0.0 {
                continue;
            }
            let on = TraceTrack {
                process: thread.id.pid,
                track: thread.id.tid,
            };
            if self.named.insert(thread.id) {
                self.trace.name_track(on, &thread.name)?;
            }
            let placed = |plan: &Plan| plan.placements.get(&thread.id).map(ToString::to_string);
            let args = json!({
                "share of a CPU": share,
                "last CPU": thread.last_pu.map(|pu| pu.0),
                "was placed": placed(recorded),
                "would be placed": placed(&turn.plan),
            });
            let class = observation.class_of(thread).to_string();
            self.trace.add_slice(on, &class, span_s, args)?;
        }
        Ok(())
    }

    fn into_text(self) -> io::Result<String> {
        String::from_utf8(self.trace.finish()?).map_err(io::Error::other)
    }
}
