//! Carrying out of plans: pausing, moving threads to their places, and nudging back those that
//! drift.

use super::{Hands, LOOKS_EVERY, Taken, monotonic_ns, refusal_of};
use crate::discovery::{RunState, may_be_real_time, real_time};
use crate::enact::{ApplyReport, Refusal, Wanted};
use crate::enforce::Whereabouts;
use crate::live::roster::Roster;
use crate::live::senses::Senses;
use crate::live::site::Site;
use crate::live::warnings::Warnings;
use crate::proc::{Status, now_ticks, read_stat, tick_ns};
use consort_core::{Enacted, Placement, Plan, PuSet, ThreadId};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Age beyond which a reading of `/proc` is made again before a thread is nudged: the scheduler may
/// have moved it meanwhile.
const FRESH: Duration = Duration::from_millis(2);

/// Parts of a run that the hands ask while they place threads.
pub(in crate::live) struct Reach<'a> {
    pub(in crate::live) site: &'a Site,
    pub(in crate::live) roster: &'a mut Roster,
    pub(in crate::live) senses: &'a mut Senses,
    pub(in crate::live) warnings: &'a mut Warnings,
}

impl Reach<'_> {
    /// Position of a thread now; none where `/proc` does not tell it.
    fn whereabouts(&mut self, id: ThreadId, now: Instant) -> Option<Whereabouts> {
        let fresh = self.roster.seen(id)?.fresh(now, FRESH);
        let (state, pu) = match fresh {
            Some(told) => told,
            None => self.senses.place(id)?,
        };
        Some(Whereabouts {
            pu,
            runnable: state == RunState::Runnable,
            process_age: self.process_age(id),
            leads_others: self.roster.leads_others(id),
        })
    }

    /// Returns true if some thread of a process may take, or has, a real-time policy: the kernel
    /// refuses `SCHED_DEADLINE` to a thread with a narrow mask, and a pinned real-time thread may
    /// find its PU taken. Also if some thread is let alone, for example because it has a mask of its
    /// own.
    fn suffers_from_pins(&self, pid: u32) -> bool {
        let root = self.site.root();
        let path = root.join(format!("proc/{pid}/status"));
        // What cannot be read may suffer.
        let may = Status::read(&path).map_or(true, |status| may_be_real_time(&status));
        may || self
            .roster
            .of_processes(&BTreeSet::from([pid]))
            .into_iter()
            .any(|id| {
                let stat = read_stat(root, id.pid, id.tid);
                !self.roster.may_place(id)
                    || stat.map_or(true, |stat| real_time(stat.policy).is_some())
            })
    }

    /// Time since the start of a thread's process; of the thread, where its leader is not known.
    fn process_age(&self, id: ThreadId) -> Duration {
        let leader = self.roster.leader_of(id.pid).unwrap_or(id);
        let since = leader.start_ticks;
        Duration::from_nanos(now_ticks().saturating_sub(since) * tick_ns())
    }
}

impl Hands {
    /// Pauses and resumes programs and puts threads where a plan has them; `quantum` is its length
    /// if the plan wants no other.
    pub(in crate::live) fn carry_out(
        &mut self,
        plan: &Plan,
        quantum: Duration,
        mut reach: Reach<'_>,
    ) -> Enacted {
        if self.dry_run {
            return Enacted::default();
        }
        let enactor = &mut self.enactor;
        let paused = (self.pausing).pause_as_planned(plan, reach.site, reach.roster, enactor);
        reach.warnings.extend(paused);
        let sent = self.enforcement.assign(plan, reach.site.topology());
        let orders = self.orders(plan, &mut reach);
        let report = self.enactor.apply(&orders);
        (reach.warnings).extend(self.in_kernel.follow(plan, quantum));
        let enactor = &mut self.enactor;
        let of_cookies = (self.cookies).share_cores(plan, reach.site, reach.roster, enactor);
        self.enforcement.carried_out(monotonic_ns());
        let resumed = (self.pausing).resume_as_planned(plan, reach.roster, enactor);
        reach.warnings.extend(resumed);
        self.enforcement.nudged(&report.windows);
        self.enacted(report, &sent, of_cookies, reach)
    }

