//! Energy: additive over time, conserved over threads and cores.

use crate::small;
use consort_sim::chip::Chip;
use consort_sim::contention::{Flow, ThreadRates};
use consort_sim::energy::{EnergyModel, Working};
use consort_sim::program::MixSpec;
use proptest::prelude::*;

const MIX: MixSpec = MixSpec {
    fp: 0.2,
    vector: 0.0,
    int: 0.4,
    load: 0.2,
    store: 0.1,
    branch: 0.1,
};

fn model() -> EnergyModel {
    EnergyModel::new(&Chip::new(&small::machine(), None).unwrap())
}

fn rates(ips: f64) -> ThreadRates {
    let flow = Flow {
        l1d_accesses: 0.3,
        l1d_misses: 0.02,
        l1i_misses: 0.01,
        llc_accesses: 0.01,
        prefetched_lines: 0.004,
        memory_lines: 0.005,
        ..Flow::default()
    };
    ThreadRates {
        ips,
        flow,
        ..ThreadRates::default()
    }
}

fn working(pu: usize, rates: &ThreadRates) -> Working<'_> {
    Working {
        pu,
        mix: &MIX,
        rates,
    }
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-12 * (a.abs() + b.abs())
}

#[test]
fn an_idle_machine_draws_its_idle_and_uncore_power() {
    let power = model().power(&[]);
    // Four cores of 2 W at a quarter, and 5 W of the uncore.
    assert_eq!(
        (power.idle_w, power.uncore_w, power.total_w()),
        (2.0, 5.0, 7.0)
    );
}

#[test]
fn work_costs_by_class_access_and_line() {
    let rates = rates(1e9);
    let power = model().power(&[working(0, &rates)]);
    // nJ per instruction: classes 0.2·0.2 + 0.4·0.1 + 0.2·0.4 + 0.1·0.5 + 0.1·0.6 = 0.27,
    // L1 0.3·0.02, L2 0.03·0.1, LLC 0.014·0.5, memory 0.005·20.
    let expect = 0.27 + 0.006 + 0.003 + 0.007 + 0.1;
    assert!((power.threads[0].dynamic_w - expect).abs() < 1e-12);
    assert_eq!((power.threads[0].static_w, power.idle_w), (2.0, 1.5));
}

#[test]
fn threads_on_a_core_share_its_static_power() {
    let rates = rates(1e9);
    let power = model().power(&[working(2, &rates), working(3, &rates)]);
    assert_eq!(power.threads[0], power.threads[1]);
    assert_eq!((power.threads[0].static_w, power.idle_w), (1.0, 1.5));
}

proptest! {
    #[test]
    fn energy_adds_up_over_splits_of_time(
        ips in prop::collection::vec(0.0f64..1e10, 0..8),
        seconds in prop::collection::vec(0.0f64..10.0, 1..10),
    ) {
        let rates: Vec<ThreadRates> = ips.into_iter().map(rates).collect();
        let running: Vec<Working<'_>> =
            rates.iter().enumerate().map(|(pu, r)| working(pu, r)).collect();
        let power = model().power(&running);
        let whole = power.over(seconds.iter().sum());
        let parts: f64 = seconds.iter().map(|&s| power.over(s).total_j()).sum();
        prop_assert!(near(whole.total_j(), parts));
        for (thread, energy) in power.threads.iter().zip(&whole.threads) {
            let parts: f64 = seconds.iter().map(|&s| thread.over(s).total_j()).sum();
            prop_assert!(near(energy.total_j(), parts));
        }
    }

    #[test]
    fn every_core_draws_its_static_power_once_whoever_runs(
        pus in prop::sample::subsequence((0..8).collect::<Vec<usize>>(), 0..=8),
    ) {
        let rates = rates(1e9);
        let running: Vec<Working<'_>> = pus.iter().map(|&pu| working(pu, &rates)).collect();
        let power = model().power(&running);
        let mut busy: Vec<usize> = pus.iter().map(|pu| pu / 2).collect();
        busy.dedup();
        let threads: f64 = power.threads.iter().map(|t| t.static_w).sum();
        prop_assert!(near(threads, 2.0 * busy.len() as f64));
        prop_assert!(near(power.idle_w, 0.5 * (4 - busy.len()) as f64));
    }
}
