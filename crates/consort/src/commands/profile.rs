//! `consort profile`: a real program as a program file, and as a trace.

mod figures;
mod page;
mod threads;
mod watch;

use crate::cli::{self, OutputFormat, ProfileArgs, SamplingChoice};
use crate::failure::{bad_input, warn};
use crate::out_file::OutFile;
use crate::output;
use crate::progress;
use crate::table_file::TableOutput;
use anyhow::{Context, Result, anyhow};
use consort_ops::trace::TraceInfo;
use consort_profile::recorder::{
    self, EndReason, OutputDestination, ProgramRecordError, RecordedPart, RecordingOutcome,
};
use consort_profile::{
    ProgramFileHeader, ProgramProfile, ProgramProfiler, ThreadRelations, ThreadRole,
};
use figures::{COLUMNS, ProfileFigure, figures};
use serde::Serialize;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitCode;
use watch::ProgressSink;

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
    let file = out_file("profile", cli::own_output(&args.out), args.force)?;
    let table = TableOutput::begin_from_out(&args.out)?;
    let page = out_file("page", args.report_html.as_deref(), args.force)?;
    check_trace_path(args)?;
    let extent = extent(args);
    let mut profiler = ProgramProfiler::new(extent, args.trace.is_some());
    let ended = record_program(args, extent, &mut profiler)?;
    check_end(&ended)?;
    let profile = profiler.finish_profile();
    if profile.figures.mix.instructions == 0 {
        return Err(too_short(&ended));
    }
    let name = name(args);
    if let Some(file) = file {
        file.write(&program_file(&profile, args, &name, ended.executed)?)?;
    }
    table.write(|| figures::table(&name, &figures(&profile, ended.executed)))?;
    if let Some(page) = page {
        page.write(&html(&profile, args, &name, &ended)?)?;
    }
    if let Some(path) = &args.trace {
        save_trace(profiler, args, &name, ended.executed, path)?;
    }
    print(args, &name, &profile, &ended)?;
    Ok(ExitCode::SUCCESS)
}

fn out_file(what: &'static str, path: Option<&Path>, force: bool) -> Result<Option<OutFile>> {
    path.map(|path| OutFile::create(what, path, force))
        .transpose()
}

fn record_program(
    args: &ProfileArgs,
    extent: RecordedPart,
    profiler: &mut ProgramProfiler,
) -> Result<RecordingOutcome> {
    let output = program_output(args);
    let bar = progress::start_instruction_meter(extent.limit, output == OutputDestination::Aside);
    let mut sink = ProgressSink {
        profiler,
        bar: &bar,
        received: 0,
    };
    let ended = recorder::record(&args.command, extent, output, &mut sink);
    bar.finish();
    ended.map_err(refusal)
}

fn html(
    profile: &ProgramProfile,
    args: &ProfileArgs,
    name: &str,
    ended: &RecordingOutcome,
) -> Result<String> {
    let mut facts = vec![
        format!("Command: {}", command(args)),
        summary(profile, ended),
    ];
    facts.extend(notes(profile, ended));
    page::page(
        &format!("Profile of {name}"),
        &facts,
        profile,
        ended.executed,
    )
}

fn command(args: &ProfileArgs) -> String {
    let parts = args.command.iter().map(|part| part.to_string_lossy());
    parts.collect::<Vec<_>>().join(" ")
}

fn summary(profile: &ProgramProfile, ended: &RecordingOutcome) -> String {
    format!(
        "{} of {} instructions in {} window(s), {} phase(s), {:.1} system calls per 10^6 instructions; {METHOD}",
        profile.figures.mix.instructions,
        ended.executed,
        profile.windows,
        profile.phases.len(),
        profile.system_calls_per_million(ended.executed)
    )
}

fn extent(args: &ProfileArgs) -> RecordedPart {
    let usual = match args.instructions {
        Some(_) => SamplingChoice::None,
        None => SamplingChoice::USUAL,
    };
    RecordedPart {
        skip: args.skip,
        limit: args.instructions,
        sampling: args.sampling.unwrap_or(usual).windows(),
    }
}

fn program_output(args: &ProfileArgs) -> OutputDestination {
    match args.format {
        OutputFormat::Table => OutputDestination::Same,
        OutputFormat::Json | OutputFormat::Csv => OutputDestination::Aside,
    }
}

fn check_trace_path(args: &ProfileArgs) -> Result<()> {
    if let Some(path) = &args.trace {
        OutFile::create("trace", path, args.force).map(drop)?;
    }
    Ok(())
}

/// Marks what the user has to put right as bad input; the rest is a failed run.
fn refusal(error: ProgramRecordError) -> anyhow::Error {
    match error {
        ProgramRecordError::NoCommand
        | ProgramRecordError::NotFound { .. }
        | ProgramRecordError::Unreadable { .. }
        | ProgramRecordError::Foreign { .. } => bad_input(error),
        other => other.into(),
    }
}

