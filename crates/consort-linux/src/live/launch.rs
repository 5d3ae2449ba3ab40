//! Starting of a command under management.

use super::census::Census;
use super::clock::Clock;
use super::course::Course;
use super::descriptors::Descriptors;
use super::hands::Hands;
use super::residence::Residence;
use super::roster::Roster;
use super::senses::{Recorded, Sampling, SamplingWish, Senses, accept};
use super::site::Site;
use super::trees::Trees;
use super::warnings::Warnings;
use super::{Host, Live};
use crate::discovery::ProcError;
use crate::enact::{
    EnactConfig, EnactError, Enactor, LaunchError, Launched, Signals, launch, recover_stale,
};
use crate::enforce::EnactChoice;
use crate::group::{GroupError, Leader};
use crate::pause::PauseKind;
use crate::sampling::Sampler;
use nix::errno::Errno;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A command to start, and the way to manage it.
#[derive(Debug)]
pub struct LaunchSpec {
    /// The command.
    pub command: Command,
    /// The quantum.
    pub interval: Duration,
    /// True if plans are made and not carried out.
    pub dry_run: bool,
    /// True if threads are managed whose affinity somebody has set on purpose.
    pub override_affinity: bool,
    /// Enactors that may keep threads in their places.
    pub enactors: EnactChoice,
    /// True if core-scheduling cookies are to keep other threads off the cores of a plan.
    pub cookies: bool,
    /// Mechanisms that may pause programs, best first, usually [`PauseKind::ALL`]; those that the
    /// host does not have are passed over.
    pub pausing: Vec<PauseKind>,
    /// Measures that this host cannot count.
    pub recorded: Option<Recorded>,
    /// Folders for the journal, and the words that start the guardian.
    pub enact: EnactConfig,
}

