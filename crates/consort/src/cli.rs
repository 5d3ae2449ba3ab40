//! The command line: one definition for parsing, help, man pages and completions.

use crate::commands::attach::AttachArgs;
use crate::commands::bench::BenchArgs;
use crate::commands::compare::CompareArgs;
use crate::commands::config::ConfigArgs;
use crate::commands::daemon::DaemonArgs;
use crate::commands::daemon_requests::{DetachArgs, ExplainArgs, StatusArgs};
use crate::commands::glossary::GlossaryArgs;
use crate::commands::list::ListArgs;
use crate::commands::listings::{CompletionsArgs, ManArgs, SchemaArgs};
use crate::commands::machine::MachineArgs;
use crate::commands::map::MapArgs;
use crate::commands::profile::ProfileArgs;
use crate::commands::programs::ProgramsArgs;
use crate::commands::replay::ReplayArgs;
use crate::commands::reproduce::ReproduceArgs;
use crate::commands::run::{RecordArgs, RunArgs};
use crate::commands::simulate::SimulateArgs;
use crate::commands::sweep::SweepArgs;
use crate::commands::top::TopArgs;
use crate::commands::train::TrainArgs;
use crate::commands::trial::RunTrialArgs;
use crate::commands::validate::ValidateArgs;
use crate::commands::what_if::WhatIfArgs;
use crate::options::NamedListArgs;
use clap::{Command, CommandFactory, Parser, Subcommand};

/// Watches what each thread does to the processor and places threads accordingly.
#[derive(Debug, Parser)]
#[command(name = "consort", version, after_help = EXIT_CODES, subcommand_value_name = "VERB")]
pub(crate) struct Cli {
    /// Print tables at full width, even if the terminal is narrower
    #[arg(long, global = true, display_order = 900)]
    pub(crate) wide: bool,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// Verbs of the overview under their headings, the ones that most users need first.
const OVERVIEW: [(&str, &[&str]); 6] = [
    (
        "Verbs",
        &[
            "run", "attach", "detach", "status", "top", "explain", "trial", "daemon", "simulate",
        ],
    ),
    ("Look at a machine", &["machine", "map", "profile"]),
    ("Record and replay", &["record", "replay", "what-if"]),
    (
        "Study",
        &["compare", "reproduce", "sweep", "train", "validate"],
    ),
    (
        "Look up and set up",
        &["list", "glossary", "config", "completions"],
    ),
    ("Develop", &["bench", "man"]),
];

/// The command line, with an overview of the verbs by heading: clap lists all under one.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let mut overview = String::new();
    for (heading, verbs) in OVERVIEW {
        overview += &format!("{heading}:\n");
        for verb in verbs {
            let about = command.find_subcommand(verb).and_then(Command::get_about);
            overview += &format!("  {verb:<12} {}\n", about.cloned().unwrap_or_default());
        }
        overview.push('\n');
    }
    command.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{overview}Options:\n{{options}}{{after-help}}"
    ))
}

const EXIT_CODES: &str = "`consort VERB --help` explains a verb, with an example. \
`consort glossary WORD` explains a word.\n\
Exit codes: 0 done, 1 the run failed, 2 bad usage or bad input. \
`consort run` exits with its command's status, or 127 if it is not found and 126 if it cannot \
be executed.\n\
Set CONSORT_LOG=debug for a log on stderr.";

const REPRODUCE_HELP: &str = "Example: consort list studies\n\
Example: consort reproduce W1 W2 --quick --out studies\n\
The folder gets ID.html, ID-*.csv and ID-*.svg of each study, index.html about all of them, and \
ID-SCALE.json, from which a later run with the same seed and version continues.";

