//! Time of threads on large and small cores, and their speed there.

use super::ActiveThread;

/// Time that a thread has run on either kind of core, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::policies) struct CoreKindTimes {
    large_ns: f64,
    small_ns: f64,
}

impl CoreKindTimes {
    pub(in crate::policies) fn add(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let kind = if on_large {
            &mut self.large_ns
        } else {
            &mut self.small_ns
        };
        *kind += ran.sample.cpu_time_ns();
    }

    /// Share of its time that it was on large cores; none before it has run.
    pub(in crate::policies) fn large_share(self) -> Option<f64> {
        let both = self.large_ns + self.small_ns;
        (both > 0.0).then(|| self.large_ns / both)
    }

    /// Slowdown against a large core all the time: (T_big + T_small) / (T_big + T_small/R), with R,
    /// its speed on a large core over that on a small one (Van Craeynest et al., PACT 2013).
    pub(in crate::policies) fn slowdown(self, ratio: f64) -> Option<f64> {
        let both = self.large_ns + self.small_ns;
        (both > 0.0).then(|| both / (self.large_ns + self.small_ns / ratio))
    }
}

/// Progress and time on one kind of core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct CoreKindRate {
    progress: f64,
    time_ns: f64,
}

/// Speed of a thread in its last quantum on either kind of core.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(in crate::policies) struct CoreKindRates {
    /// Small and large: since the quantum began, and in the last quantum there.
    now: [CoreKindRate; 2],
    last: [CoreKindRate; 2],
}

impl CoreKindRates {
    pub(in crate::policies) fn add(&mut self, ran: &ActiveThread<'_>, on_large: bool) {
        let now = &mut self.now[usize::from(on_large)];
        now.progress += ran.progress;
        now.time_ns += ran.sample.cpu_time_ns();
    }

    /// Ends a quantum.
    pub(in crate::policies) fn end_quantum(&mut self) {
        for (last, now) in self.last.iter_mut().zip(&mut self.now) {
            if now.time_ns > 0.0 {
                *last = *now;
            }
            *now = CoreKindRate::default();
        }
    }

    /// Speed on a large core over that on a small one; none before the thread has run on both.
    pub(in crate::policies) fn ratio(self) -> Option<f64> {
        let [small, large] = self.last.map(|rate| rate.progress / rate.time_ns);
        let ratio = large / small;
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }
}