/// Reason for which a command could not be managed.
#[derive(Debug, Error)]
pub enum LiveError {
    /// The command could not be started; nothing was changed.
    #[error(transparent)]
    Launch(#[from] LaunchError),
    /// Journal or guardian could not be set up; nothing was started.
    #[error(transparent)]
    Enact(#[from] EnactError),
    /// The group could not be entered; nothing was started.
    #[error(transparent)]
    Group(#[from] GroupError),
    /// `/proc` cannot be read.
    #[error("threads cannot be watched: {0}")]
    Proc(#[from] ProcError),
    /// Waiting for signals and samples failed.
    #[error("waiting for signals and samples failed: {0}")]
    Wait(Errno),
    /// A plan is older than one that was carried out.
    #[error("plan {generation} is not newer than plan {last}")]
    StalePlan {
        /// The plan's generation.
        generation: u64,
        /// Generation of the last plan that was carried out.
        last: u64,
    },
}

impl LaunchSpec {
    pub(super) fn split(self) -> (Command, Settings) {
        let settings = Settings {
            interval: self.interval,
            dry_run: self.dry_run,
            override_affinity: self.override_affinity,
            enactors: self.enactors,
            cookies: self.cookies,
            pausing: self.pausing,
            recorded: self.recorded,
            enact: self.enact,
        };
        (self.command, settings)
    }
}

/// The way to manage, whatever the command.
#[derive(Clone, Debug)]
pub(super) struct Settings {
    pub(super) interval: Duration,
    pub(super) dry_run: bool,
    pub(super) override_affinity: bool,
    pub(super) enactors: EnactChoice,
    pub(super) cookies: bool,
    pub(super) pausing: Vec<PauseKind>,
    pub(super) recorded: Option<Recorded>,
    pub(super) enact: EnactConfig,
}

/// A command that was started, and everything that is needed to manage it.
pub(super) struct Running {
    pub(super) child: Option<Launched>,
    pub(super) name: String,
    pub(super) signals: Signals,
    pub(super) enactor: Enactor,
    pub(super) group: Option<Leader>,
    pub(super) start: Instant,
    pub(super) warnings: Warnings,
}

impl Live {
    /// Starts the command. It is held before its first instruction until its threads are watched.
    ///
    /// # Errors
    /// When nothing was started: the command does not exist, or journal or guardian could not be
    /// set up.
    pub fn launch(host: Host, spec: LaunchSpec) -> Result<Self, LiveError> {
        let (command, settings) = spec.split();
        Self::begin(host, command, &settings, |_| Ok(None))
    }

    /// Starts a command, as the leader of a group if `lead` gives one.
    pub(super) fn begin(
        host: Host,
        command: Command,
        settings: &Settings,
        lead: impl FnOnce(&Enactor) -> Result<Option<Leader>, GroupError>,
    ) -> Result<Self, LiveError> {
        let mut warnings = recovered(&settings.enact);
        let signals = Signals::take().map_err(LiveError::Wait)?;
        let enactor = Enactor::start(&settings.enact)?;
        let group = match lead(&enactor) {
            Ok(group) => group,
            Err(error) => {
                enactor.close();
                return Err(error.into());
            }
        };
        let wish = SamplingWish::of(&host);
        let pus = host.discovery.machine.pus();
        let name = program_name(&command);
        let mut sampler = None;
        let child = launch(command, enactor.run_id(), |pid| {
            let attach = || Sampler::attach_launch(pid, pus, wish.config);
            sampler = wish.wanted.then(attach);
        });
        let child = match child {
            Ok(child) => child,
            Err(error) => {
                enactor.close();
                return Err(error.into());
            }
        };
        let sampling = accept(sampler, &host.root, wish.cost_ns, &mut warnings);
        let running = Running {
            child: Some(child),
            name,
            signals,
            enactor,
            group,
            start: Instant::now(),
            warnings,
        };
        Self::assemble(host, settings, running, sampling)
    }

    /// Manages a command that runs already, with all that it has started, or no command yet.
    pub(super) fn take_over(
        host: Host,
        settings: &Settings,
        mut running: Running,
    ) -> Result<Self, LiveError> {
        let wish = SamplingWish::of(&host);
        let pus = host.discovery.machine.pus();
        let attach = || match &running.child {
            Some(child) => Sampler::attach_tree(&host.root, child.pid(), pus, wish.config),
            None => Sampler::idle(pus, wish.config),
        };
        let sampler = wish.wanted.then(attach);
        let sampling = accept(sampler, &host.root, wish.cost_ns, &mut running.warnings);
        Self::assemble(host, settings, running, sampling)
    }

    fn assemble(
        host: Host,
        settings: &Settings,
        mut running: Running,
        sampling: Option<Sampling>,
    ) -> Result<Self, LiveError> {
        let descriptors = Descriptors::of_this_process(host.discovery.machine.pus().len());
        running.enactor.keep_open(descriptors.held);
        let warnings = &mut running.warnings;
        let topology = &host.discovery.topology;
        let hands = Hands::new(running.enactor, settings, topology, warnings);
        let mut senses = Senses::open(&host, sampling, descriptors);
        if let Some(recorded) = settings.recorded.clone() {
            running.warnings.insert(senses.rely_on(recorded));
        }
        let now = Instant::now();
        let root = running.child.as_ref().map(Launched::pid);
        let roots: Vec<u32> = root.into_iter().collect();
        let trees = root.map_or_else(Trees::default, |pid| Trees::new(pid, running.name));
        let mut live = Self {
            senses,
            census: Census::new(&host.root, &roots, now)?,
            site: Site::new(host, now),
            clock: Clock::new(running.start, now, settings.interval),
            hands,
            course: Course::new(running.child, running.signals),
            roster: Roster::new(trees, now),
            residence: Residence::default(),
            group: running.group,
            warnings: running.warnings,
        };
        // At once, so that a command that ends within the first moments has been seen.
        live.take_records();
        Ok(live)
    }
}

/// Most characters of a command's name that are told: with every byte escaped it fits a message of
/// groups.
const NAME_CHARS: usize = 128;

/// Name of a command's program: the last part of its path, at most 128 characters.
pub fn program_name(command: &Command) -> String {
    let path = Path::new(command.get_program());
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().chars().take(NAME_CHARS).collect()
}

/// Restores masks that an earlier run could not, because its guardian was killed as well.
pub(super) fn recovered(config: &EnactConfig) -> Warnings {
    let report = recover_stale(&config.runtime_dirs);
    let mut warnings = Warnings::default();
    let masks: usize = report.restored.iter().map(|(_, r)| r.restored).sum();
    if masks > 0 {
        warnings.insert(format!(
            "{masks} masks that an earlier run left changed were put back"
        ));
    }
    let cookies: usize = report.restored.iter().map(|(_, r)| r.cleared).sum();
    if cookies > 0 {
        warnings.insert(format!(
            "{cookies} core-scheduling cookies that an earlier run left were taken away"
        ));
    }
    let paused = report.restored.iter().map(|(_, r)| r.thawed + r.continued);
    if paused.sum::<usize>() > 0 {
        warnings.insert("what an earlier run had paused goes on".to_owned());
    }
    warnings.extend(report.errors.iter().map(|e| format!("earlier runs: {e}")));
    warnings
}
