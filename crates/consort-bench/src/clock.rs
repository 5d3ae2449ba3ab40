//! Time that this thread has spent on a processor: what others do on the host at the same time
//! counts only as far as it slows the processor down.

use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// A stopwatch of processor time.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopwatch(Duration);

impl Stopwatch {
    pub(super) fn start() -> Self {
        Self(now())
    }

    /// Processor time since the start, s.
    pub(super) fn seconds(self) -> f64 {
        now().saturating_sub(self.0).as_secs_f64()
    }

    /// Processor time since the start, ns.
    pub(super) fn ns(self) -> f64 {
        self.seconds() * 1e9
    }
}

/// The clock is part of POSIX and cannot fail for the calling thread (`clock_gettime(3)`); were
/// it to, all times would be 0 and all rates infinite, which nobody takes for a figure.
fn now() -> Duration {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::hint::black_box;

    #[test]
    fn work_takes_time_and_sleep_takes_next_to_none() {
        let watch = Stopwatch::start();
        std::thread::sleep(Duration::from_millis(200));
        assert!(watch.seconds() < 0.1);
        (0..1_000_000_u64).for_each(|i| {
            black_box(i);
        });
        assert!(watch.ns() > 0.0);
    }
}
