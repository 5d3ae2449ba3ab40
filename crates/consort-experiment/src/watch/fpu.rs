//! Evenness of the use of the cores' floating-point units: a measure of placement.

use consort_sim::chip::Chip;
use consort_sim::engine::{Observer, PuUse, RunSegment};
use std::cell::RefCell;
use std::rc::Rc;

/// Share of the FPUs' pipes in use, 0 to 1, averaged over a run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct FpuUse {
    /// Mean over all cores.
    pub mean: f64,
    /// Share on the core where it was highest at each moment.
    pub busiest: f64,
    /// Share on the core where it was lowest at each moment.
    pub idlest: f64,
}

/// Measures the use of the cores' floating-point units; clones measure the same run.
#[derive(Clone)]
pub struct FpuWatch(Rc<RefCell<FpuMeter>>);

impl FpuWatch {
    /// Watches a run on this machine from its beginning.
    pub fn new(chip: &Chip) -> Self {
        Self(Rc::new(RefCell::new(FpuMeter::new(chip))))
    }

    /// Use of the FPUs so far.
    pub fn finish(&self) -> FpuUse {
        let mut meter = self.0.borrow_mut();
        meter.flush();
        let over = |sum: f64| sum / meter.time_ps;
        FpuUse {
            mean: over(meter.sum.mean),
            busiest: over(meter.sum.busiest),
            idlest: over(meter.sum.idlest),
        }
    }
}

impl Observer for FpuWatch {
    fn note_segment(&mut self, segment: &RunSegment<'_>) {
        let mut meter = self.0.borrow_mut();
        // Segments of all threads between two events begin at the same time and come in a row.
        if segment.from_ps != meter.from_ps {
            meter.flush();
        }
        (meter.from_ps, meter.to_ps) = (segment.from_ps, segment.to_ps);
        if segment.doing == PuUse::Work {
            let rates = segment.rates;
            let (core, operations) = (meter.core_of[segment.pu], rates.flow.fp_cycles / rates.cpi);
            let pipes = operations * meter.pipes_per_operation[core];
            meter.used[core] += pipes;
        }
    }
}

struct FpuMeter {
    core_of: Vec<usize>,
    /// Share of a core's pipes that one operation in the FPU at all times takes.
    pipes_per_operation: Vec<f64>,
    /// Share of each core's pipes in use in the interval.
    used: Vec<f64>,
    from_ps: u64,
    to_ps: u64,
    /// Sums of shares times time, ps.
    sum: FpuUse,
    /// Time that the sums are over, ps.
    time_ps: f64,
}

impl FpuMeter {
    fn new(chip: &Chip) -> Self {
        let cores = chip.domains().cores;
        let mut pipes_per_operation = vec![0.0; cores];
        for place in chip.places() {
            let fp = &chip.core_spec(*place).units.fp;
            // An operation is in the FPU for its latency and on a pipe for its interval.
            let share = fp.interval_cycles / fp.latency_cycles / f64::from(fp.count);
            pipes_per_operation[place.core] = share;
        }
        Self {
            core_of: chip.places().iter().map(|place| place.core).collect(),
            pipes_per_operation,
            used: vec![0.0; cores],
            from_ps: 0,
            to_ps: 0,
            sum: FpuUse::default(),
            time_ps: 0.0,
        }
    }

    fn flush(&mut self) {
        let time = (self.to_ps - self.from_ps) as f64;
        let all: f64 = self.used.iter().sum();
        self.sum.mean += time * all / self.used.len() as f64;
        self.sum.busiest += time * self.used.iter().copied().fold(0.0, f64::max);
        self.sum.idlest += time * self.used.iter().copied().fold(f64::INFINITY, f64::min);
        self.time_ps += time;
        self.used.fill(0.0);
        self.from_ps = self.to_ps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{chip, segment};
    use consort_sim::contention::ThreadRates;
    use std::sync::Arc;

    /// On Bulldozer an operation takes 5 cycles of which 1 on one of two pipes.
    fn bulldozer() -> Arc<Chip> {
        chip("bulldozer-6282se")
    }

    fn tell(watch: &mut FpuWatch, pu: usize, span_ps: [u64; 2], operations: f64) {
        let mut rates = ThreadRates {
            cpi: 2.0,
            ..ThreadRates::default()
        };
        rates.flow.fp_cycles = 2.0 * operations;
        watch.note_segment(&segment(1, pu, span_ps, &rates));
    }

    #[test]
    fn two_threads_on_a_module_add_up() {
        let mut watch = FpuWatch::new(&bulldozer());
        tell(&mut watch, 0, [0, 10], 5.0);
        tell(&mut watch, 1, [0, 10], 2.0);
        tell(&mut watch, 2, [0, 10], 1.0);
        let used = watch.finish();
        assert!((used.busiest - 0.7).abs() < 1e-9, "{used:?}");
        assert!((used.mean - 0.2).abs() < 1e-9, "{used:?}");
        assert_eq!(used.idlest, 0.0);
    }

    #[test]
    fn intervals_count_by_their_length() {
        let mut watch = FpuWatch::new(&bulldozer());
        tell(&mut watch, 0, [0, 10], 4.0);
        tell(&mut watch, 4, [10, 40], 8.0);
        let used = watch.finish();
        assert!((used.busiest - (0.25 * 0.4 + 0.75 * 0.8)).abs() < 1e-9);
        assert!((used.mean - used.busiest / 4.0).abs() < 1e-9);
    }
}
