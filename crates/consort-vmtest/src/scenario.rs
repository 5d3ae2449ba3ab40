//! The scenarios of `scenarios/`, with their parameters.

use crate::vm::Vm;

/// Files that all stories need; each goes to `/scenario` in the guest.
const FILES: [(&str, &str); 2] = [
    ("story.sh", include_str!("../scenarios/story.sh")),
    ("load.sh", include_str!("../scenarios/load.sh")),
];

/// Story of a load of fp and int threads while `consort run` places it.
///
/// Every story ends with the sections `ended` (Consort's output, with its exit status), `report`,
/// `after` (the masks once it is gone) and `left` (what it has left behind), unless it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScenarioKind {
    /// `before` it, `during` a run, `after` it, during a run `again`, and once it was `killed`.
    Placement,
    /// `during` a run, and `after` it.
    Brief,
    /// A run of so many seconds of the guest; it has a report and no other sections.
    Held {
        /// Length of the run, s of the guest.
        seconds: u32,
        /// Busy threads next to it that Consort does not manage.
        foreign: u32,
    },
    /// A trial, `managed`, `unmanaged`, managed `again` and unmanaged a `second` time, as masks show
    /// it if the enactor is `pin`; else it lasts for some stretches. Its `timeline` has the
    /// unmanaged stretches and the counts of nudges.
    Trial,
    /// `inside` a cpuset; then the cpuset has `shrunk`; `after` the run it is `lifted`.
    Cpuset {
        /// The CPUs of the cpuset.
        pus: &'static str,
        /// The CPUs of the cpuset once it has shrunk.
        shrunk: &'static str,
    },
    /// With cookies, `shared` `during` a run that ends, `again` one that is `killed`, `third` one
    /// that the next run clears up after, and `fourth` one that a sched_ext scheduler meets; the
    /// cookies each time.
    Cookies,
    /// `during` a run an fp thread's CPU is `taken` offline, threads are placed `without`
    /// it, and `after` the run it comes `back`.
    Offline,
}

/// A story about a load under a policy. The guest needs `/bin/consort`, `/bin/consort-demo` and
/// `/bin/guest-probe`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Begins the name of each section: `NAME-during`.
    pub name: &'static str,
    /// Course of events.
    pub story: ScenarioKind,
    /// The policy for `consort run`.
    pub policy: &'static str,
    /// Threads that mostly use the FPU.
    pub fp: u32,
    /// Threads that do not.
    pub int: u32,
    /// Threads that mostly sleep.
    pub sleepers: u32,
    /// Enactor that keeps threads in their places; only `pin` shows in masks.
    pub enact: &'static str,
    /// True if all threads of a kind are one program's, rather than a program each.
    pub one_program_per_kind: bool,
    /// Time that each thread of the load takes.
    pub share: LoadShare,
    /// Consort's quantum, ms of the guest. A thread must get its turn within one, or it counts as
    /// inactive and loses its place.
    pub interval_ms: u32,
}

/// Bound on the time of the load's threads: one host thread emulates all CPUs, 100 ms each by turns
/// if all are busy, and unbounded threads would leave Consort next to nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoadShare {
    /// Threads work and sleep by turns of so many milliseconds.
    Turns {
        /// Length of work, ms.
        work_ms: u32,
        /// Length of sleep, ms.
        rest_ms: u32,
    },
    /// Threads are always busy, and all are throttled to so many percent of a CPU each.
    Quota(u32),
}

/// Polls without a change after which a placement counts as settled.
const STABLE_POLLS: u32 = 3;
/// Polls after which a wait is given up.
const LIMIT_POLLS: u32 = 180;

impl Scenario {
    /// A story with programs of one thread each.
    #[must_use]
    pub fn new(
        name: &'static str,
        story: ScenarioKind,
        policy: &'static str,
        fp: u32,
        int: u32,
    ) -> Self {
        Self {
            name,
            story,
            policy,
            fp,
            int,
            sleepers: 0,
            enact: "pin",
            one_program_per_kind: false,
            share: LoadShare::Turns {
                work_ms: 3,
                rest_ms: 27,
            },
            interval_ms: 500,
        }
    }

    /// Adds the story to a guest as its next command.
    #[must_use]
    pub fn add_to(&self, vm: Vm) -> Vm {
        let (file, script) = self.story.script();
        let vm = FILES.iter().fold(vm, |vm, (name, text)| {
            vm.file(&format!("/scenario/{name}"), *text)
        });
        vm.file(&format!("/scenario/{file}"), script)
            .command(self.name, &self.shell_command(file))
    }

    fn shell_command(&self, file: &str) -> String {
        let shape = if self.one_program_per_kind {
            "threads"
        } else {
            "programs"
        };
        let poll_s = f64::from(self.interval_ms) / 1e3;
        let (turns, quota) = match self.share {
            LoadShare::Turns { work_ms, rest_ms } => (format!("--duty-ms {work_ms} {rest_ms}"), 0),
            LoadShare::Quota(percent) => (String::new(), percent),
        };
        let Self {
            name,
            policy,
            fp,
            int,
            sleepers,
            enact,
            interval_ms,
            ..
        } = self;
        format!(
            "export NAME={name} POLICY={policy} ENACT={enact} FP={fp} INT={int} SLEEPERS={sleepers} SHAPE={shape} \
             TURNS='{turns}' QUOTA={quota} INTERVAL={interval_ms}ms POLL={poll_s} STABLE={STABLE_POLLS} LIMIT={LIMIT_POLLS}\n\
             {}sh /scenario/{file}\n",
            self.story.variables()
        )
    }
}

impl ScenarioKind {
    fn script(self) -> (&'static str, &'static str) {
        match self {
            Self::Placement => ("placement.sh", include_str!("../scenarios/placement.sh")),
            Self::Brief => ("brief.sh", include_str!("../scenarios/brief.sh")),
            Self::Held { .. } => ("held.sh", include_str!("../scenarios/held.sh")),
            Self::Cpuset { .. } => ("cpuset.sh", include_str!("../scenarios/cpuset.sh")),
            Self::Trial => ("trial.sh", include_str!("../scenarios/trial.sh")),
            Self::Cookies => ("cookies.sh", include_str!("../scenarios/cookies.sh")),
            Self::Offline => ("offline.sh", include_str!("../scenarios/offline.sh")),
        }
    }

    fn variables(self) -> String {
        match self {
            Self::Cpuset { pus, shrunk } => format!("export CPUSET={pus} SHRUNK={shrunk}\n"),
            Self::Held { seconds, foreign } => {
                format!("export HOLD={seconds} FOREIGN={foreign}\n")
            }
            Self::Trial => {
                "export FLAGS=\"--trial --stretch 12s --timeline /tmp/$NAME.trace\"\n".to_owned()
            }
            _ => String::new(),
        }
    }
}
