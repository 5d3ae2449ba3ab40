//! Time that threads waited for one object, summed over them.

use crate::engine::PS_PER_NS;

/// A sum of waiting times; exact, whatever steps time is split into.
#[derive(Clone, Debug, Default)]
pub(crate) struct WaitTime {
    waiters: u64,
    /// Since when there have been so many, ps.
    since: u64,
    /// Waited until then and not yet told, thread·ps.
    ps: u64,
}

impl WaitTime {
    /// From now on so many wait.
    pub(crate) fn set(&mut self, now: u64, waiters: usize) {
        let passed = now.saturating_sub(self.since);
        self.ps = self.ps.saturating_add(passed.saturating_mul(self.waiters));
        self.since = now;
        self.waiters = waiters as u64;
    }

    /// Time waited since the last call, thread·ns; what is less than one is told the next time.
    pub(crate) fn take_ns(&mut self, now: u64) -> u64 {
        self.set(now, self.waiters as usize);
        let ns = self.ps / PS_PER_NS;
        self.ps %= PS_PER_NS;
        ns
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_wait_twice_as_long_as_one_and_nothing_is_lost() {
        let mut waited = WaitTime::default();
        waited.set(1_000, 1);
        waited.set(3_500, 2);
        assert_eq!(waited.take_ns(4_000), 3);
        waited.set(4_250, 0);
        assert_eq!(waited.take_ns(9_000), 1);
        assert_eq!(waited.take_ns(10_000), 0);
    }
}
