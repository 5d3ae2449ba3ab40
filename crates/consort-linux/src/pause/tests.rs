//! The state machine on made-up processes, with mechanisms that fail on request.

use super::pauser::{MechanismConstructor, PauseOutcome, Pauser};
use super::{HoldError, PauseError, PauseJournal, PauseKind, PauseMechanism};
use crate::enact::JournalRecord;
use crate::proc::{ProgramProcesses, process};
use consort_core::ProgramId;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};

/// State of the made-up processes, and the failures that mechanisms and journal are to show.
#[derive(Debug, Default)]
struct World {
    stopped: BTreeSet<u32>,
    /// Number of processes that each mechanism still takes before it fails; no limit for one not
    /// listed.
    takes: BTreeMap<PauseKind, usize>,
    journalled: BTreeSet<u32>,
    journal_fails: bool,
    /// True if some thread is to wait in the kernel, so that nothing stands still.
    restless: bool,
    /// True if nothing that is stopped can be let go on.
    sticks: bool,
}

type Shared = Arc<Mutex<World>>;

fn see(world: &Shared) -> MutexGuard<'_, World> {
    world.lock().unwrap()
}

#[derive(Debug)]
struct Fake {
    kind: PauseKind,
    world: Shared,
    held: BTreeSet<u32>,
}

impl PauseMechanism for Fake {
    fn stop_members(
        &mut self,
        journal: &mut dyn PauseJournal,
        members: &ProgramProcesses,
    ) -> Result<usize, HoldError> {
        let mut taken = 0;
        for &pid in members.keys() {
            let start_ticks = 1;
            journal.record_ahead(&[JournalRecord::Paused { pid, start_ticks }])?;
            let mut world = see(&self.world);
            if let Some(left) = world.takes.get_mut(&self.kind) {
                let next = left.checked_sub(1);
                *left = next.ok_or_else(|| HoldError::Unusable("as told".into()))?;
            }
            world.stopped.insert(pid);
            taken += usize::from(self.held.insert(pid));
        }
        see(&self.world).stopped.extend(&self.held);
        Ok(taken)
    }

    fn is_still(&self) -> bool {
        let world = see(&self.world);
        !world.restless && self.held.is_subset(&world.stopped)
    }

    fn resume_all(&mut self, _: &mut dyn PauseJournal) -> Result<(), String> {
        let held = &self.held;
        if see(&self.world).sticks {
            return Err("stuck".into());
        }
        see(&self.world).stopped.retain(|pid| !held.contains(pid));
        Ok(())
    }

    fn restore_processes(&mut self, journal: &mut dyn PauseJournal) -> Result<(), String> {
        self.resume_all(journal)?;
        self.held.clear();
        Ok(())
    }

    fn process_count(&self) -> usize {
        self.held.len()
    }

    fn knows(&self, pid: u32) -> bool {
        self.held.contains(&pid)
    }
}

struct Notes(Shared);

impl PauseJournal for Notes {
    fn journal_run_id(&self) -> String {
        "run".into()
    }

    fn record_ahead(&mut self, records: &[JournalRecord]) -> Result<(), HoldError> {
        let mut world = see(&self.0);
        if world.journal_fails {
            return Err(HoldError::NoGuardian);
        }
        let pids = records.iter().filter_map(|record| match record {
            JournalRecord::Paused { pid, .. } => Some(*pid),
            _ => None,
        });
        world.journalled.extend(pids);
        Ok(())
    }

    fn record_undone(&mut self, _: &[JournalRecord]) {}
}

struct Bench {
    root: tempfile::TempDir,
    world: Shared,
    pauser: Pauser,
    /// Program of each process.
    processes: BTreeMap<u32, u32>,
}

const PROGRAMS: [u32; 2] = [100, 200];

impl Bench {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let world = Shared::default();
        let of_fakes = Arc::clone(&world);
        let make: MechanismConstructor = Box::new(move |_, kind, _, _| {
            Box::new(Fake {
                kind,
                world: Arc::clone(&of_fakes),
                held: BTreeSet::new(),
            })
        });
        let pauser = Pauser::with_constructor(root.path(), PauseKind::ALL.to_vec(), make);
        let mut bench = Self {
            root,
            world,
            pauser,
            processes: BTreeMap::new(),
        };
        for pid in PROGRAMS {
            bench.born(pid, pid, 1);
        }
        bench
    }

    fn born(&mut self, program: u32, pid: u32, parent: u32) {
        process(self.root.path(), pid, parent, &[(pid, "x", 1)]);
        self.processes.insert(pid, program);
    }

    fn pause(&mut self, program: u32) -> Result<PauseOutcome, PauseError> {
        let journal = &mut Notes(Arc::clone(&self.world));
        let pids = BTreeSet::from([program]);
        self.pauser
            .pause_in_journal(journal, ProgramId(program), &pids)
    }

    fn resume(&mut self, program: u32) -> bool {
        let journal = &mut Notes(Arc::clone(&self.world));
        self.pauser
            .resume_in_journal(journal, ProgramId(program))
            .unwrap()
    }

    /// Numbers of a program's processes that are stopped, and that are not.
    fn counts(&self, program: u32) -> (usize, usize) {
        let own = self.processes.iter().filter(|(_, of)| **of == program);
        let stopped = own.clone().filter(|(pid, _)| self.is_stopped(**pid));
        let stopped = stopped.count();
        (stopped, own.count() - stopped)
    }

    fn is_stopped(&self, pid: u32) -> bool {
        see(&self.world).stopped.contains(&pid)
    }
}

