//! Each policy on small chips.

mod pie {
    use super::super::super::testing::{BUSY, Bench, Did, chip, estimates};
    use super::super::*;
    use crate::signal::Signal;

    /// A million instructions without misses in 4 million cycles; in order they take 2 million.
    const CHAINS: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 2e6),
        ],
        ..BUSY
    };

    /// Misses that overlap as little here as there: one per 1000 instructions.
    const ALONE: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 1e3),
            (Signal::LlcMissCycles, 3e6),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 0.5e6),
        ],
        ..BUSY
    };

    fn bench() -> Bench<BestScoreRule<PieScore>> {
        let chip = chip(1, 1, 1);
        let rule = BestScoreRule::new(PieScore::speedup(estimates(&chip)), 0.0, Ties::RoundRobin);
        Bench::new(chip, rule)
    }

    #[test]
    fn the_highest_predicted_benefit_gets_the_big_core() {
        // On the large core ALONE: CPI_small = 0.5 + 3·1 = 3.5 of 4: 0.875.
        // On the small core CHAINS: CPI_big = 1/4 of 4: 16.
        let mut bench = bench();
        bench.quantum(&[ALONE, CHAINS]);
        assert_eq!(bench.quantum(&[ALONE, CHAINS]), [1, 0]);
        // Now CHAINS on the large core: CPI_small = 2 of 4, 0.5; ALONE on the small one:
        // CPI_big = 1/4 + 3 = 3.25 of 4, 1.23. The counts of a test do not change with the core,
        // so they go back.
        assert_eq!(bench.quantum(&[ALONE, CHAINS]), [0, 1]);
    }
}

mod mlp_ratio {
    use super::super::super::testing::{BUSY, Bench, Did, chip, estimates};
    use super::super::*;
    use crate::signal::Signal;