/// Refuses a program that fails: it did not do what it is to be profiled at. One that was ended on
/// purpose, by the limit or from the terminal, did.
fn check_end(ended: &RecordingOutcome) -> Result<()> {
    let interrupted = ended.status.signal() == Some(nix::libc::SIGINT);
    if ended.reason == EndReason::Limit || ended.reason == EndReason::Replaced || interrupted {
        return Ok(());
    }
    match (ended.status.code(), ended.status.signal()) {
        (Some(0), _) => Ok(()),
        (Some(code), _) => Err(anyhow!(
            "the program failed with exit code {code}; nothing was written"
        )),
        (None, Some(signal)) => Err(anyhow!(
            "the program was ended by signal {signal}; nothing was written"
        )),
        (None, None) => Err(anyhow!("the program did not end; nothing was written")),
    }
}

fn too_short(ended: &RecordingOutcome) -> anyhow::Error {
    let hint = match ended.reason {
        EndReason::Replaced => "it replaced itself by another program: profile that one",
        _ => "use --sampling none, or a smaller --skip",
    };
    anyhow!(
        "the program ended after {} instructions, before a window was recorded; {hint}",
        ended.executed
    )
}

/// Returns the file's name if there is one, so that the program is found by it; else the program's.
fn name(args: &ProfileArgs) -> String {
    let stem = match cli::own_output(&args.out) {
        Some(file) => file.file_stem(),
        None => args
            .command
            .first()
            .map(Path::new)
            .and_then(Path::file_name),
    };
    consort_profile::sanitize_name(&stem.unwrap_or_default().to_string_lossy())
}

fn program_file(
    profile: &ProgramProfile,
    args: &ProfileArgs,
    name: &str,
    executed: u64,
) -> Result<String> {
    let reported = ProgramFileHeader {
        name,
        command: &command(args),
        executed,
        sampling: extent(args).sampling,
    };
    let text = profile.to_program_file(&reported);
    consort_sim::program::parse(name, &text).context("the profile is no valid program file")?;
    Ok(text)
}

fn save_trace(
    profiler: ProgramProfiler,
    args: &ProfileArgs,
    name: &str,
    executed: u64,
    path: &Path,
) -> Result<()> {
    let extent = extent(args);
    let about = TraceInfo {
        program: name.to_owned(),
        executed,
        skipped: extent.skip,
        sampling: extent.sampling,
    };
    if let Some(trace) = profiler.into_trace(about) {
        trace.save(path)?;
    }
    Ok(())
}

/// Describes the threads and their roles, and tells what is not seen of locks.
fn thread_notes(threads: &ThreadRelations) -> Vec<String> {
    let mut notes = vec![format!(
        "{} threads, at most {} at a time share the work, in {} role(s)",
        threads.count,
        threads.at_once,
        threads.working_roles().count()
    )];
    notes.extend(threads.roles.iter().map(ThreadRole::summary_line));
    if threads.locks.is_some() {
        let seen = "only locks that are taken by compare-and-exchange are seen: a lower bound";
        notes.push(seen.to_owned());
    }
    notes
}

fn notes(profile: &ProgramProfile, ended: &RecordingOutcome) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(threads) = &profile.threads {
        notes.extend(thread_notes(threads));
    }
    match ended.reason {
        EndReason::Replaced => {
            notes.push("the program replaced itself by another, which is not profiled".to_owned());
        }
        EndReason::Cut => notes.push("the program was cut short; this is what was seen".to_owned()),
        EndReason::Exited | EndReason::Limit => {}
    }
    if ended.reason == EndReason::Limit {
        notes.push("the program was ended at the limit; its length is unknown".to_owned());
    }
    notes
}

fn print(
    args: &ProfileArgs,
    name: &str,
    profile: &ProgramProfile,
    ended: &RecordingOutcome,
) -> Result<()> {
    let figures = figures(profile, ended.executed);
    let notes = notes(profile, ended);
    match args.format {
        OutputFormat::Json => output::write_json(
            &mut output::stdout(),
            &ProfileDocument {
                program: name,
                executed: ended.executed,
                profiled: profile.figures.mix.instructions,
                windows: profile.windows,
                phases: profile.phases.len(),
                method: METHOD,
                figures: &figures,
                notes: &notes,
            },
        ),
        OutputFormat::Csv => {
            for note in &notes {
                warn(&anyhow!("{note}"));
            }
            output::write_csv(&mut output::stdout(), COLUMNS, &figures)
        }
        OutputFormat::Table => Ok(output::print_text_to_stderr(&table(
            name, profile, ended, &figures, &notes,
        ))?),
    }
}

fn table(
    name: &str,
    profile: &ProgramProfile,
    ended: &RecordingOutcome,
    figures: &[ProfileFigure],
    notes: &[String],
) -> String {
    let mut text = output::table(COLUMNS, figures);
    text += &format!("{name}: {}.\n", summary(profile, ended));
    for note in notes {
        text += &format!("Note: {note}.\n");
    }
    text
}
