//! Forms that are known to hold, with their numbers.

use super::build::{
    alone, chaser, compute, in_order, machine, machine_with, phase, random_loads, slowdown, solve,
    streamer,
};
use consort_sim::machine::{RobSharing, presets};
use consort_sim::program::{ChainSpec, PhaseSpec};

/// Within a tenth of what is expected.
fn about(value: f64, expected: f64) {
    assert!(
        (value / expected - 1.0).abs() < 0.1,
        "{value}, expected about {expected}"
    );
}

/// Every operation on the longest chain takes a cycle and a half on average.
fn long_chain() -> ChainSpec {
    ChainSpec {
        plain: 1.5,
        ..ChainSpec::default()
    }
}

/// Parallelism that grows with the root of the window, all of which the issue queue sustains.
fn parallel(a: f64) -> PhaseSpec {
    phase(|p| {
        p.ilp.a = a;
        p.ilp.b = 0.5;
        p.ilp.chain = Some(long_chain());
        p.ilp.waiting = Some(0.3);
    })
}

#[test]
fn two_that_could_fill_the_width_share_it() {
    let m = machine_with(|core| core.rob_sharing = RobSharing::Private);
    let (slow, fast) = (parallel(0.4866), parallel(2.0));
    about(alone(&m, &slow), 3.67);
    about(alone(&m, &fast), 4.0);
    let pair = solve(&m, &[(0, &slow), (1, &fast)]);
    about(1.0 / pair.threads[0].cpi, 2.0);
    about(1.0 / pair.threads[1].cpi, 2.0);
}

#[test]
fn beside_one_that_hardly_dispatches_almost_nothing_is_lost() {
    let m = machine_with(|core| core.rob_sharing = RobSharing::Private);
    let slow = phase(|p| {
        p.ilp.a = 0.128 * 1.5;
        p.ilp.b = 0.0;
        p.ilp.chain = Some(long_chain());
    });
    let pair = solve(&m, &[(0, &parallel(2.0)), (1, &slow)]);
    let ipc = 1.0 / pair.threads[0].cpi;
    assert!((3.83..=3.90).contains(&ipc), "{ipc}");
}

#[test]
fn a_chaser_clogs_a_shared_window_and_not_a_partitioned_one() {
    let shared = machine();
    let halves = machine_with(|core| core.rob_sharing = RobSharing::Partitioned);
    let clogged = slowdown(&shared, &compute(), &chaser());
    assert!((1.5..=1.9).contains(&clogged), "{clogged}");
    let apart = slowdown(&halves, &compute(), &chaser());
    assert!((1.0..=1.05).contains(&apart), "{apart}");
}

#[test]
fn two_chasers_do_not_hurt_each_other_through_the_core() {
    let s = slowdown(&machine(), &chaser(), &chaser());
    assert!((1.0..1.03).contains(&s), "{s}");
}

#[test]
fn a_chase_gains_nothing_from_a_big_core_and_independent_loads_gain_much() {
    let (big, small) = (machine(), in_order(4.0));
    let gain = |p: &PhaseSpec| alone(&big, p) / alone(&small, p);
    let chase = gain(&chaser());
    assert!((0.95..=1.1).contains(&chase), "{chase}");
    let independent = gain(&random_loads());
    assert!((3.0..=4.0).contains(&independent), "{independent}");
}

#[test]
fn parallel_compute_gains_by_width() {
    let wide = machine();
    let narrow = machine_with(|core| {
        core.dispatch_width = 2.0;
        core.smt[0].thread_dispatch_width = 2.0;
    });
    about(alone(&wide, &compute()) / alone(&narrow, &compute()), 2.0);
}

#[test]
fn who_just_fits_the_llc_falls_off_a_cliff_beside_a_streamer() {
    let fits = phase(|p| {
        p.data_mpki = vec![20.0; 14];
        p.data_mpki[10..].fill(0.2);
        p.mlp.value = 2.0;
        p.mlp.window_exponent = 0.5;
    });
    let m = machine();
    let pair = solve(&m, &[(0, &fits), (2, &streamer())]);
    let s = pair.threads[0].cpi * alone(&m, &fits);
    assert!(s > 1.6, "{s}");
}

