//! `consort daemon`: manages what its configuration names and what is attached, until it is stopped.

mod hidden_names;
mod machine;
mod metrics;
mod page_server;
mod snapshot;

use super::manage::{
    self, PolicySelection, PolicySetup, check_policies, undone_verdict, without_trial,
};
use crate::commands::manage::{ManageArgs, check_sharing, enact_config};
use crate::config::{self, ConsortConfig};
use crate::failure::{as_bad_input, bad_input, error_chain};
use anyhow::{Result, anyhow};
use clap::Args;
use consort_core::trial::{ProgressMeasure, Trial, TrialTiming, Verdict};
use consort_core::{ControlLoop, ControlTurn, Machine};
use consort_linux::control::{ControlServer, SocketPlace};
use consort_linux::enact::runtime_dirs;
use consort_linux::live::{AttachSpec, EndCondition, GroupMachine, LiveSettings};
use consort_linux::pause::PauseKind;
use machine::{DaemonMachine, LoopCommand, PolicyContext, say};
use metrics::MetricsPage;
use sd_notify::NotifyState;
pub(crate) use snapshot::{CoreLine, DaemonStatus, ThreadExplanation, ThreadLine};
use snapshot::{DaemonEffect, DaemonSnapshot};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Clone, Debug, Args)]
pub(crate) struct DaemonArgs {
    #[command(flatten)]
    pub(crate) manage: ManageArgs,
    /// Socket to listen on, instead of /run/consort/control.sock or $XDG_RUNTIME_DIR/consort/control.sock
    #[arg(long, value_name = "PATH")]
    pub(crate) socket: Option<PathBuf>,
}

pub(crate) fn execute(args: &DaemonArgs) -> Result<ExitCode> {
    let config = load_config(&args.manage)?;
    let host = manage::discover_host(&args.manage, &config.daemon, true)?;
    let mut context = PolicyContext {
        args: args.manage.clone(),
        config,
        topology: host.discovery.topology.clone(),
        offers: host.offers(),
    };
    let config = &context.config;
    let (topology, offers) = (&context.topology, &context.offers);
    let setup = PolicySetup::new(&args.manage, &config.daemon, topology, offers)?;
    let (enactors, cookies) = manage::enforcement(&args.manage, &config.daemon, &host)?;
    check_entries(&context)?;
    let is_root = nix::unistd::Uid::effective().is_root();
    // Other users may reach the socket of root's daemon.
    let place = match &args.socket {
        Some(path) => SocketPlace::from_path(path),
        None => SocketPlace::in_runtime_dir(&runtime_dirs(), is_root)?,
    };
    let snapshot = DaemonSnapshot::new(&setup.selection);
    let socket = place.path().display().to_string();
    let server = ControlServer::open(place, is_root)?;
    let settings = LiveSettings {
        interval: setup.selection.interval,
        watch: setup.selection.watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies,
        pausing: PauseKind::ALL.to_vec(),
        recorded: None,
        enact: enact_config(args.manage.dry_run),
    };
    let spec = AttachSpec {
        settings,
        until: EndCondition::Requested,
        leads: Some(setup.selection.requested.clone()),
    };
    let rules = context.config.rules()?;
    let groups = context.config.manage.len();
    let machine = GroupMachine::manage_host(host, spec)?;
    // The machine may offer less than the host, if a tier could not be set up.
    context.offers = machine.offers().clone();
    let mut machine = DaemonMachine::new(machine, server, snapshot, context);
    machine.live_mut().set_rules(rules);
    let setup = setup.rechoose_for_machine(&machine)?;
    // After signals were taken over, because the server's thread inherits the mask of blocked ones.
    let listen = machine.sockets.context.config.metrics.listen;
    let metrics = match listen.map(MetricsPage::serve).transpose() {
        Ok(metrics) => metrics,
        Err(error) => {
            machine.finish();
            return Err(as_bad_input(&error));
        }
    };
    let policy = machine.policy_by_program(setup.policy);
    let trial = trial(&machine, &setup.selection, setup.seed);
    let mut control_loop = ControlLoop::new(machine, policy, setup.backoff, setup.seed);
    control_loop.set_trial(trial);
    say(&start_line(&setup.selection, groups, &socket));
    let daemon = RunningDaemon {
        selection: setup.selection,
        control_loop,
        service: ServiceNotifier::begin(),
        metrics,
    };
    daemon.run()
}

