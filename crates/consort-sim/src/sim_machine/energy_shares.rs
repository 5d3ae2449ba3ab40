//! Shares of the machine's energy that threads are charged with.
//!
//! A thread's own energy is that of its instructions and accesses and its part of its core's static
//! power while it was on a CPU. What is left of the machine's, that of uncore and idle cores, is
//! shared out by the time that threads were on CPUs: threads that keep the machine awake pay for
//! it. So the shares sum to the machine's energy, like a package meter's that is shared out by
//! activity.
//!
//! Pitfall: the energy of an interval in which nothing ran is charged to no thread.

use super::SimMachine;
use crate::engine::ThreadCounts;
use consort_core::{Reading, Sample, Signal, Tier};

/// Division of an interval's energy among the threads.
pub(super) struct IntervalEnergyShares {
    /// Energy that is no thread's own, per time on a CPU, W.
    rest_w: f64,
}

impl SimMachine {
    /// The shares of the interval that ends now, before threads' counts are taken; `None` if the
    /// policy does not want energy.
    pub(super) fn take_energy_shares(&mut self) -> Option<IntervalEnergyShares> {
        self.source.offers().tier_of(Signal::Energy)?;
        let all_j = self.energy_j();
        let whole_j = all_j - std::mem::replace(&mut self.told_j, all_j);
        let counts = || self.engine.threads().iter().map(|t| &t.counters.recent);
        let own_j: f64 = counts().map(|c| c.energy_j).sum();
        let on_pu_s: f64 = counts().map(|c| c.on_pu_s).sum();
        Some(IntervalEnergyShares::new(whole_j - own_j, on_pu_s))
    }
}

impl IntervalEnergyShares {
    fn new(rest_j: f64, on_pu_s: f64) -> Self {
        let rest_w = if on_pu_s > 0.0 { rest_j / on_pu_s } else { 0.0 };
        Self { rest_w }
    }

    /// Adds a thread's share to its sample.
    pub(super) fn note(&self, counts: &ThreadCounts, interval_ns: u64, sample: &mut Sample) {
        let joules = counts.energy_j + self.rest_w.max(0.0) * counts.on_pu_s;
        let reading = Reading::fully_counted(joules, Tier::Counters, interval_ns);
        sample.set(Signal::Energy, reading);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::testing::{PlainEnergy, chip, instances, program, settings};
    use crate::engine::{RunMode, SampleSource};
    use consort_core::{Machine, SignalOffers, ThreadId};

    /// Samples contain what the machine adds and nothing else.
    struct Asking(SignalOffers);

    impl SampleSource for Asking {
        fn offers(&self) -> &SignalOffers {
            &self.0
        }

        fn sample(&mut self, _: ThreadId, _: &ThreadCounts, _: u64) -> Sample {
            Sample::default()
        }
    }

    fn machine(requested: &[Signal]) -> SimMachine {
        let offers = requested.iter().map(|&signal| (signal, Tier::Counters));
        let source = Box::new(Asking(offers.collect()));
        let mut work = instances(&program(), 2, 1, 0.05);
        work.extend(instances(&program(), 1, 1, 0.2));
        let settings = settings("pinned", RunMode::Once, 1);
        let meter = Box::new(PlainEnergy);
        SimMachine::new(chip(1), &work, &settings, 10_000_000, meter, source).unwrap()
    }

    #[test]
    fn shares_sum_to_the_energy_of_the_machine() {
        let mut machine = machine(&[Signal::Energy]);
        let (mut before_j, mut intervals) = (0.0, 0);
        while let Some(seen) = machine.observe().unwrap() {
            let threads = seen.threads.iter().chain(&seen.exited);
            let reported: f64 = threads.filter_map(|t| t.sample.get(Signal::Energy)).sum();
            let spent = machine.energy_j() - before_j;
            assert!((reported / spent - 1.0).abs() < 1e-9, "{reported} {spent}");
            before_j = machine.energy_j();
            intervals += 1;
        }
        assert!(intervals > 3);
    }

    #[test]
    fn energy_is_sampled_on_request_alone() {
        let seen = machine(&[]).observe().unwrap().unwrap();
        assert_eq!(seen.threads[0].sample.get(Signal::Energy), None);
    }

    #[test]
    fn remaining_energy_is_shared_by_time() {
        let shares = IntervalEnergyShares::new(30.0, 3.0);
        let reported = |energy_j, on_pu_s| {
            let mut sample = Sample::default();
            let counts = ThreadCounts {
                energy_j,
                on_pu_s,
                ..ThreadCounts::default()
            };
            shares.note(&counts, 1, &mut sample);
            sample.get(Signal::Energy)
        };
        assert_eq!(
            [reported(5.0, 1.0), reported(1.0, 2.0)],
            [Some(15.0), Some(21.0)]
        );
    }
}
