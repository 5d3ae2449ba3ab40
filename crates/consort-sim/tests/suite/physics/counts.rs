//! Counts that a profile may have in addition: lines in sets, next lines of code, pages, and costs
//! where dispatch is wide.

use super::build::{machine_with, phase, solve};
use consort_sim::contention::ThreadRates;
use consort_sim::machine::MachineSpec;
use consort_sim::program::{NextLineSpec, PhaseSpec, SET_KIB, SetCurve};

/// One chain of instructions, so that every cycle counts.
fn serial(change: impl FnOnce(&mut PhaseSpec)) -> PhaseSpec {
    phase(|p| {
        (p.ilp.a, p.ilp.b) = (1.0, 0.0);
        p.ilp.miss_costs = Some([10.0, 40.0]);
        change(p);
    })
}

fn run(machine: &MachineSpec, phase: &PhaseSpec) -> ThreadRates {
    solve(machine, &[(0, phase)]).threads.swap_remove(0)
}

/// So many lines in caches of 8, 16 and 32 KiB, half of them with sets of eight, none beyond.
fn near(lines: f64) -> SetCurve {
    let points =
        |lines: f64| std::array::from_fn(|at| if SET_KIB[at] > 32.0 { 0.0 } else { lines });
    SetCurve {
        four_ways: points(lines),
        eight_ways: points(0.5 * lines),
    }
}

#[track_caller]
fn about(value: f64, expected: f64) {
    assert!(
        (value - expected).abs() < 1e-3,
        "{value}, expected {expected}"
    );
}

#[test]
fn pages_of_last_tlb_level_delay_loads() {
    let machine = |first: Option<u32>| {
        machine_with(|core| {
            core.tlb.first_entries = first;
            core.tlb.hit_cycles = Some(7.0);
        })
    };
    // Of a thousand instructions 100 load from other pages than the 64 used last, 50 than the 128.
    let random = serial(|p| {
        p.page_mpki = Some([100.0, 100.0, 100.0, 50.0, 50.0, 0.0, 0.0, 0.0]);
    });
    let cpi = |first: Option<u32>| run(&machine(first), &random).cpi;
    about(cpi(Some(64)) - cpi(None), 0.7);
    about(cpi(Some(256)) - cpi(None), 0.35);
    about(run(&machine(Some(64)), &random).stack.tlb, 0.7);
}

#[test]
fn conflicts_fall_with_ways_and_capacity() {
    let conflicting = serial(|p| p.data_conflicts = Some(near(40.0)));
    let missed = |ways: u32, kib: f64| {
        let machine = machine_with(|core| (core.l1d.ways, core.l1d.size_kib) = (ways, kib));
        run(&machine, &conflicting).flow.l1d_misses
    };
    about(missed(4, 32.0), 0.04);
    about(missed(8, 32.0), 0.02);
    about(missed(16, 32.0), 0.01);
    about(missed(4, 64.0), 0.0);
}

#[test]
fn late_next_lines_wait_for_the_rest_of_the_way() {
    let machine = machine_with(|core| (core.l1i.ways, core.l1i.size_kib) = (8, 32.0));
    let rates = |late: f64| {
        let code = phase(|p| {
            (p.ilp.a, p.ilp.b) = (4.0, 0.0);
            let (missed, late) = (near(20.0), near(late));
            p.next_lines = Some(NextLineSpec { missed, late });
        });
        run(&machine, &code)
    };
    // Lines take ten cycles. The line before has 16 instructions, of which a branch may skip half.
    let (early, late) = (rates(0.0), rates(20.0));
    about(early.stack.fetch, 0.1);
    let wait = (late.stack.fetch - early.stack.fetch) / 0.01;
    let [least, most] = [16.0, 8.0].map(|before| 10.0 - before * late.cpi);
    assert!((least..most).contains(&wait), "{wait}");
}

#[test]
fn wide_dispatch_hides_less() {
    let costs = |width: f64| {
        let machine = machine_with(|core| {
            core.dispatch_width = width;
            let modes = core.smt.iter_mut();
            modes.for_each(|mode| mode.thread_dispatch_width = width);
        });
        let missing = serial(|p| {
            p.data_mpki[..3].fill(20.0);
            p.ilp.miss_costs = Some([2.0, 8.0]);
            p.ilp.wide_miss_costs = Some([6.0, 24.0]);
        });
        run(&machine, &missing).stack.l2
    };
    // A hit in the L2 takes seven cycles more than one in the L1D.
    about(costs(4.0), 0.02 * 0.7 * 2.0);
    about(costs(8.0), 0.02 * 0.7 * 6.0);
    assert!((costs(4.0)..costs(8.0)).contains(&costs(5.0)));
}