#[test]
fn a_miss_costs_latency_over_overlap() {
    let m = machine();
    let cost = |mlp: f64| {
        let with = |mpki: f64| {
            phase(|p| {
                p.data_mpki = vec![mpki; 14];
                p.mlp.value = mlp;
            })
        };
        let cpi = |mpki: f64| 1.0 / alone(&m, &with(mpki));
        (cpi(2.0) - cpi(1.0)) * 1000.0
    };
    // 15 ns + 70 ns at 2 GHz are 170 cycles; a few cycles of queueing come on top.
    about(cost(1.0), 170.0);
    about(cost(2.27), 75.0);
    about(cost(12.0), 14.0);
}

#[test]
fn streams_share_bandwidth_and_no_more() {
    let m = machine();
    let s = streamer();
    let all = solve(&m, &std::array::from_fn::<_, 8, _>(|pu| (pu, &s)));
    let bytes: f64 = all
        .threads
        .iter()
        .map(|t| t.ips * t.flow.memory_lines * 64.0)
        .sum();
    assert!(bytes < 20e9 && bytes > 0.85 * 20e9, "{bytes}");
    assert!(all.memory_utilisation[0] < 1.0);
}

#[test]
fn code_that_falls_out_of_a_crowded_l1i_is_in_the_l2() {
    let m = machine_with(|core| core.l1i.size_kib = 8.0);
    let pair = solve(&m, &[(0, &compute()), (1, &compute())]);
    assert!(pair.threads[0].flow.l1i_misses > 0.0);
    assert_eq!(pair.threads[0].flow.memory_lines, 0.0);
}

/// The large and the small core of an asymmetric chip have the same units and width, but not quite
/// the same ports.
#[test]
fn a_large_core_counts_in_order_what_a_small_one_takes() {
    let m = presets::find("acmp-1+1").unwrap();
    for phase in [compute(), parallel(2.0), chaser(), random_loads()] {
        let alone = |pu| solve(&m, &[(pu, &phase)]).threads[0];
        let (large, small) = (alone(0), alone(1));
        let taken = small.stack.base + small.stack.units + small.stack.fetch;
        for counted in [large, small] {
            let error = counted.flow.in_order_cycles / taken - 1.0;
            assert!(error.abs() < 0.05, "{taken} {:?}", counted.flow);
            assert_eq!(counted.flow.use_distance, phase.ilp.use_distance);
        }
    }
}

#[test]
fn a_chip_that_does_not_count_in_order_cycles_does_not_work_them_out() {
    let threads = solve(&machine(), &[(0, &compute())]).threads;
    assert_eq!(threads[0].flow.in_order_cycles, 0.0);
}

#[test]
fn limits_that_take_turns_add_up_and_those_that_always_hold_hide_each_other() {
    // A chain of 0.4 cycles per instruction and dispatch of 0.25.
    let cpi = |unevenness: f64| {
        let phase = phase(|p| {
            p.mix.load = 0.0;
            p.mix.int = 0.85;
            p.ilp.a = 2.5;
            p.ilp.b = 0.0;
            p.ilp.unevenness = Some(unevenness);
        });
        1.0 / alone(&machine(), &phase)
    };
    assert!((cpi(0.0) - 0.4).abs() < 0.01, "{}", cpi(0.0));
    assert!((cpi(1.0) - 0.65).abs() < 0.01, "{}", cpi(1.0));
}

#[test]
fn a_line_of_code_that_is_fetched_along_is_late_all_the_same() {
    // Every line follows another; an L2 hit takes ten cycles, less those of 16 instructions.
    let cpi = |mpki: f64| {
        let phase = phase(|p| {
            p.instruction_mpki[..4].fill(mpki);
            p.code.sequential = Some(0.999);
            p.code.bytes = Some(4.0);
        });
        1.0 / alone(&machine(), &phase)
    };
    let late = (cpi(10.0) - cpi(0.0)) / 0.01;
    assert!((late - (10.0 - 16.0 * cpi(0.0))).abs() < 0.1, "{late}");
}
