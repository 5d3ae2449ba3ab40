//! The reorder buffer under SMT: division of the window among the threads of a core.
//!
//! A shared buffer is divided like a cache, by insertion pressure. A thread
//! wants as many entries as it inserts during the time that they stay (Little's
//! law): while it computes, the smallest window that sustains its rate; while
//! it waits for memory, its fair share of the dispatch slots for as long as the
//! wait lasts, which is far more than the buffer has. So a thread that waits
//! clogs the window for its co-runners, and two that wait do each other no harm
//! beyond the overlap of their misses.

/// A thread's pressure on a shared window.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Pressure {
    /// Entries that it wants while it computes.
    pub(crate) computing: f64,
    /// Entries that it would insert during a wait for memory.
    pub(crate) waiting: f64,
    /// Share of time that it waits for memory, 0 to 1.
    pub(crate) waits: f64,
}

impl Pressure {
    /// The same on a buffer of which an instruction in the window takes so many entries.
    pub(crate) fn for_buffer(self, per_instruction: f64) -> Self {
        Self {
            computing: self.computing * per_instruction,
            waiting: self.waiting * per_instruction,
            waits: self.waits,
        }
    }

    fn entries(self) -> f64 {
        (1.0 - self.waits) * self.computing + self.waits * self.waiting.max(self.computing)
    }
}

/// Entries that thread `i` has of a shared window of `entries`.
pub(crate) fn window_share(entries: f64, pressures: &[Pressure], i: usize) -> f64 {
    let all: f64 = pressures.iter().map(|p| p.entries()).sum();
    let own = pressures[i].entries();
    if all <= entries {
        // What nobody wants is there for all.
        return own + entries - all;
    }
    // Every thread can insert at least the instruction that it dispatches next.
    (entries * own / all).max(1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn computing(entries: f64) -> Pressure {
        Pressure {
            computing: entries,
            ..Pressure::default()
        }
    }

    fn chaser() -> Pressure {
        Pressure {
            computing: 128.0,
            waiting: 400.0,
            waits: 0.95,
        }
    }

    #[test]
    fn alone_a_thread_has_it_all() {
        assert_eq!(window_share(128.0, &[computing(20.0)], 0), 128.0);
        assert_eq!(window_share(128.0, &[chaser()], 0), 128.0);
    }

    #[test]
    fn who_waits_clogs_the_window() {
        let both = [computing(25.0), chaser()];
        assert!(window_share(128.0, &both, 0) < 10.0);
        assert!(window_share(128.0, &both, 1) > 100.0);
    }

    #[test]
    fn equals_have_equal_parts() {
        assert_eq!(window_share(128.0, &[chaser(), chaser()], 0), 64.0);
    }

    #[test]
    fn it_is_continuous_where_the_window_begins_to_be_too_small() {
        let just = |x: f64| window_share(128.0, &[computing(64.0), computing(x)], 0);
        assert!((just(64.0 - 1e-9) - just(64.0 + 1e-9)).abs() < 1e-6);
    }
}