#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    /// Start a command and place its threads while it runs
    #[command(
        after_help = "Example: consort run --policy workover --interval 500ms -- ./solver input"
    )]
    Run(RunArgs),
    /// Run a command with and without management and compare the times
    #[command(after_help = "Example: consort trial -n 10 -- ./solver input\n\
                      Example: consort trial --policies workover,holistic --budget 10m --write -- make -j8\n\
                      Example: consort trial --metric 'print:tps =' -- pgbench -c 4 -T 10 bench\n\
                      Within one long run, use consort run --trial or consort attach --trial.")]
    Trial(RunTrialArgs),
    /// Run a command as `run` does and record it for `replay`, `what-if`
    #[command(after_help = "Example: consort record --out monday.parquet -- ./solver input")]
    Record(RecordArgs),
    /// Replay a recording under a policy and show its plans
    #[command(after_help = "Example: consort replay monday.parquet --policy workover")]
    Replay(ReplayArgs),
    /// Simulate a recorded command on another machine
    #[command(
        after_help = "Example: consort what-if monday.parquet --machine power8:smt=2 --policies linux,workover"
    )]
    WhatIf(WhatIfArgs),
    /// Place the threads of running processes and control groups
    #[command(after_help = "Example: consort attach 4711 --policy workover\n\
                      Example: consort attach --unit postgresql.service --foreground --report r.json\n\
                      If a daemon runs, it manages them from then on, with their own policy if --policy names \
                      one. Otherwise this command manages them until they end or you press Ctrl-C.")]
    Attach(AttachArgs),
    /// Stop managing processes and restore their affinity
    #[command(after_help = "Example: consort detach 4711")]
    Detach(DetachArgs),
    /// Manage control groups and attached processes until stopped
    #[command(after_help = "Example: consort daemon --policy auto\n\
                            Its configuration, requests and limits: docs/use/daemon.md")]
    Daemon(DaemonArgs),
    /// Show what a daemon manages and where threads are placed
    #[command(after_help = "Example: consort status --format json")]
    Status(StatusArgs),
    /// Watch the threads that a daemon manages, with each reason
    #[command(after_help = "Example: consort top\n\
                            Example: consort top --once | head -20")]
    Top(TopArgs),
    /// Show why a thread was placed where it is
    #[command(after_help = "Example: consort explain 4711")]
    Explain(ExplainArgs),
    /// Check the configuration, or make a daemon read it again
    #[command(after_help = "Example: consort config check")]
    Config(ConfigArgs),
    /// Show a processor and what Consort can observe on it
    #[command(after_help = "Example: consort machine\n\
                            Example: consort machine power7:smt=2 --format json")]
    Machine(MachineArgs),
    /// List machines, programs, policies, studies, benches or schemas
    #[command(after_help = "Example: consort list policies\n\
                            Example: consort list programs hmmer --format json")]
    List(ListArgs),
    /// Explain a word that results use
    #[command(after_help = "Example: consort glossary nudge")]
    Glossary(GlossaryArgs),
    /// List the policies, as `consort list policies` does
    #[command(hide = true, after_help = "Example: consort policies --format csv")]
    Policies(NamedListArgs),
    /// List the programs, as `consort list programs` does
    #[command(hide = true, after_help = "Example: consort programs --suite spec2006")]
    Programs(ProgramsArgs),
    /// Describe a program's demands on a processor, for `simulate`
    #[command(
        after_help = "Example: consort profile -o gzip.toml -- gzip -kc FILE\n\
                      Example: consort profile --trace gzip.trace --skip 500M --instructions 1M -- gzip -kc FILE"
    )]
    Profile(ProfileArgs),
    /// Print a JSON Schema, as `consort list schemas NAME` does
    #[command(
        hide = true,
        after_help = "Example: consort schema machine > machine.schema.json"
    )]
    Schema(SchemaArgs),
    /// Run a workload on a simulated machine under a policy
    #[command(
        after_help = "Example: consort simulate --machine bulldozer-6282se --workload '4*bzip2+4*povray' --explain bzip2"
    )]
    Simulate(SimulateArgs),
    /// Simulate a workload under several policies, many times
    #[command(
        after_help = "Example: consort compare --machine bulldozer-6282se --workload '4*hmmer+4*povray' --policies aggregate,linux,workover --until all-finished\n\
                      Example: consort compare --machine power8:smt=2 --workload 'mix:spec2006/20?seed=7' --policies linux,symbiotic"
    )]
    Compare(CompareArgs),
    /// Show which thread mapping is fastest, and why
    #[command(
        after_help = "Example: consort map --machine core2-q9550 --workload 'streamcluster@4+facesim@4' --runs 3 --out mapped\n\
                      Example: consort map --command 'xz -kc -T2 FILE' --command 'openssl speed -seconds 1 aes-128-cbc'"
    )]
    Map(MapArgs),
    /// Run published experiments again, with tables and figures
    #[command(after_help = REPRODUCE_HELP)]
    Reproduce(ReproduceArgs),
    /// Spread many simulated runs over a cluster
    #[command(
        after_help = "Example: consort sweep plan caches.toml && consort sweep run all && consort sweep merge --out caches.csv"
    )]
    Sweep(SweepArgs),
    /// Measure how fast the simulator and the policies are on this host
    #[command(after_help = "Example: consort bench simulate-acmp-1ms solve\n\
                            Example: consort list benches")]
    Bench(BenchArgs),
    /// Check the simulation against published and measured figures
    #[command(after_help = "Example: consort validate --quick --checks conservation")]
    Validate(ValidateArgs),
    /// Train a model of how programs on a core slow each other down
    #[command(
        after_help = "Example: consort train --machine power8 --ways 2,4 --out power8.toml\n\
                      Example: consort train --rows docs/examples/pairs.csv --machine my-host --out my-host.toml"
    )]
    Train(TrainArgs),
    /// Print a completion script for a shell
    #[command(after_help = "Example: consort completions bash > /etc/bash_completion.d/consort")]
    Completions(CompletionsArgs),
    /// Write the man pages into a folder
    #[command(after_help = "Example: consort man ./man && man ./man/consort-run.1")]
    Man(ManArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// Characters of a line of the overview: it must not wrap on a usual terminal.
    const COLUMNS: usize = 80;

    #[test]
    fn overview_lists_every_verb_once_on_one_line() {
        let listed: Vec<&str> = OVERVIEW
            .iter()
            .flat_map(|(_, verbs)| *verbs)
            .copied()
            .collect();
        let command = command();
        let mut expected: Vec<&str> = { command.get_subcommands() }
            .filter(|verb| !verb.is_hide_set())
            .map(Command::get_name)
            .collect();
        let mut sorted = listed.clone();
        sorted.sort_unstable();
        expected.sort_unstable();
        assert_eq!(sorted, expected);
        let help = command.clone().render_help().to_string();
        for verb in &listed {
            let lines = help
                .lines()
                .filter(|line| line.starts_with(&format!("  {verb} ")));
            let lines: Vec<&str> = lines.collect();
            assert_eq!(lines.len(), 1, "{verb}: {lines:?}");
            assert!(lines[0].chars().count() <= COLUMNS, "{}", lines[0]);
        }
    }

    /// Verbs with their visible flags, each as `-x`, `--long` and the name of its value.
    fn flags(command: &Command, path: &str, all: &mut Vec<(String, [String; 3])>) {
        let visible = command.get_arguments().filter(|arg| !arg.is_hide_set());
        for arg in visible {
            let Some(long) = arg.get_long() else { continue };
            let short = arg
                .get_short()
                .map_or_else(String::new, |c| format!("-{c}"));
            let takes_value = arg.get_action().takes_values();
            let names = arg.get_value_names().unwrap_or_default();
            let value = names.first().map_or_else(String::new, |name| {
                String::from(if takes_value { name.as_str() } else { "" })
            });
            all.push((path.to_owned(), [short, format!("--{long}"), value]));
        }
        for inner in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            flags(inner, &format!("{path} {}", inner.get_name()), all);
        }
    }

    #[test]
    fn flag_means_the_same_in_every_verb() {
        let mut all = Vec::new();
        flags(&command(), "", &mut all);
        assert!(all.len() > 150, "{}", all.len());
        let mut of_long: BTreeMap<&str, (&str, &[String; 3])> = BTreeMap::new();
        let mut of_short: BTreeMap<&str, &str> = BTreeMap::new();
        for (verb, flag) in &all {
            let [short, long, _] = flag;
            let (first, known) = of_long.entry(long).or_insert((verb, flag));
            assert_eq!(*known, flag, "in{first} and in{verb}");
            if !short.is_empty() {
                // One policy or several, one repetition or several.
                let meaning = match long.as_str() {
                    "--policies" => "--policy",
                    "--rounds" => "--runs",
                    long => long,
                };
                assert_eq!(
                    *of_short.entry(short).or_insert(meaning),
                    meaning,
                    "in{verb}"
                );
            }
        }
    }

    /// The help of a verb and of all below it.
    fn help(command: &Command) -> String {
        let own = command.clone().render_long_help().to_string();
        let inner = command.get_subcommands().map(help);
        inner.fold(own, |text, more| text + &more)
    }

    #[test]
    fn help_offers_only_files_that_this_build_writes() {
        assert_eq!(
            help(&command()).contains(".arrow"),
            cfg!(feature = "columnar")
        );
    }

    #[test]
    fn help_has_no_word_of_the_dialect() {
        let text = help(&command()).to_lowercase();
        let text: Vec<&str> = text.split(|c: char| !c.is_alphanumeric()).collect();
        let text = format!(" {} ", text.join(" "));
        for words in include_str!("../tests/architecture/dialect.txt").lines() {
            assert!(!text.contains(&format!(" {words} ")), "'{words}'");
        }
    }
}
