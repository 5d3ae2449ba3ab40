//! Pausing programs: no thread of a process tree runs until it is resumed.
//!
//! Gangs and co-schedules need some programs out of the way while others run. Three mechanisms can
//! do that, best first: the freezer of cgroup version 2, the freezer of version 1, and SIGSTOP with
//! SIGCONT. The first mechanism that works for a program pauses it from then on.
//!
//! [`mechanisms`] lists the mechanisms of a host, and [`Pauser::new`] uses the ones that are available.
//! [`Pauser::pause`] and [`Pauser::resume`] carry plans out, and [`Pauser::forget`] follows a
//! program's end. Every action is journalled before it is taken, so that the guardian of the
//! [`Enactor`] and its [`close`](Enactor::close) leave nothing paused, whatever happens.
//!
//! The states of a program:
//!
//! | from | event | to |
//! |---|---|---|
//! | unknown | `pause`: the first mechanism that works takes its processes in | paused |
//! | unknown | `pause` when none works, or without guardian or journal: undone | unknown |
//! | paused | `pause`: processes that were born or found since are taken in | paused |
//! | paused | `resume` | running |
//! | running | `pause` | paused |
//! | any | `forget`, or the end of the run: every process is where it was | unknown |
//!
//! Pitfalls: a signal that must be handled reaches a paused program only when it is resumed, so
//! resume a program before you pass a signal on. SIGKILL is the exception, but the freezer of
//! version 1 holds even that back. With SIGSTOP, a program that another process stops while it is
//! paused continues when it is resumed, because the kernel knows only one stop; and parents that
//! watch for stopped children see it.

mod freezer;
mod freezer_mechanism;
mod pauser;
mod signals;
#[cfg(test)]
mod tests;

pub(crate) use freezer::FreezerCgroup;
pub use pauser::{PauseOutcome, Pauser};

use crate::cgroup::{CgroupVersion, text_of_file};
use crate::enact::{Enactor, GuardianHealth, JournalError, JournalRecord};
use crate::proc::{ProcError, ProgramProcesses};
use crate::read;
use consort_core::ProgramId;
use freezer::freezer_hierarchy;
use nix::unistd::{AccessFlags, eaccess};
use serde::Serialize;
use std::fmt;
use std::path::Path;
use thiserror::Error;

/// A mechanism by which programs are paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PauseKind {
    /// The freezer of cgroup version 2 (`cgroup.freeze`, since Linux 5.2).
    FreezerV2,
    /// The freezer controller of cgroup version 1 (`freezer.state`).
    FreezerV1,
    /// SIGSTOP and SIGCONT to each process.
    Signals,
}

impl PauseKind {
    /// All mechanisms, best first.
    pub const ALL: [Self; 3] = [Self::FreezerV2, Self::FreezerV1, Self::Signals];

    /// Returns the name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::FreezerV2 => "freezer-v2",
            Self::FreezerV1 => "freezer-v1",
            Self::Signals => "signals",
        }
    }
}

impl fmt::Display for PauseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// One mechanism that holds the processes of one program.
pub(crate) trait PauseMechanism: fmt::Debug {
    /// Journals each process that the mechanism does not hold yet, then requests all processes to stop.
    /// Returns the number of new processes.
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError>;

    fn is_still(&self) -> bool;

    /// Lets all processes continue; an error names a process or cgroup that cannot.
    fn resume_all(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String>;

    /// Lets all processes continue and puts everything back as it was before the first
    /// `stop_members`; an error names a process or cgroup that could not be put back.
    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        self.resume_all(journal)
    }

    fn process_count(&self) -> usize;

    /// Returns true if children of held processes are held from birth.
    fn holds_children(&self) -> bool {
        false
    }

    /// Returns true if the mechanism holds the process, or leaves it alone on purpose.
    fn knows(&self, pid: u32) -> bool;
}

/// The journal, in which an action is recorded before it is taken.
pub(crate) trait PauseJournal {
    fn journal_run_id(&self) -> String;

    /// Records an action that follows; if this fails, the action must not be taken.
    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError>;

    /// Records that actions were undone.
    fn record_undone(&mut self, records: &[JournalRecord]);
}