    /// Takes in what was enacted of a plan.
    fn enacted(
        &mut self,
        report: ApplyReport,
        sent: &BTreeSet<ThreadId>,
        warnings: Vec<String>,
        reach: Reach<'_>,
    ) -> Enacted {
        let Reach {
            roster,
            warnings: for_user,
            ..
        } = reach;
        let mut enacted = Enacted {
            moved: self.moved(&report, sent),
            pinned: self.enforcement.pinned().iter().copied().collect(),
            nudged: report.nudged,
            warnings,
            ..Enacted::default()
        };
        for (id, mask) in report.released {
            enacted.released.push(id);
            enacted.warnings.push(self.release(id, &mask, roster));
        }
        let refused = report.refused.iter().map(|(id, _)| *id);
        let astray: Vec<ThreadId> = refused.chain(report.shifted.iter().copied()).collect();
        self.recheck(&astray, roster);
        for (id, refusal) in &report.refused {
            if matches!(refusal, Refusal::NotManaged) && roster.may_place(*id) {
                self.regain(*id, roster, for_user);
            } else {
                enacted.warnings.push(refusal_of(*id, refusal, roster));
            }
        }
        enacted
    }

    /// Takes a thread in again that the enactor has lost: it seemed to have exited when it could not
    /// be looked up, as when descriptors were short.
    fn regain(&mut self, id: ThreadId, roster: &mut Roster, warnings: &mut Warnings) {
        // It inherits from itself: the journal has its original mask, which may be wider than the
        // one that it has now. One of a process that was never taken inherits from its tree's root.
        let root = roster.trees().root_of(id.pid);
        let root = root.and_then(|root| roster.leader_of(root));
        let mut known = [Some(id), root].into_iter().flatten();
        let parent = known.find(|parent| self.enactor.has_program(parent.pid));
        match self.take(id, parent, warnings) {
            Taken::Managed(original) => roster.set_original(id, original),
            Taken::SelfPlaced(mask) => {
                let warning = self.release(id, &mask, roster);
                warnings.insert(warning);
            }
            Taken::LetAlone(why) | Taken::Unseen(_, why) => {
                let name = roster.name(id);
                warnings.insert(format!("thread {id} ({name}) is not placed for now: {why}"));
            }
            // The next look at it finds that out.
            Taken::Gone => {}
        }
    }

    /// Threads that the plan sends to another place and whose mask was written; with a scheduler in
    /// the kernel, all that the plan sends elsewhere.
    fn moved(&self, report: &ApplyReport, sent: &BTreeSet<ThreadId>) -> Vec<ThreadId> {
        if self.in_kernel.rules() {
            return sent.iter().copied().collect();
        }
        let written = report.written.iter().map(|(id, _)| *id);
        written.filter(|id| sent.contains(id)).collect()
    }

    fn orders(&mut self, plan: &Plan, reach: &mut Reach<'_>) -> Vec<(ThreadId, Wanted)> {
        let now = Instant::now();
        let mut orders = Vec::with_capacity(plan.placements.len());
        self.suffering
            .retain(|_, (looked, _)| now.saturating_duration_since(*looked) < LOOKS_EVERY);
        for (&id, placement) in &plan.placements {
            let has_place = matches!(placement, Placement::Restricted(_));
            let at = has_place.then(|| reach.whereabouts(id, now)).flatten();
            let suffers = || {
                let known = self.suffering.entry(id.pid);
                known
                    .or_insert_with(|| (now, reach.suffers_from_pins(id.pid)))
                    .1
            };
            orders.push((id, self.enforcement.order(id, at, now, suffers)));
        }
        orders
    }

    /// Nudges, between plans, threads that have drifted, or that slept when they were to be moved.
    pub(in crate::live) fn chase(&mut self, mut reach: Reach<'_>) {
        let now = Instant::now();
        let mut orders = Vec::new();
        for id in self.enforcement.strays() {
            let at = reach.whereabouts(id, now);
            orders.extend(self.enforcement.correction(id, at, now).map(|w| (id, w)));
        }
        if orders.is_empty() {
            return;
        }
        let report = self.enactor.apply(&orders);
        self.enforcement.nudged(&report.windows);
        for (id, mask) in report.released {
            reach.warnings.insert(self.release(id, &mask, reach.roster));
        }
    }

    /// Lets go of a thread whose mask somebody else has set; returns a warning.
    fn release(&mut self, id: ThreadId, mask: &PuSet, roster: &mut Roster) -> String {
        let name = roster.release(id);
        self.enforcement.forget(id);
        // Last, because forgetting the first thread of a process forgets the process's choice too.
        self.enforcement.chose_mask(id);
        self.in_kernel.give_back(id);
        format!("thread {id} ({name}) was let go: somebody else set its mask to {mask}")
    }
}
