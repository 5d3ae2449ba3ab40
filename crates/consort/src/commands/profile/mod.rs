//! `consort profile`: a real program as a program file, and as a trace.

mod figures;
mod page;

use crate::failure::{bad_input, warn};
use crate::options::{NUMBERS, TABLE, count_parser};
use crate::output::file::{OutFile, TableOutput, own_output, page_output};
use crate::output::{self, OutputFormat, count};
use crate::progress::{self, ProgressMeter};
use crate::values;
use anyhow::{Context, Result, anyhow};
use clap::Args;
use consort_data::List;
use consort_ops::Op;
use consort_ops::trace::{TraceInfo, TraceSampling};
use consort_profile::recorder::{
    self, AtomicUpdate, BlockExecution, EndReason, ExecutionSink, OutputDestination, ProgramEvent,
    ProgramRecordError, RecordedPart, RecordingOutcome, RecordingStage, SystemCall, WindowChoice,
};
use consort_profile::{ProgramFileHeader, ProgramProfile, ProgramProfiler, ThreadRole};
use figures::{COLUMNS, ProfileFigure, figures};
use nix::sys::signal::Signal;
use serde::Serialize;
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

#[derive(Debug, Args)]
pub(crate) struct ProfileArgs {
    #[arg(short, long, value_name = "PATH", help = format!("Write the program file to PATH.toml, a page for browsers to PATH.html, or every number to {TABLE}, {NUMBERS}; repeat it for several"))]
    pub(crate) out: Vec<PathBuf>,
    /// Write a trace of the recorded instructions to FILE
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// Write the page to FILE
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) report_html: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Instructions to skip before recording, for example 500M
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(0..=MOST_INSTRUCTIONS), default_value = "0")]
    pub(crate) skip: u64,
    /// End the program after recording this many instructions
    #[arg(long, value_name = "N", value_parser = count_parser::<u64>(0..=MOST_INSTRUCTIONS))]
    pub(crate) instructions: Option<u64>,
    /// Sampling of instructions: `none` records all; if not given, none with --instructions, else
    /// windows of 500k whose distance grows with the program's length
    #[arg(long, value_name = "every=N,window=N,warm=N", value_parser = parse_sampling)]
    pub(crate) sampling: Option<SamplingChoice>,
    /// Keep what was measured of a program that fails: whatever its exit status, or killed by a signal
    #[arg(long)]
    pub(crate) any_status: bool,
    /// Output format; with json and csv the output of CMD goes to stderr
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

/// Sampling as the command line has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SamplingChoice {
    /// Everything is recorded.
    None,
    /// Only windows are recorded.
    Windows(TraceSampling),
}

impl SamplingChoice {
    pub(crate) const fn windows(self) -> WindowChoice {
        match self {
            Self::None => WindowChoice::All,
            Self::Windows(sampling) => WindowChoice::Fixed(sampling),
        }
    }
}

/// Sampling of a trace without `--sampling` and `--instructions`: its windows cannot be dropped
/// later, so their distance does not grow.
const TRACE_WINDOWS: TraceSampling = TraceSampling {
    every: 50_000_000,
    window: 500_000,
    warm: 500_000,
};

/// Instructions of one run: far more than any emulator executes.
const MOST_INSTRUCTIONS: u64 = 1 << 56;

fn parse_sampling(text: &str) -> Result<SamplingChoice, String> {
    if text == "none" {
        return Ok(SamplingChoice::None);
    }
    let mut sampling = TraceSampling {
        every: 0,
        window: 0,
        warm: 0,
    };
    for part in text.split(',') {
        let (key, number) = part.split_once('=').unwrap_or((part, ""));
        let place = match key {
            "every" => &mut sampling.every,
            "window" => &mut sampling.window,
            "warm" => &mut sampling.warm,
            _ => {
                return Err(format!(
                    "unknown key '{key}'; expected every, window and warm, or `none`"
                ));
            }
        };
        *place = count_parser::<u64>(0..=MOST_INSTRUCTIONS)(number)?;
    }
    let recorded = sampling.window.saturating_add(sampling.warm);
    if sampling.window == 0 || recorded > sampling.every {
        return Err(
            "expected window above 0, and every at least window and warm together".to_owned(),
        );
    }
    Ok(SamplingChoice::Windows(sampling))
}

/// The JSON document.
#[derive(Serialize)]
struct ProfileDocument<'a> {
    program: &'a str,
    executed: u64,
    profiled: u64,
    windows: u64,
    phases: usize,
    method: &'static str,
    figures: &'a [ProfileFigure],
    notes: &'a [String],
}

const METHOD: &str = "user mode under qemu, all threads; LRU stack distances, TAGE, data-flow \
                      graph in windows, a model stream prefetcher";