#[test]
fn unusable_mechanism_is_undone_before_the_next() {
    let mut bench = Bench::new();
    bench.born(100, 101, 100);
    see(&bench.world).takes.insert(PauseKind::FreezerV2, 1);
    let pause = bench.pause(100).unwrap();
    assert_eq!((pause.kind, pause.processes), (PauseKind::FreezerV1, 2));
    assert_eq!(bench.counts(100), (2, 0));
}

#[test]
fn program_that_no_mechanism_holds_keeps_running() {
    let mut bench = Bench::new();
    bench.born(100, 101, 100);
    for kind in PauseKind::ALL {
        see(&bench.world).takes.insert(kind, 1);
    }
    let error = bench.pause(100).unwrap_err().to_string();
    assert_eq!(
        error,
        "program 100 cannot be paused: freezer-v2: as told; freezer-v1: as told; signals: as told"
    );
    assert_eq!(bench.counts(100), (0, 2));
}

#[test]
fn without_a_guardian_nothing_is_paused() {
    let mut bench = Bench::new();
    see(&bench.world).journal_fails = true;
    assert!(matches!(
        bench.pause(100),
        Err(PauseError::NoGuardian(ProgramId(100)))
    ));
    assert_eq!(bench.counts(100), (0, 1));
}

#[test]
fn restless_program_is_reported_and_can_be_resumed() {
    let mut bench = Bench::new();
    see(&bench.world).restless = true;
    let pause = bench.pause(100).unwrap();
    assert_eq!(
        pause.unsettled,
        Some("some of it waits in the kernel or for a CPU")
    );
    assert!(bench.resume(100));
    see(&bench.world).restless = false;
    assert_eq!(bench.pause(100).unwrap().unsettled, None);
}

#[test]
fn ended_program_is_reported_as_gone() {
    let mut bench = Bench::new();
    assert!(matches!(bench.pause(300), Err(PauseError::Gone(_))));
}

#[test]
fn stuck_program_is_resumed_by_next_attempt() {
    let mut bench = Bench::new();
    bench.pause(100).unwrap();
    see(&bench.world).sticks = true;
    let id = ProgramId(100);
    let journal = &mut Notes(Arc::clone(&bench.world));
    let resumed = bench.pauser.resume_in_journal(journal, id);
    assert!(
        matches!(resumed, Err(PauseError::Stuck { .. })),
        "{resumed:?}"
    );
    let forgotten = bench.pauser.undo(journal, id);
    assert!(
        matches!(forgotten, Err(PauseError::Stuck { .. })),
        "{forgotten:?}"
    );
    assert!(bench.pauser.is_paused(id));
    see(&bench.world).sticks = false;
    assert!(bench.resume(100));
    assert_eq!(bench.counts(100), (0, 1));
}

#[test]
fn unreadable_program_has_not_ended() {
    let mut bench = Bench::new();
    // A folder in place of a file answers EISDIR to every user.
    std::fs::create_dir_all(bench.root.path().join("proc/300/task/300/stat")).unwrap();
    let error = bench.pause(300).unwrap_err();
    assert!(matches!(error, PauseError::Unseen(..)), "{error}");
    assert!(
        error
            .to_string()
            .starts_with("program 300 was not paused: it cannot be looked up")
    );
}

#[test]
fn consort_does_not_pause_itself() {
    let mut bench = Bench::new();
    bench.born(100, std::process::id(), 100);
    assert!(matches!(bench.pause(100), Err(PauseError::Own(_))));
}

/// One step: an action or an event, which the property test pairs with a program.
#[derive(Clone, Copy, Debug)]
enum Step {
    Pause,
    Resume,
    Birth,
    Limit(usize),
    NoLimit,
    Journal(bool),
}

fn step() -> impl Strategy<Value = (Step, u32)> {
    let step = prop_oneof![
        4 => Just(Step::Pause),
        3 => Just(Step::Resume),
        3 => Just(Step::Birth),
        1 => (0usize..6).prop_map(Step::Limit),
        1 => Just(Step::NoLimit),
        1 => any::<bool>().prop_map(Step::Journal),
    ];
    (step, prop::sample::select(PROGRAMS.to_vec()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn program_is_paused_wholly_or_not_at_all(steps in prop::collection::vec(step(), 1..30)) {
        let mut bench = Bench::new();
        for (step, program) in steps {
            match step {
                Step::Pause => {
                    let paused = bench.pause(program).is_ok();
                    let id = ProgramId(program);
                    prop_assert!(!paused || bench.counts(program).1 == 0);
                    prop_assert!(!paused || bench.pauser.is_paused(id));
                }
                Step::Resume => {
                    let was = bench.pauser.is_paused(ProgramId(program));
                    prop_assert_eq!(bench.resume(program), was);
                }
                Step::Birth => {
                    let count = u32::try_from(bench.processes.len()).unwrap();
                    bench.born(program, program + count, program);
                }
                Step::Limit(most) => {
                    let limits = PauseKind::ALL.map(|kind| (kind, most));
                    see(&bench.world).takes = limits.into();
                }
                Step::NoLimit => see(&bench.world).takes.clear(),
                Step::Journal(fails) => see(&bench.world).journal_fails = fails,
            }
            for program in PROGRAMS {
                let (stopped, _) = bench.counts(program);
                prop_assert!(stopped == 0 || bench.pauser.is_paused(ProgramId(program)));
            }
            let world = see(&bench.world);
            prop_assert!(world.stopped.is_subset(&world.journalled));
        }
    }
}
