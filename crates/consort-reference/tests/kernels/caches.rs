//! Capacity cliffs, misses that overlap, bandwidth.

use crate::machine::{about, alone_for, buffers, plain, run_on, with};
use crate::ops;
use consort_reference::{RunLength, SlotCause};
use consort_sim::machine::detail::{BufferSpec, DramSpec, LlcFill};
use consort_sim::machine::{L2Group, LlcDomainSpec, MachineSpec, PrefetchScope, PrefetcherSpec};

/// Cycles per load of a chase over an array, visited at least twice before and once in.
fn chased(spec: &MachineSpec, kib: u64) -> f64 {
    let lines = kib * 16;
    1.0 / alone_for(spec, &ops::chase(kib), (2 * lines).max(10_000)).ipc()
}

#[test]
fn a_chase_takes_the_latency_of_the_smallest_level_that_holds_it() {
    let spec = plain();
    about(chased(&spec, 16), 3.0);
    about(chased(&spec, 32), 3.0);
    about(chased(&spec, 64), 10.0);
    about(chased(&spec, 128), 10.0);
    about(chased(&spec, 512), 30.0);
    about(chased(&spec, 1024), 30.0);
    about(chased(&spec, 4096), 170.0);
}

#[test]
fn what_a_chase_waits_for_is_in_its_stack() {
    let spec = plain();
    for (kib, cause) in [
        (64, SlotCause::L2),
        (512, SlotCause::Llc),
        (4096, SlotCause::Memory),
    ] {
        let outcome = alone_for(&spec, &ops::chase(kib), 2 * kib * 16);
        let share = outcome.stack.cycles(cause) / outcome.cycles as f64;
        assert!(share > 0.9, "{kib} KiB: {share}");
    }
}

/// The plain machine with an LLC domain for each of its cores.
fn domains(sizes_kib: [f64; 2]) -> MachineSpec {
    let mut spec = plain();
    spec.layout.llc_domains_per_node = 0;
    spec.layout.cluster.clear();
    let domain = |size_kib| LlcDomainSpec {
        size_kib: Some(size_kib),
        cluster: vec![L2Group {
            core_type: "core".to_owned(),
            l2_domains: 1,
            cores_per_l2: 1,
        }],
    };
    spec.layout.llc_domains = sizes_kib.map(domain).into();
    spec
}

#[test]
fn each_llc_domain_has_its_own_capacity() {
    let spec = domains([4096.0, 512.0]);
    let length = RunLength {
        warm_up: 64 * 1024,
        measured: 32 * 1024,
    };
    let chased = |pu| {
        let outcome = run_on(&spec, &[pu], &[&ops::chase(2048)], length);
        1.0 / outcome.threads[0].ipc()
    };
    about(chased(0), 30.0);
    about(chased(2), 170.0);
}

#[test]
fn misses_behind_an_l2_without_llc_go_to_memory() {
    let spec = domains([2048.0, 0.0]);
    let length = RunLength {
        warm_up: 20_000,
        measured: 20_000,
    };
    let outcome = run_on(&spec, &[2], &[&ops::chase(512)], length);
    let thread = &outcome.threads[0];
    assert_eq!(thread.memory.llc_misses, 0);
    assert!(
        thread.memory.l2_misses > 19_000,
        "{}",
        thread.memory.l2_misses
    );
    // The latency of memory begins behind the L2, 20 cycles before it would behind an LLC.
    about(1.0 / thread.ipc(), 150.0);
}

#[test]
fn a_victim_cache_and_the_l2_hold_as_much_as_both() {
    let mut spec = plain();
    spec.llc.size_kib = 384.0;
    let fetched = chased(&spec, 512);
    spec.llc.fill = Some(LlcFill::Victims);
    let victims = chased(&spec, 512);
    about(fetched, 170.0);
    // Sets of both divide lines differently, so that a few do not fit.
    assert!((30.0..36.0).contains(&victims), "{victims}");
}

