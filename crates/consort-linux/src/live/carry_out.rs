//! Carrying out of plans: pausing, moving threads to their places, and nudging back those that
//! drift.

use super::{Held, Live};
use crate::discovery::RunState;
use crate::enact::{ApplyReport, Refusal, Wanted};
use crate::enforce::{EnactChoice, Whereabouts};
use crate::proc::{now_ticks, tick_ns};
use consort_core::{Enacted, Placement, Plan, PuSet, ThreadId};
use nix::time::{ClockId, clock_gettime};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// Age beyond which a reading of `/proc` is made again before a thread is nudged: the scheduler may
/// have moved it meanwhile.
const FRESH: Duration = Duration::from_millis(2);

impl Live {
    /// Pauses and resumes programs and puts threads where a plan has them.
    pub(super) fn carry_out(&mut self, plan: &Plan) -> Enacted {
        if self.dry_run {
            return Enacted::default();
        }
        let (roster, enactor) = (&self.roster, &mut self.enactor);
        let unpaused = (self.pausing).pause_as_planned(plan, &self.site, roster, enactor);
        self.warnings.extend(unpaused);
        let sent = self.enforcement.assign(plan, self.site.topology());
        let orders = self.orders(plan);
        let report = self.enactor.apply(&orders);
        let quantum = self.clock.pace().quantum();
        self.warnings.extend(self.in_kernel.follow(plan, quantum));
        let of_cookies =
            (self.cookies).share_cores(plan, &self.site, &self.roster, &mut self.enactor);
        self.enforcement.carried_out(monotonic_ns());
        let (roster, enactor) = (&self.roster, &mut self.enactor);
        let stuck = self.pausing.resume_as_planned(plan, roster, enactor);
        self.warnings.extend(stuck);
        self.enforcement.nudges += report.nudged.len() as u64;
        let mut enacted = Enacted {
            moved: self.moved(&report, &sent),
            pinned: self.enforcement.pinned().iter().copied().collect(),
            nudged: report.nudged,
            warnings: of_cookies,
            ..Enacted::default()
        };
        for (id, mask) in report.released {
            self.release(id, &mask, &mut enacted);
        }
        let refused = report.refused.iter().map(|(id, _)| *id);
        let astray: Vec<ThreadId> = refused.chain(report.shifted.iter().copied()).collect();
        self.recheck(&astray);
        for (id, refusal) in report.refused {
            enacted.warnings.push(self.refusal(id, &refusal));
        }
        enacted
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

    fn orders(&mut self, plan: &Plan) -> Vec<(ThreadId, Wanted)> {
        let now = Instant::now();
        let mut orders = Vec::with_capacity(plan.placements.len());
        for (&id, placement) in &plan.placements {
            let has_place = matches!(placement, Placement::Restricted(_));
            let at = has_place.then(|| self.whereabouts(id, now)).flatten();
            orders.push((id, self.enforcement.order(id, at, now)));
        }
        orders
    }

    /// Position of a thread now; none where `/proc` does not tell it.
    fn whereabouts(&mut self, id: ThreadId, now: Instant) -> Option<Whereabouts> {
        let thread = self.roster.get(id)?;
        let (state, pu) = match thread.seen.fresh(now, FRESH) {
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

    /// Time since the start of a thread's process; of the thread, where its leader is not known.
    fn process_age(&self, id: ThreadId) -> Duration {
        let leader = self.roster.leader_of(id.pid).unwrap_or(id);
        let since = leader.start_ticks;
        Duration::from_nanos(now_ticks().saturating_sub(since) * tick_ns())
    }

    /// Tells the kernel that Consort lives, and changes to nudges if its scheduler is gone.
    pub(super) fn beat(&mut self) {
        if let Some(why) = self.in_kernel.beat() {
            self.warnings.insert(format!(
                "the kernel has ended the sched_ext scheduler ({why}); nudges are used from now on"
            ));
            self.enforcement.choose(EnactChoice::Auto);
        }
    }

    /// Nudges, between plans, threads that have drifted, or that slept when they were to be moved.
    pub(super) fn chase(&mut self) {
        let now = Instant::now();
        let mut orders = Vec::new();
        for id in self.enforcement.strays() {
            let at = self.whereabouts(id, now);
            orders.extend(self.enforcement.correction(id, at, now).map(|w| (id, w)));
        }
        if orders.is_empty() {
            return;
        }
        let report = self.enactor.apply(&orders);
        self.enforcement.nudges += report.nudged.len() as u64;
        for (id, mask) in report.released {
            let mut enacted = Enacted::default();
            self.release(id, &mask, &mut enacted);
            self.warnings.extend(enacted.warnings);
        }
    }

    /// Gives threads their original masks at once.
    pub(super) fn let_free(&mut self, threads: &[ThreadId]) {
        if threads.is_empty() || self.dry_run {
            return;
        }
        let free: Vec<_> = threads
            .iter()
            .map(|&id| (id, Wanted::Unrestricted))
            .collect();
        let report = self.enactor.apply(&free);
        for (id, refusal) in &report.refused {
            let text = self.refusal(*id, refusal);
            self.warnings.insert(text);
        }
    }

    /// Adherence to plans and means of enforcement, over the run so far.
    pub(super) fn held(&self) -> Held {
        let enforcement = &self.enforcement;
        Held {
            enactor: (!self.dry_run).then(|| enforcement.kind()),
            adherence: enforcement.adherence.share(),
            pair_adherence: enforcement.pair_adherence.share(),
            nudges: enforcement.nudges,
            cookies: self.cookies.counts(),
        }
    }

    fn release(&mut self, id: ThreadId, mask: &PuSet, enacted: &mut Enacted) {
        let mut name = "?".into();
        if let Some(thread) = self.roster.get_mut(id) {
            thread.managed = false;
            name = thread.name.clone();
        }
        self.roster.keep_affinity(id);
        self.enforcement.forget(id);
        self.in_kernel.give_back(id);
        enacted.released.push(id);
        let text = format!("thread {id} ({name}) was let go: somebody else set its mask to {mask}");
        enacted.warnings.push(text);
    }

    fn refusal(&self, id: ThreadId, refusal: &Refusal) -> String {
        let name = self.roster.name(id);
        format!("thread {id} ({name}) was not moved: {refusal}")
    }
}

/// `CLOCK_MONOTONIC`, the clock of samples, ns.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC);
    now.map_or(0, |now| super::clock::nanos(Duration::from(now)))
}
