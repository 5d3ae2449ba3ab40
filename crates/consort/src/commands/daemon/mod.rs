//! `consort daemon`: manages what its configuration names and what is attached, until told to stop.

mod metrics;
mod page_server;
mod service;
mod snapshot;
mod strangers;

pub(crate) use snapshot::{CoreLine, Explanation, Status, ThreadLine};

use super::manage::{self, Chosen, Setup, check_policies};
use crate::cli::{DaemonArgs, ManageArgs};
use crate::config::{self, Config};
use crate::failure::{as_bad_input, bad_input, told};
use anyhow::{Result, anyhow};
use consort_core::policy::Policy;
use consort_core::{ByProgram, ControlLoop, Machine, Offers, Topology, Turn};
use consort_linux::control::{Clerk, Desk, Peer, Request, SocketPlace};
use consort_linux::enact::runtime_dirs;
use consort_linux::live::{Live, Order, ResideSpec, Until};
use metrics::Metrics;
use service::Service;
use snapshot::Snapshot;
use std::cell::RefCell;
use std::process::ExitCode;
use std::rc::Rc;

pub(crate) fn execute(args: &DaemonArgs) -> Result<ExitCode> {
    let config = load(args)?;
    let host = manage::look_for_others(&args.manage, &config.daemon)?;
    let offers = host.offers();
    let topology = host.discovery.topology.clone();
    let setup = Setup::new(&args.manage, &config.daemon, &topology, &offers)?;
    let enactors = manage::enactors(&args.manage, &config.daemon, &host)?;
    let cookies = manage::cookies(&args.manage, &config.daemon, &host, enactors)?;
    let checker = (
        args.manage.clone(),
        config.clone(),
        topology.clone(),
        offers,
    );
    check_entries(&config, &checker)?;
    let place = socket_place(args)?;
    let shared = Rc::new(RefCell::new(Snapshot::new(&setup)));
    let desk = Desk::open(place, is_root(), clerk(shared.clone(), checker))?;
    let spec = ResideSpec {
        interval: setup.interval,
        watch: setup.chosen().watch(false),
        dry_run: args.manage.dry_run,
        override_affinity: args.manage.override_affinity,
        enactors,
        cookies,
        enact: manage::enact_config(args.manage.dry_run),
        until: Until::Told,
        leads: Some(setup.requested.clone()),
    };
    let mut live = Live::reside(host, spec)?;
    live.open_desk(desk);
    live.set_rules(config.rules()?);
    let setup = setup.with_what_is_left(&live)?;
    // After signals were taken over: threads inherit which are blocked.
    let metrics = config.metrics.listen.map(Metrics::serve).transpose();
    let metrics = match metrics {
        Ok(metrics) => metrics,
        Err(error) => {
            live.finish();
            return Err(as_bad_input(&error));
        }
    };
    Daemon::begin(args, config, setup, live, (shared, metrics)).run()
}

fn load(args: &DaemonArgs) -> Result<Config> {
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
        Some(path) => Ok(SocketPlace::named(path)),
        None => Ok(SocketPlace::usual(&runtime_dirs(), is_root())?),
    }
}

/// Things that policies are tried against before they are taken: arguments, configuration, host.
type Checker = (ManageArgs, Config, Topology, Offers);

/// Answers requests that change nothing, and refuses those that are wrong on their face.
fn clerk(shared: Rc<RefCell<Snapshot>>, checker: Checker) -> Clerk {
    Box::new(move |peer: Peer, request: &Request| match request {
        Request::Status => Some(shared.borrow().status(peer)),
        Request::Explain { tid } => Some(shared.borrow().explain(peer, *tid)),
        Request::Attach(wanted) => {
            let policy = wanted.policy.as_ref()?;
            policy_of(&checker, policy)
                .err()
                .map(|e| Err(format!("{e:#}")))
        }
        Request::Policy { .. } | Request::Reload if !peer.is_master() => {
            let uid = peer.uid;
            Some(Err(format!(
                "that is for root and the daemon's own user, and user {uid} asks"
            )))
        }
        Request::Policy { policy } => policy_of(&checker, policy)
            .err()
            .map(|e| Err(format!("{e:#}"))),
        Request::Detach(_) | Request::Reload => None,
    })
}

fn policy_of(checker: &Checker, policy: &str) -> Result<Box<dyn Policy>> {
    let (args, config, topology, offers) = checker;
    policy_on((args, config, topology, offers), policy)
}

fn policy_on(
    (args, config, topology, offers): (&ManageArgs, &Config, &Topology, &Offers),
    policy: &str,
) -> Result<Box<dyn Policy>> {
    let setup = Setup::on_request(args, &config.daemon, policy.to_owned(), topology, offers);
    Ok(setup?.policy)
}

/// Checks the policies of control groups with their options, which single programs get later.
fn check_entries(config: &Config, checker: &Checker) -> Result<()> {
    for entry in &config.manage {
        let Some(policy) = &entry.policy else {
            continue;
        };
        let group = entry.cgroup.as_ref().or(entry.unit.as_ref());
        let group = group.map_or("", String::as_str);
        policy_of(checker, policy)
            .map_err(|error| bad_input(format!("[[manage]] {group}: {}", told(&error))))?;
    }
    Ok(())
}

