//! `consort profile`: a real program as a program file, and as a trace.

use crate::cli::{Format, ProfileArgs, SamplingChoice};
use crate::failure::{bad_input, warn};
use crate::out_file::OutFile;
use crate::output::{self, Column, number, text};
use anyhow::{Context, Result, anyhow};
use consort_ops::trace::About;
use consort_profile::measure::{CAPACITIES, PREDICTOR_KIB, WINDOWS};
use consort_profile::recorder::{self, EndReason, Ended, Extent, Output, RecordError};
use consort_profile::{Profile, Profiler, Told};
use serde::Serialize;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitCode;

/// One measured figure.
#[derive(Serialize)]
struct Figure {
    name: String,
    value: f64,
    unit: &'static str,
}

const COLUMNS: &[Column<Figure>] = &[
    text("figure", |f| f.name.clone()),
    number("value", |f| format!("{:.3}", f.value)),
    text("unit", |f| f.unit.to_owned()),
];

/// The JSON document.
#[derive(Serialize)]
struct Document<'a> {
    program: &'a str,
    executed: u64,
    profiled: u64,
    windows: u64,
    method: &'static str,
    figures: &'a [Figure],
    notes: &'a [String],
}

const METHOD: &str = "user mode under qemu, first thread; LRU stack distances, TAGE, data-flow \
                      graph in windows, a model stream prefetcher";

pub(crate) fn execute(args: &ProfileArgs) -> Result<ExitCode> {
    // Before anything is run, so that a bad path wastes no time.
    let file = args
        .out
        .as_deref()
        .map(|path| OutFile::create("profile", path, args.force));
    let file = file.transpose()?;
    check_trace_path(args)?;
    let extent = extent(args);
    let mut profiler = Profiler::new(extent, args.trace.is_some());
    let ended = recorder::record(&args.command, extent, output_of(args), &mut profiler);
    let ended = ended.map_err(refusal)?;
    check_end(&ended)?;
    let profile = profiler.profile();
    if profile.mix.instructions == 0 {
        return Err(too_short(&ended));
    }
    let name = name(args);
    if let Some(file) = file {
        file.write(&program_file(&profile, args, &name, ended.executed)?)?;
    }
    if let Some(path) = &args.trace {
        save_trace(profiler, args, &name, ended.executed, path)?;
    }
    print(args, &name, &profile, &ended)?;
    Ok(ExitCode::SUCCESS)
}

fn extent(args: &ProfileArgs) -> Extent {
    let usual = match args.instructions {
        Some(_) => SamplingChoice::None,
        None => SamplingChoice::USUAL,
    };
    Extent {
        skip: args.skip,
        limit: args.instructions,
        sampling: args.sampling.unwrap_or(usual).windows(),
    }
}

fn output_of(args: &ProfileArgs) -> Output {
    match args.format {
        Format::Table => Output::Same,
        Format::Json | Format::Csv => Output::Aside,
    }
}

fn check_trace_path(args: &ProfileArgs) -> Result<()> {
    if let Some(path) = &args.trace {
        OutFile::create("trace", path, args.force).map(drop)?;
    }
    Ok(())
}

/// What the user has to put right is bad input; the rest is a failed run.
fn refusal(error: RecordError) -> anyhow::Error {
    match error {
        RecordError::NoCommand
        | RecordError::NotFound { .. }
        | RecordError::Unreadable { .. }
        | RecordError::Foreign { .. } => bad_input(error),
        other => other.into(),
    }
}

