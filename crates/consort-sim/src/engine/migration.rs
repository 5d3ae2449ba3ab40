//! What moving and switching threads costs.
//!
//! *Migration*: what the thread holds of caches that the two places do not share is fetched again
//! from the nearest level that they do share: lines × latency of that level / overlap, where the
//! overlap is the thread's memory-level parallelism (Constantinou et al., "Performance
//! implications of single thread migration on a chip multi-core", SIGARCH CAN 2005, for what is
//! lost; interval analysis, Eyerman et al., TOCS 2009, for the overlap).
//!
//! Only what is used again is fetched again: of what a thread holds of a cache, the part beyond
//! the smallest capacity with the same misses saves it nothing and counts for nothing.
//!
//! *Switch*: what the thread finds displaced after another has run on its PU is at most what the
//! other holds, and at most what it held itself; it comes back from the level below.

use crate::chip::KIB;
use crate::chip::{Chip, Place};
use crate::contention::ThreadRates;
use crate::machine::Scope;
use crate::program::{CURVE_KIB, Lines, MissCurve, Phase};

/// Cycles to exchange the registers of two logical cores (Markovic, UPC 2015, chapter 7 of the
/// specification).
pub(crate) const SWAP_CYCLES: f64 = 1000.0;

/// Relative difference of misses that is none.
const SAME: f64 = 1e-3;

/// What a thread holds and would miss.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Footprint {
    l1d_bytes: f64,
    l2_bytes: f64,
    llc_bytes: f64,
    overlap: f64,
}

impl Footprint {
    /// The footprint of a thread that runs in a phase at given rates, in whole lines of a cache.
    pub(crate) fn of(rates: &ThreadRates, phase: &Phase, line_bytes: f64) -> Self {
        let space = Lines::of_data(&phase.spec, line_bytes).space;
        let useful = |bytes: f64, curves| useful(bytes / space, curves) * space;
        let data: &[&MissCurve] = &[&phase.data];
        let both: &[&MissCurve] = &[&phase.data, &phase.code];
        Self {
            l1d_bytes: useful(rates.l1d_bytes, data),
            l2_bytes: useful(rates.l2_bytes, both),
            llc_bytes: useful(rates.llc_bytes, both),
            overlap: rates.mlp.max(1.0),
        }
    }
}

/// The smallest of the capacities of the curves below `held` at which no more is missed.
fn useful(held: f64, curves: &[&MissCurve]) -> f64 {
    let misses: f64 = curves.iter().map(|c| c.mpki(held)).sum();
    let at = |i: usize| -> f64 { curves.iter().map(|c| c.points()[i]).sum() };
    let enough = |i: &usize| at(*i) <= misses * (1.0 + SAME);
    let smallest = (0..CURVE_KIB.len()).find(enough);
    smallest.map_or(held, |i| held.min(CURVE_KIB[i] * KIB))
}

/// Time to refill what a thread held at PU `from` when it comes to PU `to`, s.
pub(crate) fn refill_s(chip: &Chip, held: &Footprint, home: usize, from: usize, to: usize) -> f64 {
    let (from, to) = (chip.places()[from], chip.places()[to]);
    let line = f64::from(chip.spec().memory.line_bytes);
    let (bytes, latency_s) = lost(chip, held, home, from, to);
    bytes / line * latency_s / held.overlap
}

/// Bytes to fetch again and the latency at which they come, s.
fn lost(chip: &Chip, held: &Footprint, home: usize, from: Place, to: Place) -> (f64, f64) {
    let private = held.l1d_bytes.max(held.l2_bytes);
    if from.core == to.core {
        let own = chip.core_spec(to).l1d.per == Scope::Pu;
        let bytes = if own { held.l1d_bytes } else { 0.0 };
        (bytes, below_l1_s(chip, to))
    } else if from.l2 == to.l2 && chip.core_spec(to).l2.is_some() {
        (held.l1d_bytes, below_l1_s(chip, to))
    } else if from.llc == to.llc {
        (private, chip.spec().llc.latency_ns * 1e-9)
    } else {
        (
            private.max(held.llc_bytes),
            beyond_llc_s(chip, home, from, to),
        )
    }
}

/// Latency of the level below the L1, s.
fn below_l1_s(chip: &Chip, to: Place) -> f64 {
    let llc_s = chip.spec().llc.latency_ns * 1e-9;
    let l2 = chip.core_spec(to).l2.as_ref();
    l2.map_or(llc_s, |l2| l2.latency_cycles / chip.frequency_hz(to))
}

/// Latency of the nearest level shared by two LLC domains: the other domain where it can be read,
/// else memory on the thread's home node, s.
fn beyond_llc_s(chip: &Chip, home: usize, from: Place, to: Place) -> f64 {
    let remote = chip.spec().llc.remote_latency_ns;
    if let Some(ns) = remote.filter(|_| from.package == to.package) {
        return ns * 1e-9;
    }
    chip.memory_latency_ns(to, home) * 1e-9
}

