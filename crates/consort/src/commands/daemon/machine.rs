//! The live machine with the daemon's sockets, which are served while a quantum passes.

use super::load_config;
use super::snapshot::{DaemonEffect, DaemonSnapshot};
use crate::commands::manage::{ManageArgs, PolicySetup, is_auto};
use crate::config::{ConsortConfig, RunConfig};
use crate::output;
use anyhow::Result;
use consort_core::policy::{Policy, Wishes};
use consort_core::{
    ControlTurn, EnactmentReport, Machine, Observation, PerProgramPolicy, Plan, SignalOffers,
    Topology,
};
use consort_linux::control::{ControlServer, DaemonRequest};
use consort_linux::group::Leader;
use consort_linux::live::{
    Command, CommandAnswer, CommandSource, GroupMachine, LiveError, LiveMachine, LiveRunOutcome,
};
use serde_json::Value;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::time::Instant;

/// A request that the owner of the control loop carries out between two turns.
pub(super) enum LoopCommand {
    /// Read the configuration again; a client waits for the answer if its connection is given.
    Reload(Option<u64>),
    /// Use this policy for a client that waits for the answer.
    ChangePolicy(u64, Box<PolicySetup>),
}

/// Policies opened for requests to attach, by their texts, until the next decision; each with the
/// topology that it was opened for, which CPUs that go offline may have changed since.
type OpenedPolicies = Rc<RefCell<BTreeMap<String, (Topology, Box<dyn Policy>)>>>;

/// The machine that policies are opened for, and the settings that apply to them.
pub(super) struct PolicyContext {
    pub(super) args: ManageArgs,
    pub(super) config: ConsortConfig,
    pub(super) topology: Topology,
    pub(super) offers: SignalOffers,
}

impl PolicyContext {
    pub(super) fn open_policy(&self, config: &RunConfig, policy: &str) -> Result<PolicySetup> {
        let (topology, offers) = (&self.topology, &self.offers);
        PolicySetup::for_policy(&self.args, config, policy, topology, offers)
    }
}

/// The live machine and the daemon's sockets.
pub(super) struct DaemonMachine {
    live: LiveMachine,
    // After the machine, so that another daemon starts only after every mask is restored.
    pub(super) sockets: DaemonSockets,
}

/// The control socket and the socket of the daemons' group, with the state that answers are made from.
pub(super) struct DaemonSockets {
    server: ControlServer,
    leader: Option<Leader>,
    pub(super) snapshot: DaemonSnapshot,
    pub(super) context: PolicyContext,
    opened: OpenedPolicies,
    commands: Vec<LoopCommand>,
}

/// A line of the daemon on stderr. A closed terminal must not end it.
pub(super) fn say(line: &str) {
    let _ = output::print_text_to_stderr(&format!("consort daemon: {line}\n"));
}

/// Changes that a client has made to what is managed; `None` if the answer shows none.
fn change_line(answer: &Value) -> Option<String> {
    let texts = |key: &str| -> Vec<String> {
        let list = answer.get(key).and_then(Value::as_array);
        let text = |value: &Value| value.as_str().map_or(value.to_string(), str::to_owned);
        list.into_iter().flatten().map(text).collect()
    };
    let is_detach = answer.get("detached").is_some();
    let [changed, awaited] = match is_detach {
        true => ["detached", "also"],
        false => ["attached", "awaited"],
    }
    .map(texts);
    let mut named = [changed, texts("cgroups")].concat();
    named.retain(|text| !awaited.contains(text));
    let mut parts = Vec::new();
    if !named.is_empty() {
        let what = match is_detach {
            true => "released, affinity restored",
            false => "managing",
        };
        parts.push(format!("{what}: {}", named.join(", ")));
    }
    if !awaited.is_empty() {
        let what = match is_detach {
            true => "released with it",
            false => "nothing matches yet",
        };
        parts.push(format!("{what}: {}", awaited.join(", ")));
    }
    (!parts.is_empty()).then(|| parts.join("; "))
}