pub(crate) fn execute(args: &ProfileArgs) -> Result<ExitCode> {
    // Before anything is run, so that a bad path wastes no time.
    let open = |what, path: Option<&Path>| {
        let file = path.map(|path| OutFile::create(what, path, args.force));
        file.transpose()
    };
    let file = open("profile", own_output(&args.out))?;
    let table = TableOutput::begin_from_out(&args.out, 1)?;
    let page = open(
        "page",
        page_output(&args.out).or(args.report_html.as_deref()),
    )?;
    // The trace is written by its own writer, so this is a check alone.
    open("trace", args.trace.as_deref())?;
    let extent = extent(args);
    let mut profiler = ProgramProfiler::new(extent, args.trace.is_some());
    let ended = record_program(args, extent, &mut profiler)?;
    if !args.any_status {
        check_end(&ended)?;
    }
    let profile = profiler.finish_profile();
    if profile.figures.mix.instructions == 0 {
        let hint = match ended.reason {
            EndReason::Replaced => "it replaced itself by another program: profile that one",
            _ => "use --sampling none, or a smaller --skip",
        };
        return Err(anyhow!(
            "the program ended after {} instructions, before a window was recorded; {hint}",
            ended.executed
        ));
    }
    let name = name(args);
    if let Some(file) = file {
        let failure = failure(&ended);
        let header = ProgramFileHeader {
            name: &name,
            command: &command(args),
            executed: ended.executed,
            end: failure.as_deref(),
        };
        let text = profile.to_program_file(&header);
        consort_sim::program::parse(&name, &text)
            .context("the profile is no valid program file")?;
        file.write(&text)?;
    }
    let figures = figures(&profile, ended.executed);
    table.write(|| figures::table(&name, &figures))?;
    let notes = notes(&profile, &ended);
    if let Some(page) = page {
        let mut facts = vec![
            format!("Command: {}", command(args)),
            summary(&profile, &ended),
        ];
        facts.extend(notes.iter().cloned());
        let title = format!("Profile of {name}");
        page.write(&page::page(&title, &facts, &profile, ended.executed)?)?;
    }
    if let Some(path) = &args.trace {
        let about = TraceInfo {
            program: name.clone(),
            executed: ended.executed,
            skipped: extent.skip,
            sampling: profile.sampling,
        };
        if let Some(trace) = profiler.into_trace(about) {
            trace.save(path)?;
        }
    }
    match args.format {
        OutputFormat::Json => output::print_json(&ProfileDocument {
            program: &name,
            executed: ended.executed,
            profiled: profile.figures.mix.instructions,
            windows: profile.windows,
            phases: profile.phases.len(),
            method: METHOD,
            figures: &figures,
            notes: &notes,
        })?,
        OutputFormat::Csv => {
            for note in &notes {
                warn(&anyhow!("{note}"));
            }
            List::new(COLUMNS, &figures).write_csv(&mut output::stdout())?;
        }
        OutputFormat::Table => {
            let mut text = output::table(COLUMNS, &figures);
            text += &format!("{name}: {}.\n", summary(&profile, &ended));
            for note in &notes {
                text += &format!("Note: {note}.\n");
            }
            output::print_text_to_stderr(&text)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn record_program(
    args: &ProfileArgs,
    extent: RecordedPart,
    profiler: &mut ProgramProfiler,
) -> Result<RecordingOutcome> {
    let destination = match args.format {
        OutputFormat::Table => OutputDestination::Same,
        OutputFormat::Json | OutputFormat::Csv => OutputDestination::Aside,
    };
    let is_aside = destination == OutputDestination::Aside;
    let bar = progress::start_instruction_meter(extent.limit, is_aside);
    let mut sink = ProgressSink {
        profiler,
        bar: &bar,
        received: 0,
    };
    let ended = recorder::record(&args.command, extent, destination, &mut sink);
    bar.finish();
    // The user can put right the first four; others are failed runs.
    ended.map_err(|error| match error {
        ProgramRecordError::NoCommand
        | ProgramRecordError::NotFound { .. }
        | ProgramRecordError::Unreadable { .. }
        | ProgramRecordError::Foreign { .. } => bad_input(error),
        other => other.into(),
    })
}

fn command(args: &ProfileArgs) -> String {
    let parts = args.command.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join(" ")
}

fn summary(profile: &ProgramProfile, ended: &RecordingOutcome) -> String {
    format!(
        "{} of {} instructions in {}, {}, {:.1} system calls per 10^6 instructions; {METHOD}",
        profile.figures.mix.instructions,
        ended.executed,
        count(profile.windows as usize, "window"),
        count(profile.phases.len(), "phase"),
        profile.system_calls_per_million(ended.executed)
    )
}

fn extent(args: &ProfileArgs) -> RecordedPart {
    let windows = match (args.sampling, args.instructions, &args.trace) {
        (Some(chosen), _, _) => chosen.windows(),
        (None, Some(_), _) => WindowChoice::All,
        (None, None, Some(_)) => WindowChoice::Fixed(TRACE_WINDOWS),
        (None, None, None) => WindowChoice::Growing,
    };
    RecordedPart {
        skip: args.skip,
        limit: args.instructions,
        windows,
    }
}

/// Refuses a program that failed, because it may not have done the work that is to be profiled.
fn check_end(ended: &RecordingOutcome) -> Result<()> {
    match failure(ended) {
        None => Ok(()),
        Some(failure) => Err(anyhow!(
            "{failure}, so nothing was written; use --any-status to keep what was measured, or \
             --instructions N to end the program before that"
        )),
    }
}

/// Failure of a program, in words; `None` if it succeeded, or was ended on purpose, by the limit or
/// from the terminal.
fn failure(ended: &RecordingOutcome) -> Option<String> {
    let interrupted = ended.status.signal() == Some(nix::libc::SIGINT);
    if ended.reason == EndReason::Limit || ended.reason == EndReason::Replaced || interrupted {
        return None;
    }
    match (ended.status.code(), ended.status.signal()) {
        (Some(0), _) => None,
        (Some(code), _) => Some(format!("the program ended with status {code}")),
        (None, Some(signal)) => {
            let name = Signal::try_from(signal).map_or("unnamed", Signal::as_str);
            Some(format!("the program was ended by signal {signal} ({name})"))
        }
        (None, None) => Some("the program did not end".to_owned()),
    }
}

/// Returns the file's name if there is one, so that the program is found by it; else the program's.
fn name(args: &ProfileArgs) -> String {
    let stem = match own_output(&args.out) {
        Some(file) => file.file_stem(),
        None => args
            .command
            .first()
            .map(Path::new)
            .and_then(Path::file_name),
    };
    consort_profile::sanitize_name(&stem.unwrap_or_default().to_string_lossy())
}

fn notes(profile: &ProgramProfile, ended: &RecordingOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(threads) = &profile.threads {
        notes.push(format!(
            "{}, at most {} at a time share the work, in {}",
            count(threads.count, "thread"),
            threads.at_once,
            count(threads.working_roles().count(), "role")
        ));
        notes.extend(threads.roles.iter().map(ThreadRole::summary_line));
        if threads.locks.is_some() {
            let seen = "only locks that are taken by compare-and-exchange are seen: a lower bound";
            notes.push(seen.to_owned());
        }
    }
    notes.extend(failure(ended));
    if profile.sampling.is_some() && profile.windows == 1 {
        let half = (ended.executed / 20_000).max(1);
        notes.push(format!(
            "1 window: {} instructions stand for all {}; use a smaller distance, as with \
             --sampling every={}k,window={half}k,warm={half}k, or run the program longer",
            profile.figures.mix.instructions,
            ended.executed,
            2 * half
        ));
    }
    let end = match ended.reason {
        EndReason::Replaced => "the program replaced itself by another, which is not profiled",
        EndReason::Cut => "the program was cut short; this is the part that was recorded",
        EndReason::Limit => "the program was ended at the limit; its length is unknown",
        EndReason::Exited => return notes,
    };
    notes.push(end.to_owned());
    notes
}

/// Instructions between two updates of the bar.
const STEP: u64 = 1 << 18;

/// Passes everything on to the profiler, and the number of instructions to the bar.
struct ProgressSink<'a> {
    profiler: &'a mut ProgramProfiler,
    bar: &'a ProgressMeter,
    received: u64,
}

impl ProgressSink<'_> {
    fn count_instructions(&mut self, more: u64) {
        let before = self.received / STEP;
        self.received += more;
        if self.received / STEP != before {
            self.bar.set_position(self.received);
        }
    }
}

impl ExecutionSink for ProgressSink<'_> {
    fn record_op(&mut self, thread: usize, op: &Op) {
        if op.first {
            self.count_instructions(1);
        }
        self.profiler.record_op(thread, op);
    }

    fn record_block(&mut self, thread: usize, run: &BlockExecution) -> bool {
        let is_taken = self.profiler.record_block(thread, run);
        if is_taken {
            self.count_instructions(run.mix.instructions);
        }
        is_taken
    }

    fn enter_stage(&mut self, thread: usize, stage: RecordingStage, executed: u64) {
        self.profiler.enter_stage(thread, stage, executed);
    }

    fn record_system_call(&mut self, thread: usize, call: &SystemCall) {
        self.profiler.record_system_call(thread, call);
    }

    fn record_thread_count(&mut self, thread: usize, threads: u64) {
        self.profiler.record_thread_count(thread, threads);
    }

    fn record_atomic(&mut self, thread: usize, atomic: AtomicUpdate) {
        self.profiler.record_atomic(thread, atomic);
    }

    fn record_event(&mut self, event: &ProgramEvent) {
        self.profiler.record_event(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_fit_into_their_distance() {
        let parsed = parse_sampling("every=10M,window=1M,warm=500k").unwrap();
        assert!(matches!(parsed, SamplingChoice::Windows(sampling) if sampling.warm == 500_000));
        assert_eq!(parse_sampling("none"), Ok(SamplingChoice::None));
        assert!(parse_sampling("every=1M,window=1M,warm=1").is_err());
        assert!(
            parse_sampling("each=1M")
                .unwrap_err()
                .contains("unknown key 'each'")
        );
    }
}
