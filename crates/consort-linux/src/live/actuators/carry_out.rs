//! Carrying out of plans: pausing, moving threads to their places, and nudging threads back that
//! drift.

use super::{Actuators, AdoptionOutcome, LOOKS_EVERY, monotonic_ns};
use crate::discovery::{RunState, may_be_real_time, real_time_policy};
use crate::enact::{ApplyReport, Refusal, ThreadWish};
use crate::enforce::ThreadPosition;
use crate::live::live_topology::LiveTopology;
use crate::live::observers::ThreadObservers;
use crate::live::thread_table::ThreadTable;
use crate::live::warnings::Warnings;
use crate::proc::{ProcStatus, now_ticks, read_stat, tick_ns};
use consort_core::{EnactmentReport, Placement, Plan, PuSet, ThreadId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Age beyond which `/proc` is read again before a thread is nudged, because the scheduler may have
/// moved it meanwhile.
const FRESH: Duration = Duration::from_millis(2);

/// Parts of a run that the actuators read while they place threads.
pub(in crate::live) struct ActuationContext<'a> {
    pub(in crate::live) site: &'a LiveTopology,
    pub(in crate::live) table: &'a mut ThreadTable,
    pub(in crate::live) observers: &'a mut ThreadObservers,
    pub(in crate::live) warnings: &'a mut Warnings,
}

impl ActuationContext<'_> {
    /// Position of a thread now; `None` if `/proc` does not show it.
    fn thread_position(&mut self, id: ThreadId, now: Instant) -> Option<ThreadPosition> {
        let fresh = self.table.observed_state(id)?.recent_position(now, FRESH);
        let (state, pu) = match fresh {
            Some(reported) => reported,
            None => self.observers.reader.read_state_and_pu(id).ok()?,
        };
        // The age of the thread itself if its leader is not known.
        let since = self.table.leader_of(id.pid).unwrap_or(id).start_ticks;
        Some(ThreadPosition {
            pu,
            runnable: state == RunState::Runnable,
            process_age: Duration::from_nanos(now_ticks().saturating_sub(since) * tick_ns()),
            leads_others: self.table.leads_others(id),
        })
    }

    /// Returns true if some thread of a process may take, or has, a real-time policy: the kernel
    /// refuses `SCHED_DEADLINE` to a thread with a narrow mask, and a pinned real-time thread may find
    /// its CPU taken. Also if some thread is not managed, for example because it has a mask of its
    /// own.
    fn suffers_from_pins(&self, pid: u32) -> bool {
        let root = self.site.root();
        let path = root.join(format!("proc/{pid}/status"));
        // A process that cannot be read may have such threads.
        let may = ProcStatus::read(&path).map_or(true, |status| may_be_real_time(&status));
        may || self
            .table
            .process_threads(&BTreeSet::from([pid]))
            .into_iter()
            .any(|id| {
                let stat = read_stat(root, id.pid, id.tid);
                !self.table.may_place(id)
                    || stat.map_or(true, |stat| real_time_policy(stat.policy).is_some())
            })
    }
}

impl Actuators {
    /// Pauses and resumes programs and puts threads where a plan has them; `quantum` is its length
    /// if the plan wants no other.
    pub(in crate::live) fn carry_out(
        &mut self,
        plan: &Plan,
        quantum: Duration,
        mut context: ActuationContext<'_>,
    ) -> EnactmentReport {
        if self.dry_run {
            return EnactmentReport::default();
        }
        let enactor = &mut self.enactor;
        // Programs stop before masks are written and continue after, so that programs that take turns
        // do not run at the same time.
        let paused = (self.pausing).pause_as_planned(plan, context.site, context.table, enactor);
        context.warnings.extend(paused);
        // Before the orders, which depend on the places that the plan gives.
        let sent = self.enforcement.assign(plan, context.site.topology());
        let orders = self.orders(plan, &mut context);
        let report = self.enactor.apply(&orders);
        (context.warnings).extend(self.in_kernel.apply_plan(plan, quantum));
        let enactor = &mut self.enactor;
        let of_cookies = (self.cookies).share_cores(plan, context.site, context.table, enactor);
        self.enforcement.note_plan_applied(monotonic_ns());
        let resumed = (self.pausing).resume_as_planned(plan, context.table, enactor);
        context.warnings.extend(resumed);
        self.enforcement.add_nudge_windows(&report.windows);
        self.handle_report(report, &sent, of_cookies, context)
    }

