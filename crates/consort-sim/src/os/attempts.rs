//! Attempts of idle PUs to take over a thread that runs elsewhere while nobody waits.
//!
//! Source: Linux 6.1, kernel/sched/fair.c. A thread that runs cannot be pulled, so an attempt of the
//! balancer fails (`load_balance`, `nr_balance_failed`); only when more than `cache_nice_tries` + 2
//! have failed one after another does it interrupt the other PU and take its thread
//! (`imbalanced_active_balance`, `active_load_balance_cpu_stop`), after which it counts anew.

use super::os_topology::SchedulingDomain;
use std::collections::BTreeMap;

/// Failures on top of a domain's `cache_nice_tries` that are borne.
const BORNE: u32 = 2;

/// Attempts by domain and group, the numbers of both. Only one PU of a group tries
/// (`should_we_balance`).
#[derive(Clone, Debug, Default)]
pub(crate) struct Attempts(BTreeMap<(usize, usize), AttemptRun>);

/// Attempts one interval after another.
#[derive(Clone, Copy, Debug, Default)]
struct AttemptRun {
    last_ms: Option<u64>,
    failed: u32,
}

impl Attempts {
    /// True if a group has tried at this moment.
    pub(crate) fn has_tried(&self, domain: usize, group: usize, ms: u64) -> bool {
        let run = self.0.get(&(domain, group));
        run.is_some_and(|run| run.last_ms == Some(ms))
    }

    /// Counts an attempt to take a thread that runs; whether it is one too many, so that the thread
    /// moves.
    pub(crate) fn count_attempt(
        &mut self,
        (number, domain): (usize, &SchedulingDomain),
        group: usize,
        interval_ms: u64,
        ms: u64,
    ) -> bool {
        let run = self.0.entry((number, group)).or_default();
        let in_a_row = run.last_ms.is_some_and(|last| last + interval_ms == ms);
        run.failed = if in_a_row { run.failed + 1 } else { 1 };
        run.last_ms = Some(ms);
        let moves = run.failed > domain.nice_tries + BORNE;
        if moves {
            run.failed = 0;
        }
        moves
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moves(at_ms: &[u64]) -> Vec<bool> {
        let domain = SchedulingDomain {
            groups: vec![vec![0, 1], vec![2, 3]],
            weight: 4,
            nice_tries: 1,
        };
        let mut attempts = Attempts::default();
        let mut try_at = |&ms: &u64| attempts.count_attempt((0, &domain), 1, 4, ms);
        at_ms.iter().map(&mut try_at).collect()
    }

    #[test]
    fn the_fourth_attempt_in_a_row_succeeds_and_all_begins_anew() {
        let eight = moves(&[4, 8, 12, 16, 20, 24, 28, 32]);
        let expected = [false, false, false, true, false, false, false, true];
        assert_eq!(eight, expected);
        assert_eq!(moves(&[4, 8, 12, 20, 24]), [false; 5]);
    }
}
