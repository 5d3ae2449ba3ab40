//! Mappings of commands on this machine.

use super::{
    MapArgs, MappingChoice, MappingFindings, duration_notice, misplaced_option, parse_mappings,
};
use crate::commands::manage::{detect_host, enact_config};
use crate::failure::{bad_input, say};
use crate::progress;
use anyhow::Result;
use consort_host::LiveHost;
use consort_host::mapping::{MappingRun, MappingSession};
use consort_lab::mapping::Analysis;
use nix::unistd::{AccessFlags, access};
use std::path::Path;

pub(super) fn run_mappings(args: &MapArgs) -> Result<MappingFindings> {
    let wanted = "--command for each program, or --machine with a described machine";
    if args.workload.is_some() {
        return Err(misplaced_option(
            "--workload runs on simulated machines",
            wanted,
        ));
    }
    if args.command.is_empty() {
        return Err(misplaced_option("there is nothing to run", wanted));
    }
    let commands = parse_commands(&args.command)?;
    let host = detect_host(None)?;
    let threads = match args.threads.len() {
        0 => vec![1; commands.len()],
        given if given == commands.len() => args.threads.clone(),
        given => {
            return Err(bad_input(format!(
                "--threads names {given} numbers for {} commands; give one for each",
                commands.len()
            )));
        }
    };
    let topology = &host.discovery.topology;
    let machine = format!(
        "this machine ({}, {} CPUs)",
        host.offers().machine(),
        topology.pus().len()
    );
    let (mappings, count) = parse_mappings(&args.mappings, args.bound, topology, &threads)?;
    let session = MappingSession {
        live: LiveHost {
            host,
            enact: enact_config(false),
        },
        names: command_names(&commands),
        commands,
        mappings: mappings.iter().map(MappingChoice::name).collect(),
        runs: args.runs,
        times: args.times,
        show_output: args.show_output,
    };
    let (alone, runs) = run_all(&session)?;
    let results = session.results(&alone, &runs);
    let workload = session.names.join("+");
    let names = session.names.iter().cloned();
    let analysis = Analysis::new(
        session.mappings.clone(),
        results.table,
        names.zip(results.alone).collect(),
        &args.thresholds(),
        &session.uncounted_reason(),
    );
    Ok(MappingFindings {
        machine,
        workload,
        tier: results.tier.to_string(),
        count,
        analysis,
        times_s: results.times_s,
        notes: results.notes,
    })
}

/// Runs everything; announces the number of runs before, and their estimated time when it is known.
fn run_all(session: &MappingSession) -> Result<(Vec<MappingRun>, Vec<Vec<MappingRun>>)> {
    let (commands, mappings) = (session.commands.len(), session.mappings.len());
    say(&format!(
        "map: each of {commands} programs once alone, then all under {mappings} mappings, {} times \
         each; an estimate of the time follows when they have run alone",
        session.runs,
    ));
    let meter = progress::start_meter("programs alone and mappings");
    let total = commands + mappings;
    let alone = session.run_alone(&|done| meter.set_done(done, total))?;
    // The slowest program's time alone, for all its runs; with co-runners it may take longer.
    let longest_s = alone.iter().map(MappingRun::longest_s).fold(0.0, f64::max);
    let times = mappings * (session.runs * session.times) as usize;
    say(&duration_notice(longest_s * times as f64));
    let runs = session.run_mappings(&|done| meter.set_done(commands + done, total))?;
    meter.finish();
    Ok((alone, runs))
}

/// Splits each command into words, as a shell would without its other expansions, and checks that
/// its program can be executed.
pub(in crate::commands) fn parse_commands(texts: &[String]) -> Result<Vec<Vec<String>>> {
    let mut commands = Vec::new();
    for text in texts {
        let words = shell_words::split(text)
            .map_err(|error| bad_input(format!("--command '{text}': {error}")))?;
        let Some(program) = words.first() else {
            return Err(bad_input(
                "--command: it is empty; name a program and its arguments",
            ));
        };
        let can_run = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
        let folders = std::env::var_os("PATH").unwrap_or_default();
        let is_executable = match program.contains('/') {
            true => can_run(Path::new(program)),
            false => std::env::split_paths(&folders).any(|folder| can_run(&folder.join(program))),
        };
        if !is_executable {
            return Err(bad_input(format!(
                "--command '{text}': there is no program {program} that can be executed; \
                 name one in PATH or give its path"
            )));
        }
        commands.push(words);
    }
    Ok(commands)
}

/// Returns a short name for each command: its program's, with a number if several have the same.
pub(in crate::commands) fn command_names(commands: &[Vec<String>]) -> Vec<String> {
    let mut files: Vec<String> = Vec::new();
    for words in commands {
        let path = words.first().map(Path::new);
        let name = path.and_then(Path::file_name);
        files.push(name.map_or_else(String::new, |name| name.to_string_lossy().into_owned()));
    }
    let mut names = Vec::new();
    for (i, name) in files.iter().enumerate() {
        let count = |files: &[String]| files.iter().filter(|other| *other == name).count();
        names.push(match count(&files) {
            1 => name.clone(),
            _ => format!("{name}#{}", count(&files[..=i])),
        });
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_split_and_not_expanded() {
        let parsed = parse_commands(&["sh -c 'exit 0' $HOME".to_owned()]).unwrap();
        assert_eq!(parsed, [["sh", "-c", "exit 0", "$HOME"]]);
    }

    #[test]
    fn program_that_cannot_start_is_refused() {
        let error = |text: &str| parse_commands(&[text.to_owned()]).unwrap_err().to_string();
        assert!(error("no-such-program-here 1").contains("no program no-such-program-here"));
        assert!(error("/etc/passwd").contains("no program /etc/passwd"));
        assert!(error("sh 'open").contains("sh 'open"));
        assert!(error(" ").contains("it is empty"));
    }

    #[test]
    fn programs_of_one_name_are_numbered() {
        let commands = ["/usr/bin/xz a", "sh b", "xz c"].map(|c| shell_words::split(c).unwrap());
        assert_eq!(command_names(&commands), ["xz#1", "sh", "xz#2"]);
    }
}