    /// Takes in what was enacted of a plan.
    fn handle_report(
        &mut self,
        report: ApplyReport,
        sent: &BTreeSet<ThreadId>,
        warnings: Vec<String>,
        context: ActuationContext<'_>,
    ) -> EnactmentReport {
        let ActuationContext {
            table,
            warnings: for_user,
            ..
        } = context;
        // With a scheduler in the kernel no mask is written, so all that the plan sends elsewhere count
        // as moved.
        let moved = match self.in_kernel.is_running() {
            true => sent.iter().copied().collect(),
            false => {
                let written = report.written.iter().map(|(id, _)| *id);
                written.filter(|id| sent.contains(id)).collect()
            }
        };
        let mut enacted = EnactmentReport {
            moved,
            pinned: self.enforcement.pinned_threads().iter().copied().collect(),
            nudged: report.nudged,
            warnings,
            ..EnactmentReport::default()
        };
        for (id, mask) in report.released {
            enacted.released.push(id);
            enacted.warnings.push(self.release_moved(id, &mask, table));
        }
        // Their cpusets may have changed.
        let refused = report.refused.iter().map(|(id, _)| *id);
        let astray: Vec<ThreadId> = refused.chain(report.shifted.iter().copied()).collect();
        self.recheck(&astray, table);
        for (id, refusal) in &report.refused {
            if matches!(refusal, Refusal::NotManaged) && table.may_place(*id) {
                self.readopt_thread(*id, table, for_user);
            } else {
                let name = table.name(*id);
                let text = format!("thread {id} ({name}) was not moved: {refusal}");
                enacted.warnings.push(text);
            }
        }
        enacted
    }

    /// Takes a thread in again that the enactor has lost: the thread seemed to have exited when it could
    /// not be looked up, for example because descriptors were short.
    fn readopt_thread(&mut self, id: ThreadId, table: &mut ThreadTable, warnings: &mut Warnings) {
        // It inherits from itself: the journal has its original mask, which may be wider than the one
        // that it has now. A thread of a process that was never taken in inherits from the root of its
        // tree.
        let root = table.trees.root_of(id.pid);
        let root = root.and_then(|root| table.leader_of(root));
        let mut known = [Some(id), root].into_iter().flatten();
        let parent = known.find(|parent| self.enactor.has_program(parent.pid));
        match self.adopt_thread(id, parent, warnings) {
            AdoptionOutcome::Managed(original) => table.set_original(id, original),
            AdoptionOutcome::SelfPlaced(mask) => {
                let warning = self.release_moved(id, &mask, table);
                warnings.insert(warning);
            }
            AdoptionOutcome::LetAlone(why) | AdoptionOutcome::Unseen(_, why) => {
                let name = table.name(id);
                warnings.insert(format!("thread {id} ({name}) is not placed for now: {why}"));
            }
            // The next observation finds that out.
            AdoptionOutcome::Gone => {}
        }
    }

    fn orders(
        &mut self,
        plan: &Plan,
        context: &mut ActuationContext<'_>,
    ) -> Vec<(ThreadId, ThreadWish)> {
        let now = Instant::now();
        let mut orders = Vec::with_capacity(plan.placements.len());
        self.suffering
            .retain(|_, (looked, _)| now.saturating_duration_since(*looked) < LOOKS_EVERY);
        for (&id, placement) in &plan.placements {
            let has_place = matches!(placement, Placement::Restricted(_));
            let at = has_place
                .then(|| context.thread_position(id, now))
                .flatten();
            // Looked up only when a pin is considered, and kept for a while: it reads all threads
            // of a process.
            let suffers = || {
                let known = self.suffering.entry(id.pid);
                known
                    .or_insert_with(|| (now, context.suffers_from_pins(id.pid)))
                    .1
            };
            orders.push((id, self.enforcement.choose_wish(id, at, now, suffers)));
        }
        orders
    }

    /// Nudges, between plans, threads that have drifted, or that slept when they were to be moved.
    pub(in crate::live) fn correct_drift(&mut self, mut context: ActuationContext<'_>) {
        let now = Instant::now();
        let mut orders = Vec::new();
        for id in self.enforcement.next_strays() {
            let at = context.thread_position(id, now);
            orders.extend(self.enforcement.choose_nudge(id, at, now).map(|w| (id, w)));
        }
        // `apply` checks the guardian first, which costs system calls.
        if orders.is_empty() {
            return;
        }
        let report = self.enactor.apply(&orders);
        self.enforcement.add_nudge_windows(&report.windows);
        for (id, mask) in report.released {
            context
                .warnings
                .insert(self.release_moved(id, &mask, context.table));
        }
    }

    /// Lets go of a thread whose mask another program has set; returns a warning.
    fn release_moved(&mut self, id: ThreadId, mask: &PuSet, table: &mut ThreadTable) -> String {
        let name = table.mark_released(id);
        self.enforcement.forget(id);
        // Last, because forgetting the first thread of a process forgets the process's choice too.
        self.enforcement.note_own_mask(id);
        self.in_kernel.release_thread(id);
        format!("thread {id} ({name}) was released: another program set its mask to {mask}")
    }
}
