//! Completions that only the program knows: names of policies, machines, programs and studies.

use crate::descriptions::{self, Programs};
use crate::options::LIVE;
use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use clap_complete::{ArgValueCandidates, ArgValueCompleter};
use consort_core::mapping::MappingScheme;
use consort_core::policies::REGISTRY;
use consort_core::policy::PolicyInfo;
use consort_host::bench::{OverheadBench, all_benches};
use consort_sim::workload::ProgramSource;
use nix::unistd::{AccessFlags, access};
use std::ffi::OsStr;
use std::path::Path;

/// Environment variable with which a shell requests completions.
pub(crate) const COMPLETE: &str = "CONSORT_COMPLETE";

/// Names that stand for no policy of our own, in simulations.
const SYSTEMS: [&str; 6] = [
    "linux",
    "linux-2.6",
    "linux-acmp",
    "linux-grouped",
    "linux-itmt",
    "pinned",
];

fn plain_candidates<S: Into<String>>(
    names: impl IntoIterator<Item = S>,
) -> Vec<CompletionCandidate> {
    let names = names.into_iter().map(Into::into);
    names.map(CompletionCandidate::new).collect()
}

fn join_candidates(
    mut names: Vec<CompletionCandidate>,
    more: Vec<CompletionCandidate>,
) -> Vec<CompletionCandidate> {
    names.extend(more);
    names
}

fn policies(wanted: fn(&PolicyInfo) -> bool) -> Vec<CompletionCandidate> {
    let known = REGISTRY.iter().filter(|policy| wanted(policy));
    let candidate = |policy: &PolicyInfo| {
        CompletionCandidate::new(policy.name).help(Some(policy.summary.into()))
    };
    known.map(candidate).collect()
}

fn simulated_policies() -> Vec<CompletionCandidate> {
    join_candidates(
        plain_candidates(SYSTEMS),
        policies(|policy| policy.simulated),
    )
}

fn program_names() -> Vec<CompletionCandidate> {
    plain_candidates(Programs.programs())
}

/// Policies of `run`.
pub(crate) fn live_policies() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        join_candidates(plain_candidates(["auto"]), policies(|policy| policy.live))
    })
}

/// Policies of the live machine, by comma.
pub(crate) fn live_policy_list() -> ArgValueCompleter {
    complete_after_last(",", || {
        join_candidates(plain_candidates(["auto"]), policies(|policy| policy.live))
    })
}

/// A policy of a simulation.
pub(crate) fn simulated_policy() -> ArgValueCandidates {
    ArgValueCandidates::new(simulated_policies)
}

/// Policies of simulations, by comma.
pub(crate) fn policy_list() -> ArgValueCompleter {
    complete_after_last(",", simulated_policies)
}

/// Described machines, or files.
pub(crate) fn machines() -> ArgValueCompleter {
    complete_or_files(|| plain_candidates(descriptions::machines()))
}

/// Described machines, this one, or files.
pub(crate) fn machines_and_live() -> ArgValueCompleter {
    complete_or_files(|| {
        plain_candidates([vec![LIVE.to_owned()], descriptions::machines()].concat())
    })
}

/// Programs, or files.
pub(crate) fn programs() -> ArgValueCompleter {
    complete_or_files(program_names)
}

/// Programs, by comma.
pub(crate) fn program_list() -> ArgValueCompleter {
    complete_after_last(",", program_names)
}

/// Programs within an expression such as `4*hmmer+2*povray`.
pub(crate) fn workloads() -> ArgValueCompleter {
    complete_after_last("*+", program_names)
}

/// Suites of programs.
pub(crate) fn suites() -> ArgValueCandidates {
    ArgValueCandidates::new(|| plain_candidates(Programs.suites()))
}

/// Studies, all of them, or their list.
pub(crate) fn study_ids() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let titled = |info: &consort_lab::StudyInfo| {
            CompletionCandidate::new(&info.id).help(Some(info.title.clone().into()))
        };
        let known = consort_lab::registry();
        let ids = known.iter().flat_map(|known| known.list().map(titled));
        join_candidates(plain_candidates(["list", "all"]), ids.collect())
    })
}

/// Benches.
pub(crate) fn benches() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        plain_candidates(
            all_benches(OverheadBench::default())
                .iter()
                .map(|bench| bench.name()),
        )
    })
}

/// Groups of checks.
pub(crate) fn check_groups() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        plain_candidates(consort_lab::validate::GROUPS.iter().map(|group| group.name))
    })
}

/// Mappings, by comma.
pub(crate) fn mappings() -> ArgValueCompleter {
    let names = || {
        let schemes = MappingScheme::ALL.iter().map(|scheme| scheme.name());
        plain_candidates(["os", "all"].into_iter().chain(schemes))
    };
    complete_after_last(",", names)
}

/// A command and its arguments: programs that can be executed, then files.
pub(crate) fn command() -> ArgValueCompleter {
    ArgValueCompleter::new(CommandCompleter)
}

struct CommandCompleter;

impl ValueCompleter for CommandCompleter {
    fn complete(&self, current: &OsStr) -> Vec<CompletionCandidate> {
        let given = current.to_string_lossy();
        if given.contains('/') {
            return files(current);
        }
        let mut found = plain_candidates(executables(&given));
        found.extend(files(current));
        found
    }

    fn complete_at(&self, word: usize, current: &OsStr) -> Vec<CompletionCandidate> {
        if word == 0 {
            self.complete(current)
        } else {
            files(current)
        }
    }
}

/// Programs in PATH whose names begin so.
fn executables(beginning: &str) -> Vec<String> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let entries = std::env::split_paths(&folders)
        .filter_map(|folder| std::fs::read_dir(folder).ok())
        .flatten()
        .flatten();
    let can_run = |path: &Path| path.is_file() && access(path, AccessFlags::X_OK).is_ok();
    let mut names: Vec<String> = entries
        .filter_map(|entry| {
            let name = entry.file_name().into_string().ok()?;
            (name.starts_with(beginning) && can_run(&entry.path())).then_some(name)
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

fn files(current: &OsStr) -> Vec<CompletionCandidate> {
    PathCompleter::any().complete(current)
}

fn filter_by_prefix(names: Vec<CompletionCandidate>, beginning: &str) -> Vec<CompletionCandidate> {
    let fits =
        |name: &CompletionCandidate| name.get_value().to_string_lossy().starts_with(beginning);
    names.into_iter().filter(fits).collect()
}

fn complete_or_files(names: fn() -> Vec<CompletionCandidate>) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let mut found = filter_by_prefix(names(), &current.to_string_lossy());
        found.extend(files(current));
        found
    })
}

/// Names for what follows the last of these separators; what precedes stays.
fn complete_after_last(
    separators: &'static str,
    names: fn() -> Vec<CompletionCandidate>,
) -> ArgValueCompleter {
    ArgValueCompleter::new(move |current: &OsStr| {
        let current = current.to_string_lossy();
        let start = current
            .rfind(|c| separators.contains(c))
            .map_or(0, |at| at + 1);
        let (before, begun) = current.split_at(start);
        let found = filter_by_prefix(names(), begun).into_iter();
        found.map(|name| name.add_prefix(before)).collect()
    })
}
