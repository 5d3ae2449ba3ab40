//! Programs that a plan pauses.
//!
//! Programs that are to stop do so before masks are written, and those that are to go on do so
//! after, so that the two do not meet. A signal for the command must find it running: everything
//! goes on at once, and for a moment nothing is paused.

use super::Live;
use crate::enact::SignalEvent;
use crate::pause::{PauseError, PauseKind, Pauser, mechanisms};
use consort_core::{Plan, ProgramId};
use nix::sys::signal::Signal;
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time after a signal for which nothing is paused: its handlers are to run.
const GRACE: Duration = Duration::from_millis(200);

/// Programs that are paused, and those that are not although a plan wants it.
#[derive(Default)]
pub(super) struct Pausing {
    /// Mechanisms that may be used, best first.
    allowed: Vec<PauseKind>,
    /// The pauser, made when a plan pauses a program for the first time.
    pauser: Option<Pauser>,
    /// Programs that no mechanism can pause.
    refused: BTreeSet<ProgramId>,
    /// Programs whose unmanaged threads were reported.
    told: BTreeSet<ProgramId>,
    /// Programs that were paused when the quantum began.
    pub(super) in_quantum: BTreeSet<ProgramId>,
    /// End of the time for which a signal keeps everything running.
    grace: Option<Instant>,
    /// Number of times that programs were paused.
    pub(super) count: u64,
}

impl Pausing {
    pub(super) fn new(allowed: Vec<PauseKind>) -> Self {
        Self {
            allowed,
            ..Self::default()
        }
    }

    fn pauser(&mut self, root: &Path) -> &mut Pauser {
        let allowed = &self.allowed;
        self.pauser.get_or_insert_with(|| {
            let there = mechanisms(root).into_iter().filter(|m| m.available);
            let there: Vec<PauseKind> = there.map(|m| m.kind).collect();
            let kinds = allowed.iter().filter(|kind| there.contains(kind));
            Pauser::with(root, kinds.copied().collect())
        })
    }

    fn is_in_grace(&mut self) -> bool {
        self.grace = self.grace.filter(|&end| Instant::now() < end);
        self.grace.is_some()
    }

    fn paused(&self) -> BTreeSet<ProgramId> {
        let pausers = self.pauser.iter();
        pausers.flat_map(Pauser::paused).collect()
    }
}

impl Live {
    /// Pauses the programs that a plan wants paused.
    pub(super) fn pause_as_planned(&mut self, plan: &Plan) {
        if !plan.teams.is_empty() {
            let text = "how many threads a running program has cannot be chosen: \
                        programs keep theirs on the cores that they are given";
            self.warnings.insert(text.to_owned());
        }
        if self.pausing.is_in_grace() {
            return;
        }
        for &program in &plan.paused {
            if !self.pausing.refused.contains(&program) {
                self.pause(program);
            }
        }
    }

    /// Resumes the programs that a plan does not want paused.
    pub(super) fn resume_as_planned(&mut self, plan: &Plan) {
        let paused = self.pausing.paused();
        for &program in paused.difference(&plan.paused) {
            self.resume(program);
        }
        self.forget_ended();
        self.pausing.in_quantum = self.pausing.paused();
    }

    /// Resumes all programs, and pauses none for a moment.
    pub(super) fn wake_all(&mut self) {
        for program in self.pausing.paused() {
            self.resume(program);
        }
        self.pausing.grace = Some(Instant::now() + GRACE);
    }

    fn pause(&mut self, program: ProgramId) {
        let pids = self.roster.processes_of(program);
        let pauser = self.pausing.pauser(self.site.root());
        let new = !pauser.is_paused(program);
        match pauser.pause(&mut self.enactor, program, &pids) {
            Ok(pause) => {
                self.pausing.count += u64::from(new);
                self.tell_self_placed(program);
                if let Some(why) = pause.unsettled {
                    let text = format!("program {program} does not stand still at once: {why}");
                    self.warnings.insert(text);
                }
            }
            Err(PauseError::Gone(_)) => {}
            Err(error) => {
                if matches!(error, PauseError::NoWay { .. } | PauseError::Own(_)) {
                    self.pausing.refused.insert(program);
                }
                self.warnings.insert(error.to_string());
            }
        }
    }

    /// Warns, once, of threads of a paused program that are not managed.
    fn tell_self_placed(&mut self, program: ProgramId) {
        let placed = self.roster.self_placed().into_iter();
        let its = placed.filter(|id| self.roster.program_of(id.pid) == program);
        let count = its.count();
        if count > 0 && self.pausing.told.insert(program) {
            let text = format!(
                "program {program} takes turns as a whole, but {count} of its threads keep their \
                 own affinity and are not given cores"
            );
            self.warnings.insert(text);
        }
    }

    fn resume(&mut self, program: ProgramId) {
        let pauser = self.pausing.pauser.as_mut();
        let resumed = pauser.map(|pauser| pauser.resume(&mut self.enactor, program));
        if let Some(Err(error)) = resumed {
            self.warnings.insert(error.to_string());
        }
    }

    /// Removes cgroups made for pausing programs that have ended.
    pub(super) fn forget_ended(&mut self) {
        let known: Vec<ProgramId> = self.pausing.pauser.iter().flat_map(Pauser::known).collect();
        for program in known {
            if !self.roster.processes_of(program).is_empty() {
                continue;
            }
            let pauser = self.pausing.pauser.as_mut();
            let forgotten = pauser.map(|pauser| pauser.forget(&mut self.enactor, program));
            if let Some(Err(error)) = forgotten {
                self.warnings.insert(error.to_string());
            }
        }
    }

    /// Resumes all programs before a signal, or for one that the command has already. Returns true
    /// if the command was paused by a stop signal, which makes the kernel drop the terminal's
    /// signal to stop.
    pub(super) fn wake_for(&mut self, event: SignalEvent) -> bool {
        let Some(command) = self
            .child
            .as_ref()
            .map(|child| self.roster.program_of(child.pid()))
        else {
            return false;
        };
        let was = self.pausing.paused();
        let kind = (self.pausing.pauser.as_ref()).and_then(|pauser| pauser.kind_of(command));
        self.wake_all();
        let by_signal = was.contains(&command) && kind == Some(PauseKind::Signals);
        by_signal && event.signal == Signal::SIGTSTP
    }
}
