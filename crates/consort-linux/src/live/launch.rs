//! Starting a run: with a command, over one that runs already, or without any; and taking up what
//! killed runs have left.

use super::actuators::Actuators;
use super::attachments::Attachments;
use super::clock::QuantumClock;
use super::command_lifecycle::CommandLifecycle;
use super::live_topology::LiveTopology;
use super::observers::{Descriptors, SamplingSetup, SamplingTier, ThreadObservers, accept_sampler};
use super::program_trees::ProgramTrees;
use super::thread_scan::ThreadScan;
use super::thread_table::ThreadTable;
use super::warnings::Warnings;
use super::{Host, LiveError, LiveMachine, LiveSettings};
use crate::enact::{
    EnactConfig, EnactError, Enactor, JournalError, LaunchedProgram, RecoverReport, SignalReader,
    launch, wait_for_guardians,
};
use crate::group::{GroupError, Leader};
use crate::sampling::Sampler;
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Longest wait for the guardian of a killed run.
pub(super) const RESTORE_LIMIT: Duration = Duration::from_secs(20);

/// A command that was started, and everything that is needed to manage it.
pub(super) struct RunResources {
    pub(super) child: Option<LaunchedProgram>,
    pub(super) name: String,
    pub(super) signals: SignalReader,
    pub(super) enactor: Enactor,
    pub(super) start: Instant,
    pub(super) warnings: Warnings,
}

impl LiveMachine {
    /// Starts the command. It is held before its first instruction until its threads are watched.
    ///
    /// # Errors
    /// If nothing was started: the command does not exist, or journal or guardian could not be set
    /// up.
    pub fn launch(host: Host, command: Command, settings: LiveSettings) -> Result<Self, LiveError> {
        let (live, _) = Self::start_command(host, command, settings, |_| Ok(None))?;
        Ok(live)
    }

