//! `consort daemon`: manages what its configuration names and what is attached, until told to stop.

mod hidden_names;
mod metrics;
mod page_server;
mod service;
mod snapshot;

pub(crate) use snapshot::{CoreLine, DaemonStatus, ThreadExplanation, ThreadLine};

use super::manage::{self, PolicySelection, PolicySetup, check_policies};
use crate::cli::{DaemonArgs, ManageArgs};
use crate::config::{self, ConsortConfig};
use crate::failure::{as_bad_input, bad_input, error_chain};
use anyhow::{Result, anyhow};
use consort_core::policy::Policy;
use consort_core::{ControlLoop, ControlTurn, Machine, PerProgramPolicy, SignalOffers, Topology};
use consort_linux::control::{ControlServer, DaemonRequest, Peer, RequestHandler, SocketPlace};
use consort_linux::enact::runtime_dirs;
use consort_linux::live::{AttachSpec, ControlLoopRequest, EndCondition, LiveMachine};
use metrics::MetricsPage;
use service::ServiceNotifier;
use snapshot::DaemonSnapshot;
use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

pub(crate) fn execute(args: &DaemonArgs) -> Result<ExitCode> {
    let config = load(args)?;
    let host = manage::discover_host_for_others(&args.manage, &config.daemon)?;
    let offers = host.offers();
    let topology = host.discovery.topology.clone();
    let setup = PolicySetup::new(&args.manage, &config.daemon, &topology, &offers)?;
    let enactors = manage::enactors(&args.manage, &config.daemon, &host)?;
    let cookies = manage::uses_cookies(&args.manage, &config.daemon, &host, enactors)?;
    let checker = (
        args.manage.clone(),
        config.clone(),
        topology.clone(),
        offers,
    );
    check_entries(&config, &checker)?;
    let place = socket_place(args)?;
    let shared = Rc::new(RefCell::new(DaemonSnapshot::new(&setup)));
    let desk = ControlServer::open(place, is_root(), request_handler(shared.clone(), checker))?;
    let spec = AttachSpec {
        interval: setup.interval,
        watch: setup.selection().watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies,
        enact: manage::enact_config(args.manage.dry_run),
        until: EndCondition::Told,
        leads: Some(setup.requested.clone()),
    };
    let mut live = LiveMachine::manage_host(host, spec)?;
    live.open_control_server(desk);
    live.set_rules(config.rules()?);
    let setup = setup.rechoose_for_machine(&live)?;
    // After signals were taken over: threads inherit which are blocked.
    let metrics = config.metrics.listen.map(MetricsPage::serve).transpose();
    let metrics = match metrics {
        Ok(metrics) => metrics,
        Err(error) => {
            live.finish();
            return Err(as_bad_input(&error));
        }
    };
    RunningDaemon::begin(args, config, setup, live, (shared, metrics)).run()
}

fn load(args: &DaemonArgs) -> Result<ConsortConfig> {
    let config = config::load(args.manage.config.as_deref()).map_err(|e| as_bad_input(&e))?;
    check_policies(&config)?;
    Ok(config)
}

fn is_root() -> bool {
    nix::unistd::Uid::effective().is_root()
}

/// The place of the socket. Other users may reach that of root's daemon.
fn socket_place(args: &DaemonArgs) -> Result<SocketPlace> {
    match &args.socket {
        Some(path) => Ok(SocketPlace::from_path(path)),
        None => Ok(SocketPlace::in_runtime_dir(&runtime_dirs(), is_root())?),
    }
}

/// Things that policies are tried against before they are taken: arguments, configuration, host.
type PolicyContext = (ManageArgs, ConsortConfig, Topology, SignalOffers);

/// Answers requests that change nothing, and refuses those that are wrong on their face.
fn request_handler(shared: Rc<RefCell<DaemonSnapshot>>, checker: PolicyContext) -> RequestHandler {
    Box::new(move |peer: Peer, request: &DaemonRequest| match request {
        DaemonRequest::Status => Some(shared.borrow().status(peer)),
        DaemonRequest::Explain { tid } => Some(shared.borrow().explain(peer, *tid)),
        DaemonRequest::Attach(wanted) => {
            let policy = wanted.policy.as_ref()?;
            open_policy(&checker, policy)
                .err()
                .map(|e| Err(format!("{e:#}")))
        }
        DaemonRequest::Policy { .. } | DaemonRequest::Reload if !peer.is_master() => {
            let uid = peer.uid;
            Some(Err(format!(
                "that is for root and the daemon's own user, and user {uid} asks"
            )))
        }
        DaemonRequest::Policy { policy } => open_policy(&checker, policy)
            .err()
            .map(|e| Err(format!("{e:#}"))),
        DaemonRequest::Detach(_) | DaemonRequest::Reload => None,
    })
}