fn load_config(args: &ManageArgs) -> Result<ConsortConfig> {
    let config = config::load(args.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    check_policies(&config)?;
    Ok(config)
}

/// The daemon's first line: its groups, policy and socket, and the way to add programs.
fn start_line(selection: &PolicySelection, groups: usize, socket: &str) -> String {
    let groups = match groups {
        0 => "nothing is configured to be managed yet".to_owned(),
        n => format!("control groups to manage: {n}"),
    };
    format!(
        "{groups}, policy {} ({}); socket {socket}; add programs with `consort attach PID`",
        selection.policy, selection.why
    )
}

/// The trial that runs as long as the daemon, if the configuration has one and something measures
/// progress.
fn trial(machine: &DaemonMachine, selection: &PolicySelection, seed: u64) -> Option<Trial> {
    let share = machine.sockets.context.config.daemon.trial?;
    let Some(measure) = ProgressMeasure::from_offers(machine.offers()) else {
        tracing::warn!("[daemon] trial: nothing on this host measures progress");
        return None;
    };
    let quantum_ns = u64::try_from(selection.interval.as_nanos()).unwrap_or(u64::MAX);
    let timing = TrialTiming::for_quantum(quantum_ns, share);
    Some(Trial::new(timing, measure, true, seed))
}

/// Checks the policies of control groups with their options. They are opened when a group appears.
fn check_entries(context: &PolicyContext) -> Result<()> {
    for entry in &context.config.manage {
        let Some(policy) = &entry.policy else {
            continue;
        };
        let group = entry.cgroup.as_ref().or(entry.unit.as_ref());
        let group = group.map_or("", String::as_str);
        if let Err(error) = context.open_policy(&context.config.daemon, policy) {
            let text = format!("[[manage]] {group}: {}", error_chain(&error));
            return Err(bad_input(text));
        }
    }
    Ok(())
}

/// The daemon while it runs.
struct RunningDaemon {
    selection: PolicySelection,
    control_loop: ControlLoop<DaemonMachine>,
    service: ServiceNotifier,
    metrics: Option<MetricsPage>,
}

impl RunningDaemon {
    fn run(mut self) -> Result<ExitCode> {
        while let Some(turn) = self.control_loop.run_turn()? {
            let has_assigned = !turn.observation.assigned.is_empty();
            self.record_turn(turn);
            if let Err(error) = self.choose_again() {
                tracing::error!("{error:#}");
            }
            let watch = self.selection.watch(has_assigned);
            let machine = self.control_loop.machine_mut();
            machine.live_mut().set_watch(watch);
            for command in machine.take_commands() {
                self.execute(command);
            }
            self.service.notify_alive();
        }
        notify(&[NotifyState::Stopping]);
        let (outcome, snapshot) = self.control_loop.into_machine().finish();
        for warning in &outcome.warnings {
            if !snapshot.has_warning(warning) {
                tracing::warn!("{warning}");
            }
        }
        match outcome.restored {
            true => Ok(ExitCode::SUCCESS),
            false => Err(anyhow!("not every mask could be restored; see the log")),
        }
    }

    fn record_turn(&mut self, mut turn: ControlTurn) {
        let undone = self.control_loop.undone_plans();
        let effect = self.effect(&turn);
        let machine = self.control_loop.machine_mut();
        for (id, why) in machine.live().unmanaged_threads() {
            let reason = turn.plan.report.threads.entry(id).or_default();
            reason.chosen = format!("not managed: {why}");
        }
        for id in &turn.enacted.moved {
            let placement = turn.plan.placements.get(id);
            tracing::info!(thread = %id, ?placement, plan = turn.plan.generation, "moved");
        }
        for warning in &turn.enacted.warnings {
            tracing::warn!(plan = turn.plan.generation, "{warning}");
        }
        if undone > machine.sockets.snapshot.undone_plans() {
            say("progress fell after a plan, which is undone");
        }
        machine.record_turn(turn, undone, effect);
        if let Some(metrics) = &self.metrics {
            metrics.show(&machine.sockets.snapshot.totals());
        }
    }

    /// Effect of managing so far, on all programs and on each.
    fn effect(&self, turn: &ControlTurn) -> DaemonEffect {
        let Some(trial) = self.control_loop.trial() else {
            let is_dry_run = self.control_loop.machine().sockets.context.args.dry_run;
            let way = "[daemon] trial = \"5 %\" in the configuration measures it";
            let verdict = undone_verdict(&self.control_loop, way).unwrap_or_else(|| {
                Verdict::unmeasured(without_trial(&self.selection, is_dry_run, way))
            });
            return DaemonEffect {
                verdict,
                ..DaemonEffect::default()
            };
        };
        let seen = &turn.observation;
        let programs = seen.threads.iter().map(|thread| seen.program_of(thread.id));
        DaemonEffect {
            verdict: trial.verdict(),
            total: trial.effect(),
            programs: programs
                .filter_map(|id| Some((id.0, trial.effect_on(id)?)))
                .collect(),
        }
    }

    fn execute(&mut self, command: LoopCommand) {
        let (result, connection) = match command {
            LoopCommand::Reload(connection) => {
                if let Ok(now) = NotifyState::monotonic_usec_now() {
                    notify(&[NotifyState::Reloading, now]);
                }
                let result = self.reload();
                notify(&[NotifyState::Ready]);
                if result.is_ok() {
                    say("configuration read again");
                }
                (result, connection)
            }
            LoopCommand::ChangePolicy(connection, setup) => {
                self.change_policy(*setup);
                (Ok(serde_json::json!({})), Some(connection))
            }
        };
        if let Err(error) = &result {
            tracing::error!("{error:#}");
        }
        if let Some(connection) = connection {
            let result = result.map_err(|error| format!("{error:#}"));
            self.control_loop.machine_mut().answer(connection, result);
        }
    }

    /// Reads the configuration again; a wrong one leaves the old one in force. Returns the answer to
    /// the client, with the keys that need a restart.
    fn reload(&mut self) -> Result<serde_json::Value> {
        let machine = self.control_loop.machine();
        let old = &machine.sockets.context;
        let config = load_config(&old.args)?;
        let rules = config.rules()?;
        let later = old.config.keys_for_restart(&config);
        let context = PolicyContext {
            args: old.args.clone(),
            config,
            topology: old.topology.clone(),
            offers: old.offers.clone(),
        };
        check_entries(&context)?;
        let config = &context.config;
        if let Some(at) = config.metrics.listen {
            MetricsPage::check(at)?;
        }
        if let Some(path) = &config.daemon.topology {
            let checked = check_sharing(path);
            checked.map_err(|error| config.daemon.locate_error("topology", &error))?;
        }
        let is_named = context.args.policy.is_some();
        let policy = config.daemon.policy.clone().filter(|_| !is_named);
        let requested = machine.sockets.snapshot.requested_policy();
        if let Some(policy) = policy.filter(|policy| policy != requested) {
            let setup = context.open_policy(&context.config.daemon, &policy)?;
            self.change_policy(setup);
        }
        let machine = self.control_loop.machine_mut();
        machine.live_mut().set_rules(rules);
        if !later.is_empty() {
            tracing::warn!("{} takes effect after a restart", later.join(", "));
        }
        Ok(serde_json::json!({ "after_restart": later }))
    }

    fn change_policy(&mut self, setup: PolicySetup) {
        let machine = self.control_loop.machine_mut();
        if setup.selection.requested == machine.sockets.snapshot.requested_policy() {
            return;
        }
        self.selection = setup.selection;
        machine.sockets.snapshot.set_policy(&self.selection);
        let policy = machine.policy_by_program(setup.policy);
        self.control_loop.change_policy(policy);
    }

    /// Chooses the usual policy again if the choice is Consort's and the usable CPUs have changed.
    fn choose_again(&mut self) -> Result<()> {
        let policy = self.selection.choose_again(self.control_loop.machine());
        let machine = self.control_loop.machine_mut();
        machine.sockets.snapshot.set_policy(&self.selection);
        if let Some(policy) = policy? {
            tracing::info!(policy = self.selection.policy, "{}", self.selection.why);
            let policy = machine.policy_by_program(policy);
            self.control_loop.change_policy(policy);
        }
        Ok(())
    }
}

/// Sender of notices to the service manager (`sd_notify(3)`); without one it does nothing.
struct ServiceNotifier {
    /// Period within which the manager expects a notice; `None` if it expects none.
    watchdog: Option<Duration>,
    notified: Instant,
}

impl ServiceNotifier {
    fn begin() -> Self {
        notify(&[NotifyState::Ready]);
        Self {
            watchdog: sd_notify::watchdog_enabled(),
            notified: Instant::now(),
        }
    }

    /// Reports that the control loop has turned, if such a notice is due.
    fn notify_alive(&mut self) {
        let elapsed = self.notified.elapsed();
        if self.watchdog.is_some_and(|every| elapsed > every / 4) {
            notify(&[NotifyState::Watchdog]);
            self.notified = Instant::now();
        }
    }
}

fn notify(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not notified");
    }
}
