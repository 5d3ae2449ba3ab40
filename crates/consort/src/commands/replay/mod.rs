//! `consort replay`: what a policy would have planned for what was recorded.

mod timeline;

use crate::cli::{OutputFormat, ReplayArgs};
use crate::failure::bad_input;
use crate::output::{self, OutputColumn, number, text};
use crate::report::ReportFile;
use crate::table_file::TableOutput;
use anyhow::Result;
use consort_core::policy::{Policy, PolicySpec};
use consort_core::{
    Backoff, ControlLoop, ControlTurn, EnactmentReport, Machine, Observation, Placement, Plan,
    SignalOffers, ThreadId, Topology, escape_invisible, policies,
};
use consort_data::long::{LongRows, RowOwner};
use consort_data::recording::{Quanta, RecordedQuantum, Recording, RecordingError};
use consort_data::{List, Table, figures_page};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use timeline::ReplayTimeline;

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
    /// Share of threads and quanta that it would have placed as they were, 0 to 1; none where no
    /// thread was managed.
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
            let of = RowOwner {
                program: Some(&name),
                ..whole
            };
            rows.push(of, "cpu_s", thread.cpu_s, Some("s"));
            rows.push(of, "quanta", thread.quanta as f64, None);
            rows.push(of, "agreement", thread.agreement, None);
            rows.push(of, "changes", thread.changes as f64, None);
        }
        rows.table()
    }
}

/// One thread.
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
    /// Rule by which the policy placed it last; empty where it gave none.
    chosen: String,
}

/// A recording as a machine: what it shows does not depend on what is planned.
struct RecordingPlayback {
    topology: Topology,
    offers: SignalOffers,
    quanta: Quanta,
    /// The plan that was made of what is shown now.
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
    let page_file = args.report_html.as_deref().map(ReportFile::create);
    let page_file = page_file.transpose()?;
    let timeline_file = args.timeline.as_deref().map(ReportFile::create);
    let timeline_file = timeline_file.transpose()?;
    let file = TableOutput::begin(args.numbers.out.as_deref())?;
    let recording = Recording::open(&args.file).map_err(bad_input)?;
    let about = recording.info();
    let playback = RecordingPlayback {
        topology: about.topology.clone(),
        offers: about.all_offers(),
        quanta: recording.quanta(),
        plan: Plan::default(),
    };
    let name = args.policy.as_deref().unwrap_or(&about.policy);
    let policy = policy(name, &playback)?;
    let mut wheel = ControlLoop::new(playback, policy, Backoff::off(), args.seed);
    let mut sums = ReplaySums::default();
    let mut timeline = timeline_file.map(|file| (file, ReplayTimeline::default()));
    while let Some(turn) = wheel.run_turn().map_err(bad_input)? {
        sums.add(&turn, &wheel.machine().plan);
        if let Some((_, timeline)) = &mut timeline {
            timeline.add(&turn, &wheel.machine().plan);
        }
    }
    let replayed = sums.into_document(&recording, name);
    if let Some((file, timeline)) = timeline {
        file.write_text(timeline.into_text().as_bytes())?;
    }
    if let Some(file) = page_file {
        file.write_text(html(&replayed)?.as_bytes())?;
    }
    file.write(|| replayed.table(args.seed))?;
    show(args.format, &replayed)
}

fn policy(text: &str, machine: &RecordingPlayback) -> Result<Box<dyn Policy>> {
    let mut spec: PolicySpec = text.parse().map_err(bad_input)?;
    spec.attach(consort_describe::input::read_if_file)
        .map_err(bad_input)?;
    policies::open(&machine.topology, &machine.offers, &spec).map_err(bad_input)
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
    number("as it was %", |r| format!("{:.0}", 100.0 * r.agreement)),
    number("changes", |r| r.changes.to_string()),
    text("would be on", |r| r.placed.clone()),
    text("was on", |r| r.recorded.clone()),
    text("why", |r| r.chosen.clone()),
];

fn show(format: OutputFormat, replayed: &ReplayDocument) -> Result<ExitCode> {
    let mut out = output::stdout();
    output::print(&mut out, format, COLUMNS, &replayed.threads, replayed)?;
    if format == OutputFormat::Table {
        output::print_text(&mut out, &format!("\n{}\n", sentence(replayed)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn html(replayed: &ReplayDocument) -> Result<String> {
    let threads = List::new(COLUMNS, &replayed.threads);
    let threads = threads.to_report_table("threads", "Threads, by CPU time")?;
    let title = format!("{} on a recording of {}", replayed.policy, replayed.command);
    Ok(figures_page(
        &title,
        &[sentence(replayed)],
        &[threads],
        &[],
    )?)
}

/// The replay in a sentence.
fn sentence(replayed: &ReplayDocument) -> String {
    let agreement = replayed
        .agreement
        .map_or("nothing was placed".to_owned(), |share| {
            format!("{:.0} % of placements are as they were", 100.0 * share)
        });
    format!(
        "{} on what {} decided for {:.1} s ({} quanta): {} changes; {agreement}",
        replayed.policy,
        replayed.recorded_policy,
        replayed.duration_s,
        replayed.quanta,
        replayed.changes
    )
}