impl CommandSource for DaemonSockets {
    fn fds(&self) -> Vec<BorrowedFd<'_>> {
        let mut fds = self.leader.fds();
        fds.extend(self.server.fds());
        fds
    }

    fn has_connections(&self) -> bool {
        self.leader.has_connections() || self.server.has_connections()
    }

    fn receive(&mut self, now: Instant) -> Vec<Command> {
        let mut received = self.leader.receive(now);
        let (snapshot, context) = (&self.snapshot, &self.context);
        self.server.serve_clients(now, |connection, peer, request| {
            match request {
                DaemonRequest::Status => return Some(snapshot.status(peer)),
                DaemonRequest::Explain { tid } => return Some(snapshot.explain(peer, tid)),
                DaemonRequest::Policy { .. } | DaemonRequest::Reload if !peer.is_master() => {
                    return Some(Err(format!(
                        "only root and the daemon's own user may do that; you are user {}",
                        peer.uid
                    )));
                }
                DaemonRequest::Attach(targets) => {
                    if let Some(policy) = &targets.policy {
                        match context.open_policy(&context.config.daemon, policy) {
                            // An automatic choice is made for the topology of the next decision.
                            Ok(_) if is_auto(policy) => {}
                            Ok(setup) => {
                                let mut opened = self.opened.borrow_mut();
                                let topology = context.topology.clone();
                                opened.insert(policy.clone(), (topology, setup.policy));
                            }
                            Err(error) => return Some(Err(format!("{error:#}"))),
                        }
                    }
                    received.push(Command::Attach {
                        connection,
                        peer,
                        targets,
                    });
                }
                DaemonRequest::Detach(targets) => received.push(Command::Detach {
                    connection,
                    peer,
                    targets,
                }),
                DaemonRequest::Policy { policy } => {
                    // With the defaults that the configuration has now, not at the last reload.
                    let config = load_config(&context.args);
                    match config.and_then(|config| context.open_policy(&config.daemon, &policy)) {
                        Ok(setup) => {
                            let change = LoopCommand::ChangePolicy(connection, Box::new(setup));
                            self.commands.push(change);
                        }
                        Err(error) => return Some(Err(format!("{error:#}"))),
                    }
                }
                DaemonRequest::Reload => {
                    self.commands.push(LoopCommand::Reload(Some(connection)));
                }
            }
            None
        });
        received
    }

    fn answer(&mut self, answer: CommandAnswer) {
        match answer {
            CommandAnswer::Client { connection, result } => {
                if let Ok(change) = &result {
                    let lists = ["detached", "also"].map(|key| change[key].as_array());
                    let released = lists.into_iter().flatten().flatten();
                    let pids = released.filter_map(|pid| u32::try_from(pid.as_u64()?).ok());
                    self.snapshot.forget(&pids.collect());
                    change_line(change).iter().for_each(|line| say(line));
                }
                self.server.answer(connection, result);
            }
            CommandAnswer::Member { .. } => self.leader.answer(answer),
        }
    }

    fn note_hangup(&mut self) {
        self.commands.push(LoopCommand::Reload(None));
    }

    fn ends_quantum(&self) -> bool {
        !self.commands.is_empty()
    }
}

impl Machine for DaemonMachine {
    type Error = LiveError;

    fn topology(&self) -> &Topology {
        self.live.topology()
    }

    fn offers(&self) -> &SignalOffers {
        self.live.offers()
    }

    fn grant_wishes(&mut self, wishes: Wishes) {
        self.live.grant_wishes(wishes);
    }

    fn observe(&mut self) -> Result<Option<Observation>, LiveError> {
        self.live.observe_with(&mut self.sockets)
    }

    fn enact(&mut self, plan: &Plan) -> Result<EnactmentReport, LiveError> {
        self.live.enact(plan)
    }
}

impl DaemonMachine {
    pub(super) fn new(
        machine: GroupMachine,
        server: ControlServer,
        snapshot: DaemonSnapshot,
        context: PolicyContext,
    ) -> Self {
        let (live, leader) = machine.into_parts();
        Self {
            live,
            sockets: DaemonSockets {
                server,
                leader,
                snapshot,
                context,
                opened: OpenedPolicies::default(),
                commands: Vec::new(),
            },
        }
    }

    pub(super) fn live(&self) -> &LiveMachine {
        &self.live
    }

    pub(super) fn live_mut(&mut self) -> &mut LiveMachine {
        &mut self.live
    }

    /// Takes the requests for the owner of the control loop, oldest first.
    pub(super) fn take_commands(&mut self) -> Vec<LoopCommand> {
        std::mem::take(&mut self.sockets.commands)
    }

    /// Answers a request that the owner of the control loop has carried out.
    pub(super) fn answer(&mut self, connection: u64, result: Result<Value, String>) {
        self.sockets.server.answer(connection, result);
    }

    /// Adds a turn to the state that is reported, with the number of plans undone so far.
    pub(super) fn record_turn(&mut self, turn: ControlTurn, undone: u64, effect: DaemonEffect) {
        let (live, sockets) = (&self.live, &mut self.sockets);
        sockets.snapshot.record_turn(
            turn,
            live.programs_managed(),
            (live.tier(), live.topology()),
            (undone, live.guardian_pid()),
            effect,
        );
        // Policies are opened for the CPUs that are there now.
        if sockets.context.topology != *live.topology() {
            sockets.context.topology = live.topology().clone();
        }
        // Policies that were not used by now belong to programs that have not appeared.
        sockets.opened.borrow_mut().clear();
    }

    /// Returns the usual policy, combined with the policies of single programs.
    pub(super) fn policy_by_program(&self, usual: Box<dyn Policy>) -> Box<dyn Policy> {
        let (args, offers) = (
            self.sockets.context.args.clone(),
            self.live.offers().clone(),
        );
        let opened = self.sockets.opened.clone();
        let make = move |policy: &str, topology: &Topology| {
            if let Some((opened_for, policy)) = opened.borrow_mut().remove(policy)
                && opened_for == *topology
            {
                return Some(policy);
            }
            let config = ConsortConfig::default();
            match PolicySetup::for_policy(&args, &config.daemon, policy, topology, &offers) {
                Ok(setup) => Some(setup.policy),
                Err(error) => {
                    tracing::error!("policy {policy}: {error:#}");
                    None
                }
            }
        };
        Box::new(PerProgramPolicy::new(usual, Box::new(make)))
    }

    /// Restores every mask and closes the sockets.
    pub(super) fn finish(self) -> (LiveRunOutcome, DaemonSnapshot) {
        (self.live.finish(), self.sockets.snapshot)
    }
}
