//! Memory controllers, interconnects and links: queues in front of a fixed bandwidth.
//!
//! A station serves lines; requests wait `ρS/(2(1−ρ))` (M/D/1, S the service time of a line, ρ the
//! utilisation). The loop is closed: waiting slows the threads that ask, so throughput saturates
//! below the bandwidth and latency absorbs the rest. [`wait`] finds the wait at which what the
//! threads ask for is what the station carries.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct QueueingStation {
    /// Lines per second that it can carry.
    pub(crate) lines_per_s: f64,
    /// Time that a server needs for a line, s; servers = `lines_per_s · service_s`.
    pub(crate) service_s: f64,
}

/// One thread's use of a station.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Visitor {
    /// Time per instruction if the station were idle, s.
    pub(crate) time_s: f64,
    /// Lines per instruction, its own and those of threads for which it stands.
    pub(crate) lines: f64,
    /// Waits per instruction that the thread feels: lines divided by how many wait together.
    pub(crate) felt: f64,
}

/// Newton steps at most.
const STEPS: u32 = 100;

impl QueueingStation {
    /// Utilisation at which a line waits so long, 0 to 1.
    pub(crate) fn utilisation(&self, wait_s: f64) -> f64 {
        2.0 * wait_s / (self.service_s + 2.0 * wait_s)
    }
}

/// The wait, s, at which demand and utilisation agree. Demand falls and utilisation rises with
/// the wait; both are convex in the right sense for Newton's method to climb from 0 to the root.
pub(crate) fn wait(station: &QueueingStation, visitors: &[Visitor]) -> f64 {
    let mut wait = 0.0;
    for _ in 0..STEPS {
        let (excess, slope) = excess(station, visitors, wait);
        if excess <= 0.0 {
            break;
        }
        let step = excess / slope;
        wait += step;
        if step <= wait * 1e-12 {
            break;
        }
    }
    wait
}

/// Demand minus utilisation at a wait, and how fast it falls.
fn excess(station: &QueueingStation, visitors: &[Visitor], wait: f64) -> (f64, f64) {
    let mut demand = 0.0;
    let mut falls = 0.0;
    for v in visitors {
        let time = v.time_s + v.felt * wait;
        demand += v.lines / time;
        falls += v.lines * v.felt / (time * time);
    }
    let denominator = station.service_s + 2.0 * wait;
    let rises = 2.0 * station.service_s / (denominator * denominator);
    let utilisation = 2.0 * wait / denominator;
    (
        demand / station.lines_per_s - utilisation,
        falls / station.lines_per_s + rises,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STATION: QueueingStation = QueueingStation {
        lines_per_s: 1e8,
        service_s: 1e-8,
    };

    fn visitor(time_s: f64, lines: f64) -> Visitor {
        Visitor {
            time_s,
            lines,
            felt: lines / 4.0,
        }
    }

    #[test]
    fn idle_station_has_no_wait() {
        assert_eq!(wait(&STATION, &[visitor(1e-9, 0.0)]), 0.0);
        assert_eq!(wait(&STATION, &[]), 0.0);
    }

    #[test]
    fn half_load_waits_half_service_time() {
        // ρ = 0.5: ρS/(2(1−ρ)) = S/2; one visitor that feels next to nothing of it.
        let v = Visitor {
            time_s: 1e-9,
            lines: 0.05,
            felt: 1e-9,
        };
        assert!((wait(&STATION, &[v]) / 0.5e-8 - 1.0).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn throughput_saturates_below_bandwidth(
            raw in prop::collection::vec((1e-10f64..1e-6, 0.0f64..1.0), 1..20),
        ) {
            let visitors: Vec<_> = raw.iter().map(|&(t, l)| visitor(t, l)).collect();
            let w = wait(&STATION, &visitors);
            let carried: f64 = visitors.iter().map(|v| v.lines / (v.time_s + v.felt * w)).sum();
            prop_assert!(w >= 0.0 && w.is_finite());
            prop_assert!(carried < STATION.lines_per_s * (1.0 + 1e-9));
            let utilisation = STATION.utilisation(w);
            prop_assert!((carried / STATION.lines_per_s - utilisation).abs() < 1e-6);
        }

        #[test]
        fn more_visitors_wait_longer(
            raw in prop::collection::vec((1e-10f64..1e-6, 0.0f64..1.0), 2..20),
        ) {
            let visitors: Vec<_> = raw.iter().map(|&(t, l)| visitor(t, l)).collect();
            let fewer = wait(&STATION, &visitors[1..]);
            prop_assert!(wait(&STATION, &visitors) >= fewer * (1.0 - 1e-9));
        }
    }
}