impl PauseJournal for Enactor {
    fn journal_run_id(&self) -> String {
        self.run_id().to_owned()
    }

    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
        // Only the guardian resumes the program if this process is killed.
        if matches!(self.ensure_guardian(), GuardianHealth::Missing(_)) {
            return Err(HoldError::NoGuardian);
        }
        self.rewrite_if_grown();
        self.record(records).map_err(HoldError::Journal)
    }

    fn record_undone(&mut self, records: &[JournalRecord]) {
        if let Err(error) = self.record(records) {
            // Harmless: at the end the processes get one SIGCONT too many, or the guardian looks
            // for cgroups that are gone.
            tracing::warn!(%error, "resumed programs may be resumed once more");
        }
    }
}

/// Reason for which a program was not paused, or not resumed.
#[derive(Debug, Error)]
pub enum PauseError {
    /// The program has ended.
    #[error("program {0} has ended")]
    Gone(ProgramId),
    /// Consort itself is among the program's processes.
    #[error("program {0} cannot be paused: this consort is part of it")]
    Own(ProgramId),
    /// No mechanism works for the program, which therefore still runs.
    #[error("program {program} cannot be paused: {}", list_reasons(reasons))]
    NoWay {
        /// The program.
        program: ProgramId,
        /// The obstacle to each mechanism that was tried, in that order.
        reasons: Vec<(PauseKind, String)>,
    },
    /// The journal cannot be written, so nothing may be paused.
    #[error("program {0} was not paused: {1}")]
    Journal(ProgramId, #[source] JournalError),
    /// There is no guardian, and none can be started.
    #[error("program {0} was not paused: there is no guardian to resume it")]
    NoGuardian(ProgramId),
    /// Processes of the program cannot be looked up at the moment; try again later.
    #[error("program {0} was not paused: it cannot be looked up: {1}")]
    Unseen(ProgramId, ProcError),
    /// The kernel refused to let the program continue. It counts as paused until another attempt
    /// succeeds; the guardian and the end of the run try again, too.
    #[error("program {program} could not be resumed: {why}")]
    Stuck {
        /// The program.
        program: ProgramId,
        /// The kernel's answer, with the cgroup or process that it was about.
        why: String,
    },
}

fn list_reasons(reasons: &[(PauseKind, String)]) -> String {
    let each = reasons.iter().map(|(kind, why)| format!("{kind}: {why}"));
    each.collect::<Vec<_>>().join("; ")
}

/// Reason for which a mechanism did not hold a program.
#[derive(Debug)]
pub(crate) enum HoldError {
    /// The mechanism does not work for this program; another one may.
    Unusable(String),
    Journal(JournalError),
    NoGuardian,
    /// Processes cannot be looked up or held at the moment.
    Unseen(ProcError),
}

impl HoldError {
    /// Converts the error for callers if no other mechanism is tried.
    fn into_pause_error(self, program: ProgramId, kind: PauseKind) -> PauseError {
        match self {
            Self::Unusable(why) => {
                let reasons = vec![(kind, why)];
                PauseError::NoWay { program, reasons }
            }
            Self::Journal(error) => PauseError::Journal(program, error),
            Self::NoGuardian => PauseError::NoGuardian(program),
            Self::Unseen(error) => PauseError::Unseen(program, error),
        }
    }
}

/// Verdict on one mechanism, for programs in the caller's own cgroup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PauseSupport {
    /// The mechanism.
    pub kind: PauseKind,
    /// True if the mechanism can be used.
    pub available: bool,
    /// The folder or calls that the mechanism uses, or the obstacle to using it.
    pub reason: String,
}

/// Returns a verdict on every mechanism, best first, for the host whose `/proc` and `/sys` are below
/// `root`.
pub fn mechanisms(root: &Path) -> Vec<PauseSupport> {
    let judge = |kind| {
        let found = match kind {
            PauseKind::FreezerV2 => check_freezer(root, CgroupVersion::V2),
            PauseKind::FreezerV1 => check_freezer(root, CgroupVersion::V1),
            PauseKind::Signals => Ok("SIGSTOP and SIGCONT to own processes".into()),
        };
        PauseSupport {
            kind,
            available: found.is_ok(),
            reason: found.unwrap_or_else(|why| why),
        }
    };
    PauseKind::ALL.map(judge).into()
}

