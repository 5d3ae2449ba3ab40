//! Placement of the threads that remain when others end, by each model.

use super::{MS, counts};
use crate::engine::testing::{engine, instances, program};
use crate::engine::{Engine, RunMode, SimulatedProgram};
use proptest::prelude::*;

/// Runnable threads on each of the four cores.
fn crowds(e: &Engine) -> Vec<usize> {
    let runnable = e.threads().iter().filter(|t| t.is_runnable());
    let cores: Vec<usize> = runnable
        .filter_map(|t| t.queue.pu)
        .map(|pu| pu / 2)
        .collect();
    counts(&cores)
}

/// Eight threads, one per CPU; those on the first so many cores have little to do.
fn full(short_cores: usize) -> Engine {
    let work: Vec<SimulatedProgram> = (0..8)
        .flat_map(|t| {
            let length = if t < 2 * short_cores { 0.1 } else { 99.0 };
            instances(&program(), 1, 1, length)
        })
        .collect();
    let mut e = engine("linux", RunMode::Once, &work, 1);
    let only = |t: usize| format!("{t}").parse().unwrap();
    (0..8).for_each(|t| e.restrict(t, only(t)));
    e.enforce_masks();
    e.run_until(MS);
    (0..8).for_each(|t| e.restrict(t, "0-7".parse().unwrap()));
    e
}

/// The first ms at the end of which this holds.
fn first_ms(e: &mut Engine, holds: impl Fn(&[usize]) -> bool) -> u64 {
    let mut ms = 2..2000;
    ms.find(|&ms| {
        e.run_until(ms * MS);
        holds(&crowds(e))
    })
    .unwrap()
}

#[test]
fn idle_cores_take_over_halves_of_pairs_at_the_fourth_attempt() {
    for (short_cores, uneven, even) in [(1, [0, 2, 2, 2], [1, 1, 2, 2]), (2, [0, 0, 2, 2], [1; 4])]
    {
        let mut e = full(short_cores);
        let ended = first_ms(&mut e, |crowds| crowds == uneven);
        let evened = first_ms(&mut e, |crowds| crowds == even);
        // The first of four attempts, 8 ms apart, comes up to 8 ms after the end.
        assert!((24..=33).contains(&(evened - ended)), "{ended} to {evened}");
        e.run_until(1500 * MS);
        assert_eq!(crowds(&e), even);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_balancing_makes_counts_less_even(
        lengths in prop::collection::vec(0.01f64..0.6, 1..20), seed in 0u64..100,
        grouped in any::<bool>(),
    ) {
        let each = lengths.iter().flat_map(|&length| instances(&program(), 1, 1, length));
        let os = if grouped { "linux-grouped" } else { "linux" };
        let mut e = engine(os, RunMode::Once, &each.collect::<Vec<_>>(), seed);
        let mut before = crowds(&e);
        for ms in 1..400 {
            e.run_until(ms * MS);
            let after = crowds(&e);
            let squares = |crowds: &[usize]| crowds.iter().map(|n| n * n).sum::<usize>();
            if after.iter().sum::<usize>() == before.iter().sum::<usize>() {
                prop_assert!(squares(&after) <= squares(&before), "{before:?} {after:?} at {ms}");
            }
            before = after;
        }
    }
}
