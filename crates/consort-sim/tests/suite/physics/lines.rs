//! Lines of other lengths than those of the miss curves.

use super::build::{machine, phase, solve};
use super::random::{draw, machines, placements};
use crate::small::possible::impossible;
use consort_sim::chip::Chip;
use consort_sim::contention::{InstructionActivity, ThreadRates};
use consort_sim::machine::{MachineSpec, PrefetchScope, PrefetcherSpec};
use consort_sim::program::PhaseSpec;
use proptest::prelude::*;

/// Lines of so many bytes and caches so many times as large.
fn with_lines(line_bytes: u32, caches: f64) -> MachineSpec {
    let mut machine = machine();
    let core = machine.core_types.get_mut("big").unwrap();
    core.l1d.size_kib *= caches;
    core.l1i.size_kib *= caches;
    core.l2.as_mut().unwrap().size_kib *= caches;
    core.prefetcher = Some(prefetcher(0.75));
    machine.llc.size_kib *= caches;
    machine.memory.line_bytes = line_bytes;
    machine
}

fn prefetcher(coverage: f64) -> PrefetcherSpec {
    PrefetcherSpec {
        coverage,
        depth_lines: 16,
        per: PrefetchScope::Core,
        streams: None,
        into: None,
    }
}

fn alone(machine: &MachineSpec, phase: &PhaseSpec) -> ThreadRates {
    solve(machine, &[(0, phase)]).threads[0]
}

/// Misses at every level, falling, of which so many follow a stream.
fn misses(sequential: f64) -> PhaseSpec {
    phase(|p| {
        p.data_mpki = (0..14).map(|i| f64::from(40 - 2 * i)).collect();
        p.prefetch.effectiveness = sequential;
        p.writeback_share = 0.25;
    })
}

fn data(flow: &InstructionActivity) -> [f64; 4] {
    [
        flow.l1d_misses,
        flow.l2_misses,
        flow.llc_misses,
        flow.memory_lines,
    ]
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn a_stream_moves_the_same_bytes_in_half_as_many_lines() {
    for prefetcher in [true, false] {
        let machine = |line_bytes| {
            let mut machine = with_lines(line_bytes, 1.0);
            if !prefetcher {
                machine.core_types.get_mut("big").unwrap().prefetcher = None;
            }
            machine
        };
        let stream = misses(1.0);
        let short = alone(&machine(64), &stream);
        let long = alone(&machine(128), &stream);
        for (short, long) in data(&short.flow).into_iter().zip(data(&long.flow)) {
            assert!(near(long, short / 2.0), "{long}, {short}");
        }
    }
}

#[test]
fn what_is_scattered_moves_whole_lines_and_wastes_half_of_every_cache() {
    let scattered = misses(0.0);
    let short = alone(&with_lines(64, 1.0), &scattered);
    let long = alone(&with_lines(128, 2.0), &scattered);
    for (short, long) in data(&short.flow).into_iter().zip(data(&long.flow)) {
        assert!(near(long, short), "{long}, {short}");
    }
    assert!(near(long.llc_bytes, 2.0 * short.llc_bytes));
}

#[test]
fn longer_lines_leave_page_walks_alone() {
    let walks = |line_bytes| {
        let stream = phase(|p| {
            p.data_mpki = vec![40.0; 14];
            p.prefetch.effectiveness = 1.0;
            p.page_spread = 0.5;
            p.mlp.value = 3.0;
        });
        let rates = alone(&with_lines(line_bytes, 1.0), &stream);
        (rates.flow.tlb_misses, rates.stack.tlb)
    };
    assert!(walks(64).1 > 0.0);
    assert_eq!(walks(64), walks(128));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn with_lines_of_any_length_nobody_is_faster_in_company(
        machine in machines(),
        (phases, seed) in placements(),
        log2 in 4u32..9,
    ) {
        let mut machine = machine;
        machine.memory.line_bytes = 1 << log2;
        let chip = Chip::new(&machine, None).unwrap();
        let n = phases.len().min(chip.places().len());
        let pus = draw(chip.places().len(), n, seed);
        let placed: Vec<(usize, &PhaseSpec)> = pus.into_iter().zip(&phases).collect();
        let together = solve(&machine, &placed);
        prop_assert_eq!(impossible(&together), None);
        for (i, with) in together.threads.iter().enumerate() {
            let without = solve(&machine, &placed[i..=i]).threads[0];
            prop_assert!(with.ips <= without.ips * (1.0 + 1e-4), "{with:#?} {without:#?}");
        }
    }

    #[test]
    fn demand_and_prefetched_lines_are_the_sequential_and_the_scattered_part(
        sequential in 0.0f64..=1.0,
        coverage in 0.0f64..=1.0,
    ) {
        let mut machine = with_lines(128, 1.0);
        machine.core_types.get_mut("big").unwrap().prefetcher = Some(prefetcher(coverage));
        let phase = phase(|p| {
            p.data_mpki = vec![40.0; 14];
            p.prefetch.effectiveness = sequential;
        });
        let flow = alone(&machine, &phase).flow;
        let demand = 0.04 * ((1.0 - sequential) + sequential * (1.0 - coverage) / 2.0);
        let prefetched = 0.04 * sequential * coverage / 2.0;
        prop_assert!((flow.llc_misses - demand).abs() < 1e-12);
        prop_assert!((flow.prefetched_lines - prefetched).abs() < 1e-12);
    }
}

/// By hand: 4 GB/s of two buses that snoop each other are 2 GB/s of lines that are read, because each
/// takes two slots; what is written back takes one.
#[test]
fn snoops_take_slots_of_every_bus() {
    let carried = |buses: Option<u32>, writeback_share: f64| {
        let mut machine = with_lines(64, 1.0);
        machine.memory.bandwidth_gb_s = 100.0;
        machine.interconnect.bandwidth_gb_s = 4.0;
        machine.interconnect.buses = buses;
        let mut stream = misses(1.0);
        stream.data_mpki = vec![60.0; 14];
        stream.writeback_share = writeback_share;
        let pus: Vec<(usize, &PhaseSpec)> = [0, 2, 4, 6].map(|pu| (pu, &stream)).into();
        let threads = solve(&machine, &pus).threads;
        let lines = threads.iter().map(|t| t.ips * t.flow.memory_lines);
        lines.sum::<f64>() * 64.0 / 1e9
    };
    // Queues saturate below the capacity.
    for (buses, writeback_share, most) in [
        (None, 0.0, 4.0),
        (Some(2), 0.0, 2.0),
        // A write-back per line: two lines take three slots.
        (Some(2), 1.0, 8.0 / 3.0),
    ] {
        let carried = carried(buses, writeback_share);
        assert!(
            (0.8 * most..=most).contains(&carried),
            "{buses:?} {carried}"
        );
    }
}
