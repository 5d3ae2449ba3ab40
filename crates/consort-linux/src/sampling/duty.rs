//! The share of time in which events are open, where they cost programs something at each switch.
//!
//! All of the time is sampled while events cost next to nothing, a fifth of it while they cost up to
//! one percent of the programs' CPU time, and beyond that only a second in some minutes: what is
//! known of a program's code then stays as it was first seen.

/// Cost of open events, as a share of the programs' CPU time, up to which they stay open.
const NEGLIGIBLE: f64 = 0.002;
/// Cost beyond which they stay closed longer and longer.
const DEAR: f64 = 0.01;
/// Cost below which they are opened again after that; less than [`DEAR`], so that they do not come
/// and go.
const CHEAP_AGAIN: f64 = 0.005;
/// Time for which they are open in each cycle, and at the start, ns.
const OPEN_NS: u64 = 1_000_000_000;
/// Time for which they are closed in each cycle, ns.
const CLOSED_NS: u64 = 4 * OPEN_NS;
/// Factor by which that grows each time that events turn out to be dear. Threads that begin and end
/// while events are closed are not seen, so that what they would cost is known by trying only.
const LONGER: u64 = 4;
/// Longest time for which they are closed, ns.
const MOST_CLOSED_NS: u64 = 300_000_000_000;

/// The state of the events, and since when.
#[derive(Clone, Copy, Debug)]
pub(super) struct EventDuty {
    is_open: bool,
    since_ns: u64,
    /// Time for which they are closed next, ns.
    closed_ns: u64,
}

impl EventDuty {
    /// Events that were opened at this time.
    pub(super) fn begin(now_ns: u64) -> Self {
        Self {
            is_open: true,
            since_ns: now_ns,
            closed_ns: CLOSED_NS,
        }
    }

    /// Returns true if events are to be open from now on. `cost` is their cost while they are open,
    /// as a share of the programs' CPU time; under `least`, a fifth of the time is the most.
    pub(super) fn decide(&mut self, now_ns: u64, cost: f64, least: bool) -> bool {
        let lasted_ns = now_ns.saturating_sub(self.since_ns);
        let was_dear = self.closed_ns > CLOSED_NS;
        let wanted = match self.is_open {
            true => lasted_ns < OPEN_NS || (cost <= NEGLIGIBLE && !least),
            false => lasted_ns >= self.closed_ns && (cost < CHEAP_AGAIN || !was_dear),
        };
        if self.is_open && !wanted {
            self.closed_ns = match cost > DEAR {
                true => (self.closed_ns * LONGER).min(MOST_CLOSED_NS),
                false => CLOSED_NS,
            };
        }
        if wanted != self.is_open {
            self.is_open = wanted;
            self.since_ns = now_ns;
        }
        wanted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Share of 60 s in which events are open, decided every 100 ms.
    fn open_share(cost: f64, least: bool) -> f64 {
        let mut duty = EventDuty::begin(0);
        let open = (0..600).filter(|n| duty.decide(n * 100_000_000, cost, least));
        open.count() as f64 / 600.0
    }

    #[test]
    fn cheap_events_stay_open() {
        assert_eq!(open_share(0.001, false), 1.0);
    }

    #[test]
    fn dearer_events_are_open_a_fifth_of_time() {
        for (cost, least) in [(0.008, false), (0.0, true)] {
            let share = open_share(cost, least);
            assert!((0.18..0.22).contains(&share), "{share}");
        }
    }

    #[test]
    fn dear_events_are_open_at_the_start_only() {
        let share = open_share(0.3, false);
        assert!(share <= 1.0 / 60.0 + 0.002, "{share}");
    }

    #[test]
    fn events_that_become_cheap_are_opened_again() {
        let mut duty = EventDuty::begin(0);
        assert!(!duty.decide(1_000_000_000, 0.3, false));
        assert!(!duty.decide(16_000_000_000, 0.004, false));
        assert!(!duty.decide(17_000_000_000, 0.008, false));
        assert!(duty.decide(17_100_000_000, 0.004, false));
    }

    #[test]
    fn unseen_thread_starts_are_tried_ever_less() {
        let mut duty = EventDuty::begin(0);
        let mut cost = 0.3;
        let tried = (0..6_000).filter(|n| {
            let is_open = duty.decide(n * 100_000_000, cost, false);
            cost = if is_open { 0.3 } else { 0.0 };
            is_open
        });
        // 10 s of 600: 1 s at the start, and after 16, 64, 256 s and so on.
        assert!(tried.count() < 60);
    }
}