#[test]
fn independent_misses_overlap_as_far_as_the_miss_queue_goes() {
    // In the LLC: 30 cycles, 16 at once.
    let outcome = alone_for(&plain(), &ops::scatter(1024), 40_000);
    about(outcome.ipc(), 16.0 / 30.0);
    // In memory: 170 cycles, 16 at once.
    let outcome = alone_for(&plain(), &ops::scatter(8192), 140_000);
    about(outcome.ipc(), 16.0 / 170.0);
}

/// The plain machine with all the overlap that bandwidth can use.
fn wide() -> MachineSpec {
    with(|core| {
        core.outstanding_misses = 128;
        core.rob_entries = Some(512);
        let buffers = buffers(core);
        buffers.load_queue = Some(BufferSpec {
            entries: 128,
            sharing: Default::default(),
            reserve: 0,
        });
    })
}

#[test]
fn streams_get_the_bandwidth_of_memory() {
    // 64 bytes at 10 bytes per cycle.
    let outcome = alone_for(&wide(), &ops::stream(16_384), 200_000);
    about(1.0 / outcome.ipc(), 6.4);
    // Two of them share it.
    let stream = ops::stream(16_384);
    let length = RunLength {
        warm_up: 100_000,
        measured: 100_000,
    };
    let both = run_on(&wide(), &[0, 2], &[&stream, &stream], length);
    both.threads
        .iter()
        .for_each(|thread| about(1.0 / thread.ipc(), 12.8));
}

#[test]
fn stores_that_miss_take_twice_the_bandwidth_of_loads() {
    // Every line is fetched, and written back.
    let mut spec = wide();
    let core = spec.core_types.get_mut("core").unwrap();
    core.buffers.as_mut().unwrap().store_queue = Some(BufferSpec {
        entries: 128,
        sharing: Default::default(),
        reserve: 0,
    });
    let outcome = alone_for(&spec, &ops::store_stream(16_384), 200_000);
    about(1.0 / outcome.ipc(), 12.8);
    assert!(outcome.stack.cycles(SlotCause::Stores) > 0.8 * outcome.cycles as f64);
}

#[test]
fn prefetched_streams_do_not_wait() {
    let ahead = with(|core| {
        core.prefetcher = Some(PrefetcherSpec {
            coverage: 1.0,
            depth_lines: 32,
            per: PrefetchScope::Core,
            streams: None,
            into: None,
        });
        core.outstanding_misses = 64;
    });
    // A chain of loads along a stream: what takes 170 cycles a line takes the L2's 10 when it
    // is fetched ahead.
    let mut chain = ops::stream(16_384);
    for op in &mut chain {
        op.sources[0] = op.targets[0];
    }
    let without = alone_for(&plain(), &chain, 50_000);
    about(1.0 / without.ipc(), 170.0);
    let with = alone_for(&ahead, &chain, 50_000);
    about(1.0 / with.ipc(), 10.0);
}

#[test]
fn open_rows_are_faster_and_banks_limit_scattered_accesses() {
    let mut spec = wide();
    spec.memory.dram = Some(DramSpec {
        banks: 8,
        row_kib: 8.0,
        row_hit_saves_ns: 30.0,
        bank_cycle_ns: 50.0,
    });
    // A chain along rows finds them open.
    let mut chain = ops::stream(16_384);
    for op in &mut chain {
        op.sources[0] = op.targets[0];
    }
    about(1.0 / alone_for(&spec, &chain, 50_000).ipc(), 170.0 - 60.0);
    // Two channels of eight banks, each a hundred cycles per row; the queues balance them.
    let scatter = alone_for(&spec, &ops::scatter(131_072), 300_000);
    let bound = 100.0 / 16.0;
    let per_line = 1.0 / scatter.ipc();
    assert!((bound..1.5 * bound).contains(&per_line), "{per_line}");
}
