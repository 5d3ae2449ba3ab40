//! Release of threads while other work needs their PUs.
//!
//! A thread that waits although it has a core of its own shares that core with work that the plan
//! does not know. The kernel would move one of the two; a thread that is nudged back whenever it was
//! moved makes both wait. Waiting alone is no reason: a thread that has no place yet may wait because
//! two share a PU while another PU is idle, which a place mends.

use crate::ids::ThreadId;
use crate::policy::View;
use crate::pu_set::PuSet;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Share of the time that a thread could run for from which on waiting shows that other work runs
/// on its PU. A tick of the kernel, Consort itself and short system services stay below.
const WAITS_FROM: f64 = 0.2;
/// A thread counts from this share of a PU on.
const WANTS_FROM: f64 = 0.05;
/// Idle time of all PUs, in PUs, below which there is no room for a thread that waits.
const FULL_BELOW: f64 = 0.5;
/// Decisions for which a thread is left to the kernel after it waited last.
const LEFT_FOR: u32 = 5;

/// Threads that are left to the kernel, and for how long.
#[derive(Debug, Default)]
pub(super) struct ReleasedThreads {
    /// Decisions for which all threads are left.
    all: u32,
    /// Decisions for which single threads are.
    single: BTreeMap<ThreadId, u32>,
}

impl ReleasedThreads {
    /// Takes in an interval in which these threads had places. Nothing changes if the idle time of
    /// the PUs is not measured, as on simulated machines, where there is no other work.
    pub(super) fn record_interval(&mut self, view: View<'_>, places: &BTreeMap<ThreadId, PuSet>) {
        let seen = view.observation;
        self.all = self.all.saturating_sub(1);
        self.single.retain(|&id, left| {
            *left -= 1;
            *left > 0 && seen.thread(id).is_some()
        });
        let Some(idle_pus) = seen.idle_pus else {
            return;
        };
        let waits = seen.managed_threads().filter(|thread| {
            let waits = seen.waiting_share(thread).unwrap_or(0.0) >= WAITS_FROM;
            let counts = waits && seen.wanted_share(thread) >= WANTS_FROM;
            counts && super::is_balanced(view.topology, thread)
        });
        for thread in waits {
            if idle_pus < FULL_BELOW {
                self.all = LEFT_FOR + 1;
            }
            if places.contains_key(&thread.id) {
                self.single.insert(thread.id, LEFT_FOR + 1);
            }
        }
    }

    /// Reason for which a thread is left to the kernel.
    pub(super) fn reason_to_leave(&self, id: ThreadId) -> Option<Cow<'static, str>> {
        let why = if self.all > 0 {
            "work waits for PUs and none is idle, so that the kernel balances"
        } else if self.single.contains_key(&id) {
            "other work runs on the PU that it had"
        } else {
            return None;
        };
        Some(why.into())
    }
}