fn check_freezer(root: &Path, version: CgroupVersion) -> Result<String, String> {
    let name = match version {
        CgroupVersion::V1 => "the freezer of cgroup version 1",
        CgroupVersion::V2 => "cgroup version 2",
    };
    let hierarchy = freezer_hierarchy(root, version);
    let hierarchy = hierarchy.ok_or_else(|| format!("{name} is not mounted"))?;
    let own = text_of_file(&root.join("proc/self/cgroup"));
    let own = own.ok_or("/proc/self/cgroup cannot be read")?;
    // A move within a hierarchy that has other controllers would change their limits as well.
    let others = hierarchy.other_controllers(&own);
    if !others.is_empty() {
        return Err(format!("{name} is mounted with {}", others.join(", ")));
    }
    let dir = hierarchy.dir_of(&own);
    let dir = dir.ok_or_else(|| format!("the own cgroup is not visible in {name}"))?;
    for (path, access) in [
        (dir.clone(), AccessFlags::W_OK | AccessFlags::X_OK),
        (dir.join("cgroup.procs"), AccessFlags::W_OK),
    ] {
        eaccess(&path, access).map_err(|errno| {
            let path = path.display();
            format!("{path} may not be written: {errno}; have the cgroup delegated or be root")
        })?;
    }
    if version == CgroupVersion::V2 && !dir.join("cgroup.freeze").exists() {
        // The root cgroup never has that file, so there the kernel's release decides.
        let release = read::text(&root.join("proc/sys/kernel/osrelease")).unwrap_or_default();
        let mut numbers = release.split('.').map_while(|n| n.parse::<u32>().ok());
        if (numbers.next(), numbers.next()) < (Some(5), Some(2)) {
            return Err("this kernel has no cgroup.freeze (before Linux 5.2)".into());
        }
    }
    Ok(format!("cgroups below {}", dir.display()))
}

#[cfg(test)]
mod detect_tests {
    use super::*;
    use std::fs;

    const BOTH: &str = "1 1 0:1 / /cg/freezer rw - cgroup cgroup rw,freezer\n\
                        2 1 0:2 / /cg/unified rw - cgroup2 cgroup2 rw\n";

    fn check(mountinfo: &str, cgroup: &str, files: &[(&str, &str)], expect: [&str; 2]) {
        let dir = tempfile::tempdir().unwrap();
        let own = [
            ("proc/self/mountinfo", mountinfo),
            ("proc/self/cgroup", cgroup),
        ];
        for (name, content) in own.iter().chain(files) {
            let path = dir.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let found = mechanisms(dir.path());
        let shown = |i: usize| found[i].reason.replace(dir.path().to_str().unwrap(), "");
        assert_eq!([shown(0), shown(1)], expect);
        assert!(found[2].available);
    }

    const FILES: [(&str, &str); 3] = [
        ("cg/freezer/a/cgroup.procs", ""),
        ("cg/unified/b/cgroup.procs", ""),
        ("proc/sys/kernel/osrelease", "6.18.4-x\n"),
    ];

    #[test]
    fn both_mounted_freezers_are_found() {
        check(
            BOTH,
            "6:freezer:/a\n0::/b\n",
            &FILES,
            ["cgroups below /cg/unified/b", "cgroups below /cg/freezer/a"],
        );
    }

    #[test]
    fn unmounted_freezers_are_named() {
        check(
            "",
            "0::/\n",
            &[],
            [
                "cgroup version 2 is not mounted",
                "the freezer of cgroup version 1 is not mounted",
            ],
        );
    }

    #[test]
    fn freezer_with_other_controllers_is_not_used() {
        check(
            BOTH,
            "6:cpuset,freezer:/a\n0::/b/../c\n",
            &FILES,
            [
                "the own cgroup is not visible in cgroup version 2",
                "the freezer of cgroup version 1 is mounted with cpuset",
            ],
        );
    }

    #[test]
    fn kernel_without_cgroup_freeze_is_too_old() {
        let files = [FILES[1], ("proc/sys/kernel/osrelease", "4.19.0\n")];
        check(
            BOTH,
            "6:freezer:/none\n0::/b\n",
            &files,
            [
                "this kernel has no cgroup.freeze (before Linux 5.2)",
                "/cg/freezer/none may not be written: ENOENT: No such file or directory; \
                 have the cgroup delegated or be root",
            ],
        );
    }
}