    /// Starts a command, as the leader of a group if `lead` returns one.
    pub(super) fn start_command(
        host: Host,
        command: Command,
        mut settings: LiveSettings,
        lead: impl FnOnce(&Enactor) -> Result<Option<Leader>, GroupError>,
    ) -> Result<(Self, Option<Leader>), LiveError> {
        let mut warnings = recover_earlier_runs(&settings.enact);
        // Before any other thread exists, because threads inherit the blocked signals.
        let signals = SignalReader::block_and_open().map_err(LiveError::Wait)?;
        let enactor = match Enactor::start(&settings.enact) {
            // Without a folder for the journal the command runs all the same: then no thread is
            // restricted, so that nothing has to be undone.
            Err(EnactError::Journal(why @ (JournalError::Dir(_) | JournalError::File { .. }))) => {
                warnings.insert(format!(
                    "the command is only watched: {why}; free or name a folder (XDG_RUNTIME_DIR)"
                ));
                settings.dry_run = true;
                settings.enact.changes_nothing = true;
                Enactor::start(&settings.enact)?
            }
            started => started?,
        };
        let leader = match lead(&enactor) {
            Ok(leader) => leader,
            Err(error) => {
                enactor.close();
                return Err(error.into());
            }
        };
        let wish = SamplingSetup::for_host(&host, settings.watch);
        let pus = host.discovery.machine.pus();
        let name = program_name(&command);
        let mut sampler = None;
        let child = launch(command, enactor.run_id(), |pid| {
            // While the command is held, so that its events count from the first instruction.
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
        let sampling = accept_sampler(sampler, wish, &mut warnings);
        let running = RunResources {
            child: Some(child),
            name,
            signals,
            enactor,
            start: Instant::now(),
            warnings,
        };
        Ok((Self::assemble(host, settings, running, sampling)?, leader))
    }

    /// Manages a command that runs already, with all that it has started, or no command yet.
    pub(super) fn take_over(
        host: Host,
        settings: LiveSettings,
        mut running: RunResources,
    ) -> Result<Self, LiveError> {
        let wish = SamplingSetup::for_host(&host, settings.watch);
        let pus = host.discovery.machine.pus();
        let attach = || match &running.child {
            Some(child) => Sampler::attach_tree(&host.root, child.pid(), pus, wish.config),
            None => Sampler::without_trees(pus, wish.config),
        };
        let sampler = wish.wanted.then(attach);
        let sampling = accept_sampler(sampler, wish, &mut running.warnings);
        Self::assemble(host, settings, running, sampling)
    }

    fn assemble(
        host: Host,
        settings: LiveSettings,
        mut running: RunResources,
        sampling: Option<SamplingTier>,
    ) -> Result<Self, LiveError> {
        let descriptors = Descriptors::for_this_process(host.discovery.machine.pus().len());
        // Shared out once, because each part opens as many as it may.
        running.enactor.keep_stat_files_open(descriptors.held);
        let warnings = &mut running.warnings;
        let topology = &host.discovery.topology;
        let actuators = Actuators::new(running.enactor, &settings, topology, warnings);
        let mut observers = ThreadObservers::open(&host, sampling, descriptors);
        if let Some(recorded) = settings.recorded {
            running.warnings.insert(observers.use_recording(recorded));
        }
        let now = Instant::now();
        let root = running.child.as_ref().map(LaunchedProgram::pid);
        let roots: Vec<u32> = root.into_iter().collect();
        let trees = root.map_or_else(ProgramTrees::default, |pid| {
            ProgramTrees::new(pid, running.name)
        });
        let mut live = Self {
            observers,
            scan: ThreadScan::new(&host.root, &roots, now)?,
            site: LiveTopology::new(host, now),
            clock: QuantumClock::new(running.start, now, settings.interval),
            actuators,
            lifecycle: CommandLifecycle::new(running.child, running.signals),
            table: ThreadTable::new(trees, now),
            attachments: Attachments::default(),
            next_recovery: now,
            warnings: running.warnings,
        };
        live.scan.set_watch(settings.watch);
        // At once, because a command may end within the first quantum: then these records are all
        // that shows its threads.
        live.take_records();
        Ok(live)
    }

    /// Restores from abandoned journals, when it is time to look for some.
    ///
    /// The look at the start does not suffice: a run that starts between the kill of an earlier run
    /// and that of its guardian, or before the kernel has ended both, finds the journal in use.
    pub(super) fn recover_if_due(&mut self) {
        let now = Instant::now();
        if now < self.next_recovery {
            return;
        }
        self.next_recovery = now + RECOVER_EVERY;
        let dirs = self.actuators.enactor.runtime_dirs().to_owned();
        let report = self.actuators.enactor.recover_from(&dirs);
        self.warnings.extend(recoveries(&report));
        if report.restored.is_empty() {
            return;
        }
        // Threads that were left alone are judged once more: the killed run may have been the reason.
        let unmanaged = self.table.ids().filter(|id| !self.table.may_place(*id));
        let pids: BTreeSet<u32> = unmanaged.map(|id| id.pid).collect();
        if !pids.is_empty() {
            self.scan.find_again(&pids);
        }
    }
}

/// Most characters of a command's name: with every byte escaped, it fits a message of a group.
const NAME_CHARS: usize = 128;

/// Name of a command's program: the last part of its path, at most 128 characters.
pub fn program_name(command: &Command) -> String {
    let path = Path::new(command.get_program());
    let name = path.file_name().unwrap_or(path.as_os_str());
    name.to_string_lossy().chars().take(NAME_CHARS).collect()
}

/// Time between two looks at the folders for journals.
const RECOVER_EVERY: Duration = Duration::from_secs(1);

/// Restores masks that an earlier run could not, because its guardian was killed as well. Waits for
/// guardians that restore at the moment: this run would take a mask that is still to be restored for
/// an original one.
pub(super) fn recover_earlier_runs(config: &EnactConfig) -> Warnings {
    // Before a mask is looked at for the first time.
    let report = wait_for_guardians(&config.runtime_dirs, RESTORE_LIMIT);
    let mut warnings = Warnings::default();
    warnings.extend(recoveries(&report));
    warnings
}

/// Sentences about what earlier runs had left.
fn recoveries(report: &RecoverReport) -> Vec<String> {
    let mut warnings = Vec::new();
    let masks: usize = report.restored.iter().map(|(_, r)| r.restored).sum();
    if masks > 0 {
        warnings.push(format!(
            "{masks} masks that an earlier run left changed were put back"
        ));
    }
    let cookies: usize = report.restored.iter().map(|(_, r)| r.cleared).sum();
    if cookies > 0 {
        warnings.push(format!(
            "{cookies} core-scheduling cookies that an earlier run left were taken away"
        ));
    }
    let paused = report.restored.iter().map(|(_, r)| r.thawed + r.continued);
    if paused.sum::<usize>() > 0 {
        warnings.push("programs that an earlier run had paused continue".to_owned());
    }
    warnings.extend(report.errors.iter().map(|e| format!("earlier runs: {e}")));
    warnings
}