/// A program that fails did not do what it is to be profiled at. One that was ended on purpose,
/// by the limit or from the terminal, did.
fn check_end(ended: &Ended) -> Result<()> {
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

fn too_short(ended: &Ended) -> anyhow::Error {
    let hint = match ended.reason {
        EndReason::Replaced => "it replaced itself by another program: profile that one",
        _ => "use --sampling none, or a smaller --skip",
    };
    anyhow!(
        "the program ended after {} instructions, before a window was recorded; {hint}",
        ended.executed
    )
}

/// The file's name if there is one, so that the program is found by it; else the program's.
fn name(args: &ProfileArgs) -> String {
    let given = args
        .out
        .as_deref()
        .or_else(|| args.command.first().map(Path::new));
    let stem = match &args.out {
        Some(_) => given.and_then(Path::file_stem),
        None => given.and_then(Path::file_name),
    };
    consort_profile::plain(&stem.unwrap_or_default().to_string_lossy())
}

fn program_file(
    profile: &Profile,
    args: &ProfileArgs,
    name: &str,
    executed: u64,
) -> Result<String> {
    let command: Vec<_> = args
        .command
        .iter()
        .map(|part| part.to_string_lossy())
        .collect();
    let told = Told {
        name,
        command: &command.join(" "),
        executed,
        sampling: extent(args).sampling,
    };
    let text = profile.to_program_file(&told);
    consort_sim::program::parse(name, &text).context("the profile is no valid program file")?;
    Ok(text)
}

fn save_trace(
    profiler: Profiler,
    args: &ProfileArgs,
    name: &str,
    executed: u64,
    path: &Path,
) -> Result<()> {
    let extent = extent(args);
    let about = About {
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

fn notes(profile: &Profile, ended: &Ended) -> Vec<String> {
    let mut notes = Vec::new();
    if profile.others > 0 {
        notes.push(format!(
            "only the first thread is profiled; others executed {} instructions of what was recorded",
            profile.others
        ));
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

fn figures(profile: &Profile) -> Vec<Figure> {
    let shares = profile.shares();
    let figure = |name: String, value: f64, unit| Figure { name, value, unit };
    let mut figures: Vec<_> = [
        ("fp", shares.fp),
        ("vector", shares.vector),
        ("int", shares.int),
        ("load", shares.load),
        ("store", shares.store),
        ("branch", shares.branch),
        (
            "loads and stores of vectors",
            profile.mix.vector_access_share(),
        ),
    ]
    .map(|(name, share)| figure(name.to_owned(), share, "share"))
    .into();
    for (window, (ilp, mlp)) in WINDOWS.iter().zip(profile.ilp.iter().zip(&profile.mlp)) {
        figures.push(figure(
            format!("ILP in {window}"),
            *ilp,
            "instructions/cycle",
        ));
        figures.push(figure(
            format!("overlap of misses in {window}"),
            *mlp,
            "misses",
        ));
    }
    let curves = profile
        .memory
        .data
        .misses
        .iter()
        .zip(&profile.memory.code.misses);
    for (size, (data, code)) in CAPACITIES.iter().zip(curves) {
        let kib = size >> 10;
        figures.push(figure(
            format!("data misses, {kib} KiB"),
            profile.per_kilo(*data),
            "per 1000",
        ));
        figures.push(figure(
            format!("code misses, {kib} KiB"),
            profile.per_kilo(*code),
            "per 1000",
        ));
    }
    for (kib, missed) in PREDICTOR_KIB.iter().zip(profile.branch_mpki()) {
        figures.push(figure(
            format!("mispredictions, {kib} KiB"),
            missed,
            "per 1000",
        ));
    }
    let memory = &profile.memory;
    figures.extend([
        figure(
            "first uses of lines".to_owned(),
            profile.per_kilo(memory.data.first_uses),
            "per 1000",
        ),
        figure(
            "prefetching removes".to_owned(),
            memory.prefetch_effectiveness,
            "share",
        ),
        figure(
            "prefetched in vain".to_owned(),
            memory.prefetch_excess,
            "per miss",
        ),
        figure("written back".to_owned(), memory.writeback_share, "share"),
        figure(
            "misses on new pages".to_owned(),
            memory.page_spread,
            "share",
        ),
        figure(
            "value to first use".to_owned(),
            profile.use_distance,
            "instructions",
        ),
        figure(
            "load to first use".to_owned(),
            profile.load_use_distance,
            "instructions",
        ),
        figure(
            "system calls".to_owned(),
            profile.system_calls as f64,
            "calls",
        ),
    ]);
    figures
}

fn print(args: &ProfileArgs, name: &str, profile: &Profile, ended: &Ended) -> Result<()> {
    let figures = figures(profile);
    let notes = notes(profile, ended);
    match args.format {
        Format::Json => output::json(
            &mut output::stdout(),
            &Document {
                program: name,
                executed: ended.executed,
                profiled: profile.mix.instructions,
                windows: profile.windows,
                method: METHOD,
                figures: &figures,
                notes: &notes,
            },
        ),
        Format::Csv => {
            for note in &notes {
                warn(&anyhow!("{note}"));
            }
            output::csv(&mut output::stdout(), COLUMNS, &figures)
        }
        Format::Table => Ok(output::people_on_stderr(&table(
            name, profile, ended, &figures, &notes,
        ))?),
    }
}

fn table(
    name: &str,
    profile: &Profile,
    ended: &Ended,
    figures: &[Figure],
    notes: &[String],
) -> String {
    let mut text = output::table(COLUMNS, figures);
    text += &format!(
        "{name}: {} of {} instructions in {} window(s); {METHOD}.\n",
        profile.mix.instructions, ended.executed, profile.windows
    );
    for note in notes {
        text += &format!("Note: {note}.\n");
    }
    text
}