fn open_policy(checker: &PolicyContext, policy: &str) -> Result<Box<dyn Policy>> {
    let (args, config, topology, offers) = checker;
    open_policy_on((args, config, topology, offers), policy)
}

fn open_policy_on(
    (args, config, topology, offers): (&ManageArgs, &ConsortConfig, &Topology, &SignalOffers),
    policy: &str,
) -> Result<Box<dyn Policy>> {
    let setup = PolicySetup::for_policy(args, &config.daemon, policy.to_owned(), topology, offers);
    Ok(setup?.policy)
}

/// Checks the policies of control groups with their options, which single programs get later.
fn check_entries(config: &ConsortConfig, checker: &PolicyContext) -> Result<()> {
    for entry in &config.manage {
        let Some(policy) = &entry.policy else {
            continue;
        };
        let group = entry.cgroup.as_ref().or(entry.unit.as_ref());
        let group = group.map_or("", String::as_str);
        open_policy(checker, policy)
            .map_err(|error| bad_input(format!("[[manage]] {group}: {}", error_chain(&error))))?;
    }
    Ok(())
}

/// The daemon while it runs.
struct RunningDaemon<'a> {
    args: &'a DaemonArgs,
    chosen: PolicySelection,
    /// The configuration with which it was started.
    config: ConsortConfig,
    wheel: ControlLoop<LiveMachine>,
    shared: Rc<RefCell<DaemonSnapshot>>,
    service: ServiceNotifier,
    metrics: Option<MetricsPage>,
}

impl<'a> RunningDaemon<'a> {
    fn begin(
        args: &'a DaemonArgs,
        config: ConsortConfig,
        setup: PolicySetup,
        live: LiveMachine,
        (shared, metrics): (Rc<RefCell<DaemonSnapshot>>, Option<MetricsPage>),
    ) -> Self {
        let chosen = setup.selection();
        let policy = policy_by_program(args, setup.policy, &live);
        let wheel = ControlLoop::new(live, policy, setup.backoff, setup.seed);
        Self {
            args,
            chosen,
            config,
            wheel,
            shared,
            service: ServiceNotifier::notify_ready(),
            metrics,
        }
    }

    fn run(mut self) -> Result<ExitCode> {
        while let Some(turn) = self.wheel.run_turn()? {
            let has_assigned = !turn.observation.assigned.is_empty();
            self.record_turn(turn);
            if let Err(error) = self.choose_again() {
                tracing::error!("{error:#}");
            }
            let watch = self.chosen.watch(has_assigned);
            self.wheel.machine_mut().set_watch(watch);
            for order in self.wheel.machine_mut().take_requests() {
                self.carry_out(order);
            }
            self.service.notify_alive();
        }
        self.service.notify_stopping();
        let finished = self.wheel.into_machine().finish();
        let shared = self.shared.borrow();
        let told = |warning: &&String| shared.has_warning(warning);
        for warning in finished.warnings.iter().filter(|warning| !told(warning)) {
            tracing::warn!("{warning}");
        }
        match finished.restored {
            true => Ok(ExitCode::SUCCESS),
            false => Err(anyhow!("not every mask could be put back; see the log")),
        }
    }

    fn record_turn(&mut self, mut turn: ControlTurn) {
        let machine = self.wheel.machine();
        for (id, why) in machine.unmanaged_threads() {
            let reason = turn.plan.report.threads.entry(id).or_default();
            reason.chosen = format!("left alone: {why}");
        }
        for id in &turn.enacted.moved {
            let placement = turn.plan.placements.get(id);
            tracing::info!(thread = %id, ?placement, plan = turn.plan.generation, "moved");
        }
        for warning in &turn.enacted.warnings {
            tracing::warn!(plan = turn.plan.generation, "{warning}");
        }
        let (undone, guardian) = (self.wheel.undone_plans(), machine.guardian_pid());
        let programs = machine.programs_managed();
        let seen = (machine.tier(), machine.topology());
        let mut shared = self.shared.borrow_mut();
        shared.record_turn(turn, programs, seen, (undone, guardian));
        if let Some(metrics) = &self.metrics {
            metrics.show(&shared.totals());
        }
    }

