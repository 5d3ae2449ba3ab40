//! The ways to manage a command, or that which is attached.

use super::observers::RecordedMeasures;
use crate::enact::EnactConfig;
use crate::enforce::EnactChoice;
use crate::pause::PauseKind;
use crate::sampling::WatchRate;
use std::process::Command;
use std::time::Duration;

/// A command to start, and the way to manage it.
#[derive(Debug)]
pub struct LaunchSpec {
    /// The command.
    pub command: Command,
    /// The quantum.
    pub interval: Duration,
    /// Rate at which programs are watched.
    pub watch: WatchRate,
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
    pub recorded: Option<RecordedMeasures>,
    /// Folders for the journal, and the words that start the guardian.
    pub enact: EnactConfig,
}

/// The way to manage processes and groups that are attached.
#[derive(Clone, Debug)]
pub struct AttachSpec {
    /// The quantum.
    pub interval: Duration,
    /// Rate at which programs are watched.
    pub watch: WatchRate,
    /// True if plans are made and not carried out.
    pub dry_run: bool,
    /// True if threads are managed whose affinity somebody has set on purpose.
    pub override_affinity: bool,
    /// Enactors that may keep threads in their places.
    pub enactors: EnactChoice,
    /// True if core-scheduling cookies are to keep other threads off the cores of a plan.
    pub cookies: bool,
    /// Folders for the journal, and the words that start the guardian.
    pub enact: EnactConfig,
    /// Condition that ends the run.
    pub until: EndCondition,
    /// Policy, as text, of a run that leads the group of daemons; none for others.
    pub leads: Option<String>,
}

/// Condition that ends a run without a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndCondition {
    /// SIGINT, SIGTERM or SIGQUIT.
    #[default]
    Requested,
    /// The same signals, or the end of everything that was attached.
    Empty,
}

#[derive(Clone, Debug)]
pub(super) struct LiveSettings {
    pub(super) interval: Duration,
    pub(super) watch: WatchRate,
    pub(super) dry_run: bool,
    pub(super) override_affinity: bool,
    pub(super) enactors: EnactChoice,
    pub(super) cookies: bool,
    pub(super) pausing: Vec<PauseKind>,
    pub(super) recorded: Option<RecordedMeasures>,
    pub(super) enact: EnactConfig,
}

impl LaunchSpec {
    pub(super) fn split(self) -> (Command, LiveSettings) {
        let settings = LiveSettings {
            interval: self.interval,
            watch: self.watch,
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

impl AttachSpec {
    pub(super) fn settings(self) -> LiveSettings {
        LiveSettings {
            interval: self.interval,
            watch: self.watch,
            dry_run: self.dry_run,
            override_affinity: self.override_affinity,
            enactors: self.enactors,
            cookies: self.cookies,
            pausing: PauseKind::ALL.to_vec(),
            recorded: None,
            enact: self.enact,
        }
    }
}