    /// A million instructions with 62500 misses, 1/16 each, at a distance of 32: 8/2 = 4.
    const FAR: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 62_500.0),
            (Signal::LlcMissCycles, 3e6),
            (Signal::UseDistances, 32e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    /// The same at a distance of 4: 8/1 = 8.
    const NEAR: Did = Did {
        counts: &[
            (Signal::Cycles, 4e6),
            (Signal::LlcMisses, 62_500.0),
            (Signal::LlcMissCycles, 1e6),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    #[test]
    fn highest_mlp_ratio_is_on_the_large_core() {
        let chip = chip(1, 2, 1);
        let rule = BestScoreRule::new(PieScore::mlp_ratio(estimates(&chip)), 0.0, Ties::RoundRobin);
        let mut bench = Bench::new(chip, rule);
        bench.quantum(&[FAR, FAR, NEAR]);
        assert_eq!(bench.quantum(&[FAR, FAR, NEAR]), [2, 1, 0]);
        // It stays there, though its misses cost it less than theirs cost the others.
        assert_eq!(bench.quantum(&[FAR, FAR, NEAR]), [2, 1, 0]);
    }
}

mod mem_dominance {
    use super::super::super::testing::{BUSY, Bench, Did, chip};
    use super::super::*;

    const fn stalled(counts: &'static [(Signal, f64)]) -> Did {
        Did { counts, ..BUSY }
    }

    const MOST: Did = stalled(&[(Signal::MemoryStall, 0.8)]);
    const SOME: Did = stalled(&[(Signal::MemoryStall, 0.5)]);
    const LEAST: Did = stalled(&[(Signal::MemoryStall, 0.1)]);

    fn bench() -> Bench<BestScoreRule<MemDominance>> {
        let rule = BestScoreRule::new(MemDominance::default(), 0.0, Ties::RoundRobin);
        Bench::new(chip(1, 2, 1), rule)
    }

    #[test]
    fn memory_bound_threads_are_on_small_cores_always() {
        let mut bench = bench();
        let did = [MOST, SOME, LEAST];
        bench.quantum(&did);
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
    }

    #[test]
    fn shares_are_those_of_the_whole_quantum() {
        let mut bench = bench();
        let alike = [SOME, SOME, SOME];
        bench.quantum(&alike);
        // A thousandth of the quantum at 0.1 leaves 0.4996, which is still the lowest.
        bench.activity(&[SOME, SOME, LEAST]);
        assert_eq!(bench.quantum(&alike), [2, 1, 0]);
    }
}

mod fair_time {
    use super::super::super::testing::{BUSY, Bench, Did, chip};
    use super::super::*;
    use proptest::prelude::*;

    fn bench(large: u32, small: u32, order: Ties) -> Bench<BestScoreRule<FairTime>> {
        let rule = BestScoreRule::new(FairTime::default(), 0.0, order);
        Bench::new(chip(large, small, 1), rule)
    }

    /// Number of quanta that each of some threads that always run has the large core in.
    fn turns(
        bench: &mut Bench<BestScoreRule<FairTime>>,
        threads: usize,
        quanta: usize,
    ) -> Vec<usize> {
        let did: Vec<Did> = vec![BUSY; threads];
        let mut turns = vec![0; threads];
        for _ in 0..quanta {
            let pus = bench.quantum(&did);
            turns[pus.iter().position(|&pu| pu == 0).unwrap()] += 1;
        }
        turns
    }

    #[test]
    fn large_core_quanta_are_evened_out() {
        let mut bench = bench(1, 3, Ties::RoundRobin);
        let did = [BUSY; 4];
        // What a thread does counts from the end of its first quantum.
        assert_eq!(bench.quantum(&did), [0, 1, 2, 3]);
        // Shares 1, 0, 0, 0: the first of those without takes the large core.
        assert_eq!(bench.quantum(&did), [1, 0, 2, 3]);
        // 1/2, 1/2, 0, 0: the next.
        assert_eq!(bench.quantum(&did), [1, 2, 0, 3]);
        // 1/3, 1/3, 1/3, 0: the last.
        assert_eq!(bench.quantum(&did), [1, 2, 3, 0]);
        // All 1/4: no thread moves.
        assert_eq!(bench.quantum(&did), [1, 2, 3, 0]);
        // 1/5, 1/5, 1/5, 2/5: the first in the queue again.
        assert_eq!(bench.quantum(&did), [0, 2, 3, 1]);
    }

    #[test]
    fn threads_keep_to_a_kind_of_core() {
        let mut bench = bench(1, 3, Ties::Random);
        let mut before = vec![0, 1, 2, 3];
        for _ in 0..50 {
            let after = bench.quantum(&[BUSY; 4]);
            for (b, a) in before.iter().zip(&after) {
                assert!(a == b || *a == 0 || *b == 0, "{before:?} {after:?}");
            }
            before = after;
        }
    }

    #[test]
    fn order_of_equals_follows_the_option() {
        let sequence = |order| -> Vec<Vec<u32>> {
            let mut bench = bench(1, 7, order);
            (0..20).map(|_| bench.quantum(&[BUSY; 8])).collect()
        };
        assert_ne!(sequence(Ties::RoundRobin), sequence(Ties::Random));
    }

    proptest! {
        #[test]
        fn threads_that_always_run_have_equal_turns(small in 1u32..12, random: bool) {
            let order = if random { Ties::Random } else { Ties::RoundRobin };
            let threads = small as usize + 1;
            let turns = turns(&mut bench(1, small, order), threads, 10 * threads);
            prop_assert!(turns.iter().all(|&t| (9..=11).contains(&t)), "{:?}", turns);
        }
    }
}

mod fair_progress {
    use super::super::super::testing::{BUSY, Bench, Did, chip, estimates};
    use super::super::*;

    fn bench(is_estimated: bool, small: u32) -> Bench<BestScoreRule<FairProgress>> {
        let chip = chip(1, small, 1);
        let from = match is_estimated {
            true => SpeedupSource::Pie(estimates(&chip)),
            false => SpeedupSource::Measured,
        };
        let rule = BestScoreRule::new(FairProgress::new(from, &chip), 0.0, Ties::RoundRobin);
        Bench::new(chip, rule)
    }

    /// A million instructions that a large core is estimated to speed up: 4 times from the small
    /// core, where CPI is 1 and would be 1/4; on the large core, with CPI 1, by those in order.
    const FOURFOLD: Did = Did {
        counts: &[
            (Signal::Cycles, 1e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 4e6),
        ],
        ..BUSY
    };

    /// The same twice: CPI is 0.5 on the small core.
    const TWOFOLD: Did = Did {
        counts: &[
            (Signal::Cycles, 0.5e6),
            (Signal::LlcMisses, 0.0),
            (Signal::LlcMissCycles, 0.0),
            (Signal::UseDistances, 4e6),
            (Signal::InOrderCycles, 1e6),
        ],
        ..BUSY
    };

    #[test]
    fn most_slowed_down_threads_are_on_large_cores() {
        let mut bench = bench(true, 2);
        let did = [TWOFOLD, TWOFOLD, FOURFOLD];
        bench.quantum(&did);
        // One quantum: S = 1 on the large core, 2 and 4 on small ones. FOURFOLD goes.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Two: (1+1)/(1+1/2) = 1.33, 2, (1+1)/(1+1/4) = 1.6. The second goes.
        assert_eq!(bench.quantum(&did), [2, 0, 1]);
        // Three: 3/(1+2/2) = 1.5; 3/(1+2/2) = 1.5; 3/(1+2/4) = 2. FOURFOLD goes.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Four: 4/(1+3/2) = 1.6; the second likewise; 4/(2+2/4) = 1.6. No thread moves.
        assert_eq!(bench.quantum(&did), [2, 1, 0]);
        // Five: 5/(1+4/2) = 1.67 both; 5/(3+2/4) = 1.43. The first in the queue goes.
        assert_eq!(bench.quantum(&did), [0, 1, 2]);
    }

    #[test]
    fn guess_keeps_no_thread_from_large_cores() {
        // Large cores are 8 times as fast: who has an eighth of one is slowed down to 1 / (1/8 +
        // 7/8/8) = 4.3, more than the capacities of 1024 and 400 would say of who has had none.
        let on = |large: bool| Did {
            instructions: if large { 8e6 } else { 1e6 },
            ..BUSY
        };
        let mut bench = bench(false, 7);
        let (mut at, mut had) = (0, [0; 8]);
        for _ in 0..80 {
            let pus = bench.quantum(&[0, 1, 2, 3, 4, 5, 6, 7].map(|l| on(l == at)));
            at = pus.iter().position(|&pu| pu == 0).unwrap();
            had[at] += 1;
        }
        assert!(had.iter().all(|&n| (9..=11).contains(&n)), "{had:?}");
    }

    #[test]
    fn ratio_is_measured_after_both_core_kinds() {
        let did = |millions: f64| Did {
            instructions: millions * 1e6,
            ..BUSY
        };
        let mut bench = bench(false, 1);
        bench.quantum(&[did(1.0), did(1.0)]);
        // Not known of either: who has never had the large core goes first.
        assert_eq!(bench.quantum(&[did(4.0), did(1.0)]), [1, 0]);
        // Both have been on both: the first went from 4 to 1, R = 4, S = 2/(1+1/4) = 1.6; the
        // second from 1 to 2, R = 2, S = 2/(1+1/2) = 1.33. So they change again.
        assert_eq!(bench.quantum(&[did(1.0), did(2.0)]), [0, 1]);
    }

    #[test]
    fn without_counters_it_says_that_it_can_measure() {
        let offers = FAIR_PROGRESS
            .needs
            .iter()
            .map(|&signal| (signal, Tier::Counters));
        let spec = FAIR_PROGRESS.name.parse().unwrap();
        let opened = crate::policies::open(&chip(1, 1, 1), &offers.collect(), &spec);
        let text = opened.err().unwrap().to_string();
        assert!(
            text.contains("does not count") && text.contains("ratio=measured"),
            "{text}"
        );
    }
}