    fn carry_out(&mut self, order: ControlLoopRequest) {
        let (done, conversation) = match order {
            ControlLoopRequest::Reload(conversation) => {
                self.service.notify_reloading();
                let done = self.reload();
                self.service.notify_reloaded();
                (done, conversation)
            }
            ControlLoopRequest::Policy(policy, conversation) => {
                let done = self.change_policy(&policy).map(|()| serde_json::json!({}));
                (done, Some(conversation))
            }
        };
        if let Err(error) = &done {
            tracing::error!("{error:#}");
        }
        let desk = self.wheel.machine_mut().control_server_mut();
        if let (Some(desk), Some(conversation)) = (desk, conversation) {
            desk.answer(conversation, done.map_err(|e| format!("{e:#}")));
        }
    }

    /// Reads the configuration again; one that is wrong leaves the old one in force. Returns the
    /// answer to the client, with the keys that take a restart.
    fn reload(&mut self) -> Result<serde_json::Value> {
        let config = load(self.args)?;
        let rules = config.rules()?;
        let later = self.config.keys_for_restart(&config);
        let live = self.wheel.machine();
        let (topology, offers) = (live.topology().clone(), live.offers().clone());
        let checker = (self.args.manage.clone(), config.clone(), topology, offers);
        check_entries(&config, &checker)?;
        if let Some(at) = config.metrics.listen {
            MetricsPage::check(at)?;
        }
        if let Some(path) = &config.daemon.topology {
            let checked = crate::host::check_sharing(path);
            checked.map_err(|error| config.daemon.locate_error("topology", &error))?;
        }
        let named = self.args.manage.policy.is_some();
        let policy = config.daemon.policy.clone().filter(|_| !named);
        let policy = policy.unwrap_or_else(|| self.shared.borrow().requested_policy().to_owned());
        self.change_policy(&policy)?;
        self.wheel.machine_mut().set_rules(rules);
        if !later.is_empty() {
            tracing::warn!("{} holds after a restart", later.join(", "));
        }
        Ok(serde_json::json!({ "after_restart": later }))
    }

    fn change_policy(&mut self, policy: &str) -> Result<()> {
        if policy == self.shared.borrow().requested_policy() {
            return Ok(());
        }
        let live = self.wheel.machine();
        let config = load(self.args)?;
        let args = ManageArgs {
            policy: None,
            ..self.args.manage.clone()
        };
        let (topology, offers) = (live.topology(), live.offers());
        let setup =
            PolicySetup::for_policy(&args, &config.daemon, policy.to_owned(), topology, offers)?;
        self.chosen = setup.selection();
        self.shared.borrow_mut().set_policy(&self.chosen);
        let policy = policy_by_program(self.args, setup.policy, live);
        self.wheel.change_policy(policy);
        Ok(())
    }

    /// Chooses the usual policy again if the choice is Consort's and the usable CPUs have changed.
    fn choose_again(&mut self) -> Result<()> {
        let policy = self.chosen.choose_again(self.wheel.machine());
        self.shared.borrow_mut().set_policy(&self.chosen);
        if let Some(policy) = policy? {
            tracing::info!(policy = self.chosen.policy, "{}", self.chosen.why);
            let policy = policy_by_program(self.args, policy, self.wheel.machine());
            self.wheel.change_policy(policy);
        }
        Ok(())
    }
}

/// Returns the usual policy with those that single programs are given.
fn policy_by_program(
    args: &DaemonArgs,
    usual: Box<dyn Policy>,
    live: &LiveMachine,
) -> Box<dyn Policy> {
    let (args, offers) = (args.manage.clone(), live.offers().clone());
    let make = move |policy: &str, topology: &Topology| match open_policy_on(
        (&args, &ConsortConfig::default(), topology, &offers),
        policy,
    ) {
        Ok(policy) => Some(policy),
        Err(error) => {
            tracing::error!("policy {policy}: {error:#}");
            None
        }
    };
    Box::new(PerProgramPolicy::new(usual, Box::new(make)))
}