/// The daemon while it runs.
struct Daemon<'a> {
    args: &'a DaemonArgs,
    chosen: Chosen,
    /// The configuration with which it was started.
    config: Config,
    wheel: ControlLoop<Live>,
    shared: Rc<RefCell<Snapshot>>,
    service: Service,
    metrics: Option<Metrics>,
}

impl<'a> Daemon<'a> {
    fn begin(
        args: &'a DaemonArgs,
        config: Config,
        setup: Setup,
        live: Live,
        (shared, metrics): (Rc<RefCell<Snapshot>>, Option<Metrics>),
    ) -> Self {
        let chosen = setup.chosen();
        let policy = by_program(args, setup.policy, &live);
        let wheel = ControlLoop::new(live, policy, setup.backoff, setup.seed);
        Self {
            args,
            chosen,
            config,
            wheel,
            shared,
            service: Service::ready(),
            metrics,
        }
    }

    fn run(mut self) -> Result<ExitCode> {
        while let Some(turn) = self.wheel.turn()? {
            let has_assigned = !turn.observation.assigned.is_empty();
            self.note(turn);
            if let Err(error) = self.choose_again() {
                tracing::error!("{error:#}");
            }
            let watch = self.chosen.watch(has_assigned);
            self.wheel.machine_mut().set_watch(watch);
            for order in self.wheel.machine_mut().take_orders() {
                self.carry_out(order);
            }
            self.service.alive();
        }
        self.service.stopping();
        let finished = self.wheel.into_machine().finish();
        let shared = self.shared.borrow();
        let told = |warning: &&String| shared.has_told(warning);
        for warning in finished.warnings.iter().filter(|warning| !told(warning)) {
            tracing::warn!("{warning}");
        }
        match finished.restored {
            true => Ok(ExitCode::SUCCESS),
            false => Err(anyhow!("not every mask could be put back; see the log")),
        }
    }

    fn note(&mut self, mut turn: Turn) {
        let machine = self.wheel.machine();
        for (id, why) in machine.left_alone() {
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
        let (undone, guardian) = (self.wheel.undone(), machine.guardian_pid());
        let programs = machine.programs_managed();
        let seen = (machine.tier(), machine.topology());
        let mut shared = self.shared.borrow_mut();
        shared.take(turn, programs, seen, (undone, guardian));
        if let Some(metrics) = &self.metrics {
            metrics.show(&shared.totals());
        }
    }

    fn carry_out(&mut self, order: Order) {
        let (done, conversation) = match order {
            Order::Reload(conversation) => {
                self.service.reloading();
                let done = self.reload();
                self.service.ready_again();
                (done, conversation)
            }
            Order::Policy(policy, conversation) => {
                let done = self.change(&policy).map(|()| serde_json::json!({}));
                (done, Some(conversation))
            }
        };
        if let Err(error) = &done {
            tracing::error!("{error:#}");
        }
        let desk = self.wheel.machine_mut().desk_mut();
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
            Metrics::check(at)?;
        }
        if let Some(path) = &config.daemon.topology {
            let checked = crate::host::check_sharing(path);
            checked.map_err(|error| config.daemon.blame("topology", &error))?;
        }
        let named = self.args.manage.policy.is_some();
        let policy = config.daemon.policy.clone().filter(|_| !named);
        let policy = policy.unwrap_or_else(|| self.shared.borrow().requested().to_owned());
        self.change(&policy)?;
        self.wheel.machine_mut().set_rules(rules);
        if !later.is_empty() {
            tracing::warn!("{} holds after a restart", later.join(", "));
        }
        Ok(serde_json::json!({ "after_restart": later }))
    }

    fn change(&mut self, policy: &str) -> Result<()> {
        if policy == self.shared.borrow().requested() {
            return Ok(());
        }
        let live = self.wheel.machine();
        let config = load(self.args)?;
        let args = ManageArgs {
            policy: None,
            ..self.args.manage.clone()
        };
        let (topology, offers) = (live.topology(), live.offers());
        let setup = Setup::on_request(&args, &config.daemon, policy.to_owned(), topology, offers)?;
        self.chosen = setup.chosen();
        self.shared.borrow_mut().adopt(&self.chosen);
        let policy = by_program(self.args, setup.policy, live);
        self.wheel.change_policy(policy);
        Ok(())
    }

    /// Chooses the usual policy again if the choice is Consort's and the usable CPUs have changed.
    fn choose_again(&mut self) -> Result<()> {
        let policy = self.chosen.choose_again(self.wheel.machine());
        self.shared.borrow_mut().adopt(&self.chosen);
        if let Some(policy) = policy? {
            tracing::info!(policy = self.chosen.policy, "{}", self.chosen.why);
            let policy = by_program(self.args, policy, self.wheel.machine());
            self.wheel.change_policy(policy);
        }
        Ok(())
    }
}

/// Returns the usual policy with those that single programs are given.
fn by_program(args: &DaemonArgs, usual: Box<dyn Policy>, live: &Live) -> Box<dyn Policy> {
    let (args, offers) = (args.manage.clone(), live.offers().clone());
    let make = move |policy: &str, topology: &Topology| match policy_on(
        (&args, &Config::default(), topology, &offers),
        policy,
    ) {
        Ok(policy) => Some(policy),
        Err(error) => {
            tracing::error!("policy {policy}: {error:#}");
            None
        }
    };
    Box::new(ByProgram::new(usual, Box::new(make)))
}
