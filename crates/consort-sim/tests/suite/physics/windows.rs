//! Windows: what fills them, and what that leaves to a co-runner.

use super::build::{
    alone, chaser, compute, machine, machine_with, phase, random_loads, slowdown, solve,
};
use consort_sim::machine::detail::{BufferSharing, QueueSpec, WorkKind};
use consort_sim::machine::{MachineSpec, RobSharing};
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
    assert!(few[1] > 1.1 * many[1], "{few:?} {many:?}");
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

/// A core with shared buffers that holds threads back by these shares of buffers and misses.
fn balanced(percent: Option<u32>, misses: Option<u32>) -> MachineSpec {
    machine_with(|core| {
        let buffers = core.buffers.get_or_insert_default();
        (buffers.balance_percent, buffers.balance_misses) = (percent, misses);
    })
}

#[test]
fn waiting_thread_fills_no_more_than_its_share() {
    let [free, half] = [None, Some(50)].map(|percent| {
        let machine = balanced(percent, None);
        slowdown(&machine, &compute(), &chaser())
    });
    assert!(free > 1.3, "{free}");
    assert!(half < 1.0 + 0.5 * (free - 1.0), "{half}, without {free}");
}

#[test]
fn thread_with_misses_is_held_back() {
    // Four misses are on their way in fewer instructions than the window has.
    let pair = |misses| {
        let machine = balanced(None, misses);
        let threads = [(0, &compute()), (1, &random_loads())];
        let solution = solve(&machine, &threads);
        solution.threads.iter().map(|t| t.cpi).collect::<Vec<_>>()
    };
    let (free, four, one) = (pair(None), pair(Some(4)), pair(Some(1)));
    assert!(four[0] < free[0] && four[1] > free[1], "{four:?} {free:?}");
    assert!(one[0] <= four[0] && one[1] > four[1], "{one:?} {four:?}");
    // With the core to itself a thread is not held back.
    let alone_with = |misses| alone(&balanced(None, misses), &random_loads());
    assert_eq!(alone_with(Some(1)), alone_with(None));
}

#[test]
fn chain_fills_scheduler_that_divider_leaves_empty() {
    let machine = machine_with(|core| {
        core.rob_sharing = RobSharing::Partitioned;
        let buffers = core.buffers.get_or_insert_default();
        buffers.issue = vec![QueueSpec {
            holds: WorkKind::ALL[..WorkKind::StoreData.index()].to_vec(),
            entries: 48,
            sharing: BufferSharing::Shared,
            reserve: 6,
        }];
        buffers.issue_delay_cycles = Some(5);
    });
    // One instruction per cycle: a chain, whose operations all wait, and a divider, behind which
    // few do.
    let slow = |waiting| {
        phase(|p| {
            (p.ilp.a, p.ilp.b) = (1.0, 0.0);
            p.ilp.waiting = Some(waiting);
        })
    };
    let (chain, divider) = (slow(0.95), slow(0.1));
    let [a, b] = [&chain, &divider].map(|slow| alone(&machine, slow));
    assert!((a / b - 1.0).abs() < 1e-6, "{a} {b}");
    let adds = phase(|p| (p.ilp.a, p.ilp.b) = (1.0, 0.9));
    let [chain, divider] = [&chain, &divider].map(|other| slowdown(&machine, &adds, other));
    assert!(chain > 1.05 * divider, "{chain} {divider}");
}
