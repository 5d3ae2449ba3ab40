//! Measurement of threads alone: now and then the threads of a core take turns on one of its CPUs.

use crate::plan::{Decision, Placement, Reason};
use crate::policies::grouping::{GroupedThreads, leave_to_os};
use crate::policy::View;
use crate::sample::ThreadObservation;

/// Quanta after a measurement whose stacks still contain parts of it, because a stack of more
/// events than there are counters is read over two (section 4.1 of the paper).
const STALE_QUANTA: u64 = 1;

/// Schedule of measurements of threads alone.
#[doc(alias = "sampling phase")]
#[derive(Debug)]
pub(super) struct IsolationSchedule {
    period: u64,
    /// Quanta from the last measurement to the next, at most the period.
    wait: u64,
    alone_ns: u64,
    /// Quanta since the last measurement.
    since: Option<u64>,
    is_on: bool,
}

impl IsolationSchedule {
    /// Measures every `period` quanta, for `alone_ns` per thread of a core.
    pub(super) fn new(period: u64, alone_ns: u64) -> Self {
        Self {
            period,
            wait: period,
            alone_ns,
            since: None,
            is_on: false,
        }
    }

    /// Measures sooner at first: `first` quanta apart, then twice as long each time up to the
    /// period. For values that are useful only after several measurements.
    pub(super) fn with_first_wait(mut self, first: u64) -> Self {
        self.wait = first.min(self.period);
        self
    }

    /// Returns true if the quantum that has just ended was a measurement.
    pub(super) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns true if a measurement is due.
    pub(super) fn is_due(&self) -> bool {
        !self.is_on && self.since.is_none_or(|since| since >= self.wait)
    }

    /// Returns true if the last measurement still shows in the stacks.
    pub(super) fn is_fresh(&self) -> bool {
        self.since.is_some_and(|since| since <= STALE_QUANTA)
    }

    /// Counts a quantum in which threads run together.
    pub(super) fn count_quantum(&mut self) {
        self.is_on = false;
        self.since = self.since.map(|since| since + 1);
    }

    /// Lets the members of every group take turns on one CPU of a core: of `cores`, one per group,
    /// else of the core of the first member.
    pub(super) fn begin_measurement(
        &mut self,
        view: View<'_>,
        crew: &GroupedThreads<'_>,
        groups: &[Vec<usize>],
        cores: Option<&[Option<usize>]>,
        decision: &mut Decision,
    ) {
        // As long as the largest group needs for a turn of each member.
        let most = groups.iter().map(Vec::len).max().unwrap_or(1) as u64;
        decision.quantum_ns = Some(self.alone_ns.saturating_mul(most));
        let note = "the threads of each core take turns on one of its CPUs, to be measured alone";
        decision.report.notes.push(note.to_owned());
        for (number, group) in groups.iter().enumerate() {
            let members: Vec<&ThreadObservation> = group.iter().map(|&i| crew.members[i]).collect();
            let core = match cores {
                Some(cores) => cores[number],
                None => members
                    .first()
                    .and_then(|first| view.topology.core_of(first.last_pu?)),
            };
            // The first CPU of the core that all may use.
            let pu = core.and_then(|core| {
                let mut pus = view.topology.cores()[core].pus.iter().copied();
                pus.find(|&pu| members.iter().all(|member| member.original.contains(pu)))
            });
            for member in &members {
                let Some(pu) = pu else {
                    leave_to_os(member, "its group has no CPU in common", decision);
                    continue;
                };
                let reason = Reason {
                    considered: "its group of the last quantum".to_owned(),
                    chosen: format!("CPU {pu}, in turns with its group, to be measured alone"),
                    facts: Vec::new(),
                };
                decision.place(member.id, Placement::Restricted(pu.into()), reason);
            }
        }
        if self.since.is_some() {
            self.wait = self.wait.saturating_mul(2).min(self.period);
        }
        self.since = Some(0);
        self.is_on = true;
    }
}
