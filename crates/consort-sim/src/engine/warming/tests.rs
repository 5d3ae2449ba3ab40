//! Costs of warming, and their bounds.

use super::super::testing::{PlainEnergy, chip, program};
use super::*;
use crate::program::PhaseSpec;
use proptest::prelude::*;

/// Bytes of each level that a thread holds in the end.
const HELD: [f64; LEVELS] = [32e3, 256e3, 2e6];

fn phase(mpki: impl Fn(usize) -> f64) -> Phase {
    let mut spec: PhaseSpec = program().phases[0].clone();
    spec.data_mpki = (0..14).map(mpki).collect();
    spec.prefetch.effectiveness = 0.0;
    Phase::new(&spec)
}

fn falling() -> Phase {
    phase(|i| 40.0 / f64::from(1 << i))
}

fn rates() -> ThreadRates {
    ThreadRates {
        ips: 2e9,
        mlp: 2.0,
        l1d_bytes: HELD[0],
        l2_bytes: HELD[1],
        llc_bytes: HELD[2],
        ..ThreadRates::default()
    }
}

fn here<'a>(chip: &'a Chip, rates: &'a ThreadRates, phase: &'a Phase) -> WarmingPlace<'a> {
    WarmingPlace {
        chip,
        meter: &PlainEnergy,
        pu: 0,
        home: 0,
        rates,
        phase,
    }
}

/// Lines missed additionally at each level, and cycles, by an age in instructions.
fn missed(phase: &Phase, arrived: InitialContents, age: f64) -> ([f64; LEVELS], f64) {
    let (chip, rates) = (chip(1), rates());
    let here = here(&chip, &rates, phase);
    let mut warming = CacheWarming::default();
    warming.arrive(arrived);
    warming.apply_rates(&here);
    let (mut lines, mut cycles, mut ran) = ([0.0; LEVELS], 0.0, 0.0);
    while warming.is_open() && ran < age {
        let span = warming.instructions_left().min(age - ran);
        let flow = warming.flow;
        let more = [flow.l1d_misses, flow.llc_accesses, flow.llc_misses];
        for (sum, more) in lines.iter_mut().zip(more) {
            *sum += more * span;
        }
        cycles += warming.cycles() * span;
        ran += span;
        warming.note_instructions(span);
        if warming.instructions_left() <= 0.0 {
            warming.begin_age(&here);
        }
    }
    (lines, cycles)
}

fn arrived(found: [f64; LEVELS]) -> InitialContents {
    InitialContents {
        found,
        siblings: [0.0; LEVELS],
        elsewhere_s: None,
    }
}

const COLD: [f64; LEVELS] = [0.0; LEVELS];
const LONG: f64 = 1e12;

#[test]
fn who_lacks_nothing_pays_nothing() {
    assert_eq!(missed(&falling(), arrived(HELD), LONG), (COLD, 0.0));
}

#[test]
fn a_stream_would_have_missed_all_of_it_anyway() {
    let stream = phase(|_| 20.0);
    let (lines, _) = missed(&stream, arrived(COLD), LONG);
    // But for the few lines that it finds again in the first 8 KiB of data and of code.
    let first = 2.0 * 8192.0 / CURVE_LINE_BYTES;
    assert!(lines.iter().all(|&lines| lines <= first), "{lines:?}");
}

#[test]
fn what_fits_is_fetched_once() {
    // Nothing is missed when 64 KiB are held, and almost everything before.
    let fits = phase(|i| if i < 3 { 300.0 } else { 0.0 });
    let (lines, cycles) = missed(&fits, arrived(COLD), LONG);
    // With 8 KiB of code.
    let all = (64.0 + 8.0) * 1024.0 / CURVE_LINE_BYTES;
    assert!((0.8..=1.0).contains(&(lines[1] / all)), "{lines:?}");
    assert!(cycles > 0.0);
}

#[test]
fn siblings_spare_their_share() {
    let alone = missed(&falling(), arrived(COLD), LONG).1;
    let shared = InitialContents {
        siblings: [1.0; LEVELS],
        ..arrived(COLD)
    };
    assert_eq!(missed(&falling(), shared, LONG).1, 0.0);
    assert!(alone > 0.0);
}

proptest! {
    #[test]
    fn never_more_than_is_lacking_and_never_less_with_time_or_lack(
        raw in prop::collection::vec(0.0f64..60.0, 14),
        share in 0.0f64..1.0,
        less in 0.0f64..1.0,
        age in 1e2f64..1e9,
    ) {
        let phase = phase(|i| raw[i]);
        let some = HELD.map(|held| held * share);
        let fewer = some.map(|found| found * less);
        let (lines, cycles) = missed(&phase, arrived(some), age);
        for (lines, (held, found)) in lines.iter().zip(HELD.iter().zip(some)) {
            let lacking = (held - found) / CURVE_LINE_BYTES;
            prop_assert!(*lines <= lacking * (1.0 + 1e-3) + 1.0, "{lines} of {lacking}");
        }
        let (_, later) = missed(&phase, arrived(some), 4.0 * age);
        let (_, lacking_more) = missed(&phase, arrived(fewer), LONG);
        let (_, in_the_end) = missed(&phase, arrived(some), LONG);
        prop_assert!(later >= cycles * (1.0 - 1e-9));
        prop_assert!(lacking_more >= in_the_end * (1.0 - 1e-3) - 1.0);
    }
}