/// Time to bring back what `other` displaced of what `held` had on a PU, s.
pub(crate) fn displaced_s(chip: &Chip, held: &Footprint, other: &Footprint, pu: usize) -> f64 {
    let place = chip.places()[pu];
    let line = f64::from(chip.spec().memory.line_bytes);
    let l1 = held.l1d_bytes.min(other.l1d_bytes);
    let l2 = held.l2_bytes.min(other.l2_bytes);
    let time = l1 * below_l1_s(chip, place) + l2 * chip.spec().llc.latency_ns * 1e-9;
    time / line / held.overlap
}

/// Lines of the L1D that come back after `other` has run on a PU; each of them is a miss.
pub(crate) fn displaced_lines(chip: &Chip, held: &Footprint, other: &Footprint) -> f64 {
    held.l1d_bytes.min(other.l1d_bytes) / f64::from(chip.spec().memory.line_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::RunMode;
    use crate::engine::testing::{chip, engine, instances, program};
    use consort_core::PuId;

    fn held() -> Footprint {
        Footprint {
            overlap: 2.0,
            l1d_bytes: 6400.0,
            l2_bytes: 64_000.0,
            llc_bytes: 640_000.0,
        }
    }

    #[test]
    fn what_saves_no_miss_is_not_fetched_again() {
        let rates = ThreadRates {
            l1d_bytes: 4096.0,
            l2_bytes: 100_000.0,
            llc_bytes: 5e6,
            ..ThreadRates::default()
        };
        let mut spec = program().phases[0].clone();
        let phase =
            |spec: &crate::program::PhaseSpec| Footprint::of(&rates, &Phase::new(spec), 64.0);
        let none = phase(&spec);
        assert_eq!(
            (none.l1d_bytes, none.l2_bytes, none.llc_bytes),
            (4096.0, 8192.0, 8192.0)
        );
        spec.data_mpki = (0..14).map(|i| f64::from(14 - i)).collect();
        assert_eq!(phase(&spec).llc_bytes, 5e6);
    }

    #[test]
    fn long_lines_hold_less_of_what_is_scattered() {
        let rates = ThreadRates {
            llc_bytes: 5e6,
            ..ThreadRates::default()
        };
        let mut spec = program().phases[0].clone();
        spec.prefetch.effectiveness = 0.0;
        let of = |line_bytes| Footprint::of(&rates, &Phase::new(&spec), line_bytes).llc_bytes;
        assert_eq!((of(64.0), of(128.0)), (8192.0, 2.0 * 8192.0));
    }

    /// PU 0 and 1 share a core, 2 and 3 the next; 8 is in the other node.
    #[test]
    fn the_farther_the_move_the_more_is_fetched_and_from_farther_away() {
        let chip = chip(2);
        let cost = |to| refill_s(&chip, &held(), 0, 0, to);
        assert_eq!(cost(0), 0.0);
        assert_eq!(cost(1), 0.0);
        let near = 1000.0 * 15e-9 / 2.0;
        assert!((cost(2) - near).abs() < 1e-12, "{}", cost(2));
        let far = 10_000.0 * (70e-9 + 50e-9) / 2.0;
        assert!((cost(8) - far).abs() < 1e-12, "{}", cost(8));
    }

    #[test]
    fn a_small_neighbour_displaces_little() {
        let chip = chip(1);
        let none = Footprint {
            l1d_bytes: 0.0,
            l2_bytes: 0.0,
            ..held()
        };
        assert_eq!(displaced_s(&chip, &held(), &none, 0), 0.0);
        let all = displaced_s(&chip, &held(), &held(), 0);
        let expected = (100.0 * 5e-9 + 1000.0 * 15e-9) / 2.0;
        assert!((all - expected).abs() < 1e-12, "{all}");
        assert_eq!(displaced_lines(&chip, &held(), &none), 0.0);
        assert_eq!(displaced_lines(&chip, &held(), &held()), 100.0);
    }

    /// Misses of the L1D per context switch of the first of some programs that take turns on a PU
    /// for 80 ms. Their data fits it.
    fn missed_per_turn(programs: usize) -> f64 {
        let mut fits = program();
        fits.phases[0].data_mpki = vec![0.0; 14];
        fits.phases[0].data_mpki[..2].copy_from_slice(&[40.0, 20.0]);
        let one = |_| instances(&fits, 1, 1, 1.0);
        let work: Vec<_> = (0..programs).flat_map(one).collect();
        let mut e = engine("linux", RunMode::Once, &work, 1);
        for t in 0..programs {
            e.restrict(t, [PuId(0)].into_iter().collect());
        }
        e.obey();
        e.run_until(80_000_000_000);
        let counts = e.threads()[0].total();
        assert!(programs == 1 || counts.context_switches > 5);
        counts.flow.l1d_misses / counts.context_switches as f64
    }

    /// 32 KiB of 64 bytes are 512 lines; what is useful of them is 32 KiB.
    #[test]
    fn what_a_stranger_s_turn_displaced_is_missed_again() {
        assert_eq!(missed_per_turn(1), 0.0);
        let (missed, lines) = (missed_per_turn(2), 512.0);
        assert!(missed > 0.5 * lines && missed <= lines, "{missed}");
    }
}
