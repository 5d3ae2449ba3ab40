//! Windows: what fills them, and what that leaves to a co-runner.

use super::build::{alone, machine, machine_with, phase, solve};
use consort_sim::machine::MachineSpec;
use consort_sim::program::PhaseSpec;

/// Plenty of parallelism, and branches that are mispredicted.
fn branchy(a: f64) -> PhaseSpec {
    phase(|p| {
        p.ilp.a = a;
        p.branch.mpki = 5.0;
    })
}

#[test]
fn speed_grows_without_jumps_with_parallelism() {
    let ipc: Vec<f64> = (0..=600)
        .map(|step| alone(&machine(), &branchy(0.2 + 0.002 * f64::from(step))))
        .collect();
    assert!(ipc[600] > 1.5 * ipc[0], "{} {}", ipc[0], ipc[600]);
    for pair in ipc.windows(2) {
        assert!((0.0..0.02).contains(&(pair[1] - pair[0])), "{pair:?}");
    }
}

/// A core with so many ports for loads and stores.
fn loading(ports: u32) -> MachineSpec {
    machine_with(|core| core.units.load_store.count = ports)
}

#[test]
fn what_waits_for_ports_piles_up_in_a_shared_window() {
    let loads = phase(|p| {
        p.mix.load = 0.85;
        p.mix.int = 0.0;
        p.ilp.a = 3.0;
    });
    let victim = phase(|p| p.ilp.a = 0.4);
    let windows = |ports| {
        let pair = solve(&loading(ports), &[(0, &victim), (1, &loads)]);
        pair.threads.iter().map(|t| t.window).collect::<Vec<_>>()
    };
    let (few, many) = (windows(2), windows(4));
    assert!(few[1] > 1.5 * many[1], "{few:?} {many:?}");
    assert!(few[0] < 0.8 * many[0], "{few:?} {many:?}");
}

#[test]
fn hits_in_the_l2_cost_what_was_measured() {
    // Ten misses of the L1 per thousand instructions; the L2 takes seven cycles more.
    let cpi = |costs: Option<[f64; 2]>| {
        let phase = phase(|p| {
            p.ilp.miss_costs = costs;
            p.data_mpki[..3].fill(10.0);
        });
        1.0 / alone(&machine(), &phase)
    };
    let hidden = cpi(Some([0.0, 5.0]));
    assert!((cpi(Some([2.0, 5.0])) - hidden - 0.01 * 2.0 * 0.7).abs() < 1e-4);
    assert!(cpi(None) >= hidden);
}
