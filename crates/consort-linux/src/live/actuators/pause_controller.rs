//! Programs that a plan pauses.
//!
//! A signal for the command must find it running, because a paused program runs no handler. So all
//! programs are resumed when one comes, and for a moment none is paused.

use crate::enact::Enactor;
use crate::live::live_topology::LiveTopology;
use crate::live::thread_table::ThreadTable;
use crate::pause::{PauseError, PauseKind, Pauser, mechanisms};
use consort_core::{Plan, ProgramId};
use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Time after a signal for which nothing is paused, so that its handlers run.
const GRACE: Duration = Duration::from_millis(200);

/// The programs that are paused, and the ones that are not although a plan wants it.
#[derive(Default)]
pub(in crate::live) struct PauseController {
    /// Mechanisms that may be used, best first.
    allowed: Vec<PauseKind>,
    /// The pauser, made when a plan pauses a program for the first time.
    pauser: Option<Pauser>,
    /// Programs that no mechanism can pause.
    refused: BTreeSet<ProgramId>,
    /// Programs whose unmanaged threads were reported.
    reported: BTreeSet<ProgramId>,
    /// Programs that were paused when the quantum began.
    in_quantum: BTreeSet<ProgramId>,
    /// End of the time for which a signal keeps everything running.
    grace: Option<Instant>,
    /// Number of times that programs were paused.
    pub(in crate::live) count: u64,
}

impl PauseController {
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
            Pauser::with_kinds(root, kinds.copied().collect())
        })
    }

    fn paused_programs(&self) -> BTreeSet<ProgramId> {
        let pausers = self.pauser.iter();
        pausers.flat_map(Pauser::paused_programs).collect()
    }

    /// Returns true if a program was paused when the quantum began.
    pub(in crate::live) fn was_paused(&self, program: ProgramId) -> bool {
        self.in_quantum.contains(&program)
    }

    /// Returns true if a program is paused now, by a stop signal.
    pub(in crate::live) fn is_stopped(&self, program: ProgramId) -> bool {
        let kind_of = |pauser: &Pauser| {
            pauser
                .kind_of(program)
                .filter(|_| pauser.is_paused(program))
        };
        self.pauser.as_ref().and_then(kind_of) == Some(PauseKind::Signals)
    }

    /// Pauses the programs that a plan wants paused; returns warnings.
    pub(super) fn pause_as_planned(
        &mut self,
        plan: &Plan,
        site: &LiveTopology,
        table: &ThreadTable,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let mut warnings = Vec::new();
        if !plan.teams.is_empty() {
            let text = "how many threads a running program has cannot be chosen: \
                        programs keep theirs on the cores that they are given";
            warnings.push(text.to_owned());
        }
        self.grace = self.grace.filter(|&end| Instant::now() < end);
        if self.grace.is_some() {
            return warnings;
        }
        for &program in &plan.paused {
            // A mechanism stops whole processes, and these threads are not to be touched.
            if table.has_excluded(program) {
                warnings.push(format!(
                    "program {program} is not paused: threads of it are in control groups that are \
                     not managed"
                ));
            } else if !self.refused.contains(&program) {
                warnings.extend(self.pause(program, site, table, enactor));
            }
        }
        warnings
    }

    /// Resumes the programs that a plan does not want paused; returns warnings.
    pub(super) fn resume_as_planned(
        &mut self,
        plan: &Plan,
        table: &ThreadTable,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let paused = self.paused_programs();
        let resumed = paused.difference(&plan.paused);
        let resumed = resumed.filter_map(|&program| self.resume(program, enactor));
        let mut warnings: Vec<String> = resumed.collect();
        warnings.extend(self.forget_ended(table, enactor));
        self.in_quantum = self.paused_programs();
        warnings
    }

    /// Resumes all programs, and pauses none for a moment; returns warnings.
    pub(super) fn wake_all(&mut self, enactor: &mut Enactor) -> Vec<String> {
        let paused = self.paused_programs().into_iter();
        let warnings = paused.filter_map(|program| self.resume(program, enactor));
        let warnings = warnings.collect();
        self.grace = Some(Instant::now() + GRACE);
        warnings
    }

    fn pause(
        &mut self,
        program: ProgramId,
        site: &LiveTopology,
        table: &ThreadTable,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let pids = table.processes_of(program);
        let pauser = self.pauser(site.root());
        // A program that is paused already is paused again, so that its new processes stop as well.
        let new = !pauser.is_paused(program);
        match pauser.pause(enactor, program, &pids) {
            Ok(pause) => {
                self.count += u64::from(new);
                let kept = self.warn_self_placed(program, table);
                let unsettled = pause
                    .unsettled
                    .map(|why| format!("program {program} does not stand still at once: {why}"));
                kept.into_iter().chain(unsettled).collect()
            }
            Err(PauseError::Gone(_)) => Vec::new(),
            Err(error) => {
                // Lasting obstacles. Others may pass, so the next plan tries again.
                if matches!(error, PauseError::NoWay { .. } | PauseError::Own(_)) {
                    self.refused.insert(program);
                }
                vec![error.to_string()]
            }
        }
    }

    /// Warns, once, of threads of a paused program that are not managed.
    fn warn_self_placed(&mut self, program: ProgramId, table: &ThreadTable) -> Option<String> {
        let placed = table.self_placed().into_iter();
        let its = placed.filter(|id| table.program_of(id.pid) == program);
        let count = its.count();
        (count > 0 && self.reported.insert(program)).then(|| {
            format!(
                "program {program} takes turns as a whole, but {count} of its threads keep their \
                 own affinity and are not given cores"
            )
        })
    }

    fn resume(&mut self, program: ProgramId, enactor: &mut Enactor) -> Option<String> {
        let error = self.pauser.as_mut()?.resume(enactor, program).err()?;
        Some(error.to_string())
    }

    /// Removes cgroups made for pausing programs that have ended; returns warnings.
    pub(super) fn forget_ended(
        &mut self,
        table: &ThreadTable,
        enactor: &mut Enactor,
    ) -> Vec<String> {
        let Some(pauser) = &mut self.pauser else {
            return Vec::new();
        };
        let known: Vec<ProgramId> = pauser.known_programs().collect();
        let ended = known.into_iter();
        let ended = ended.filter(|&program| table.processes_of(program).is_empty());
        let failed = ended.filter_map(|program| pauser.forget(enactor, program).err());
        failed.map(|error| error.to_string()).collect()
    }
}
