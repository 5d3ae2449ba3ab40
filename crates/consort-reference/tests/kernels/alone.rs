//! Chains, ports, branches, stores.

use crate::machine::{about, alone, alone_for, plain, with};
use crate::ops;
use consort_ops::OpKind;
use consort_reference::{Buffer, SlotCause};
use consort_sim::machine::PipelineSpec;
use consort_sim::machine::detail::{BufferSharing, OpCacheSpec};

#[test]
fn chains_take_the_latency_of_their_operations() {
    let ipc = |kind| alone(&plain(), &ops::chain(kind)).ipc();
    about(ipc(OpKind::Integer), 1.0);
    about(ipc(OpKind::Multiply), 1.0 / 3.0);
    about(ipc(OpKind::FpAdd), 1.0 / 4.0);
    about(ipc(OpKind::Divide), 1.0 / 20.0);
}

#[test]
fn independent_operations_are_bound_by_their_ports_or_by_dispatch() {
    let ipc = |kind| alone(&plain(), &ops::independent(kind)).ipc();
    about(ipc(OpKind::Integer), 4.0);
    about(ipc(OpKind::FpAdd), 2.0);
    about(ipc(OpKind::Load), 2.0);
    about(ipc(OpKind::Store), 1.0);
    about(ipc(OpKind::Multiply), 1.0);
    about(ipc(OpKind::Divide), 1.0 / 8.0);
}

#[test]
fn a_small_window_bounds_what_long_latencies_overlap() {
    // Sixteen entries, each held from dispatch, at the earliest a cycle after its entry was given
    // back, to commit: a cycle to issue, twenty to execute.
    let small = with(|core| {
        core.rob_entries = Some(16);
        core.operations.insert(
            consort_sim::machine::detail::WorkKind::FpAdd,
            consort_sim::machine::detail::WorkSpec {
                latency_cycles: 20,
                interval_cycles: 1,
            },
        );
    });
    let outcome = alone(&small, &ops::independent(OpKind::FpAdd));
    about(outcome.ipc(), 16.0 / 21.0);
    about(outcome.occupancy(Buffer::Window), 16.0);
    assert!(outcome.full[Buffer::Window as usize] > outcome.cycles / 2);
}

#[test]
fn a_branch_that_nothing_predicts_costs_the_pipeline_every_other_time() {
    let spec = plain();
    let random = alone_for(&spec, &ops::branches(34_000, ops::coin), 200_000);
    about(random.branch_misses as f64 / random.branches as f64, 0.5);
    // Three cycles of fetch, and the depth for every misprediction.
    about(12.0 / random.ipc(), 3.0 + 12.0 / 2.0);
    about(
        random.stack.cycles(SlotCause::Branch) / random.cycles as f64,
        6.0 / 9.0,
    );
    let steady = alone(&spec, &ops::branches(100, |_| false));
    about(steady.ipc(), 4.0);
}

#[test]
fn a_value_through_memory_takes_a_store_and_a_load() {
    // A cycle of the store, three of the load that it is forwarded to.
    let outcome = alone(&plain(), &ops::through_memory());
    about(outcome.ipc(), 2.0 / 4.0);
    about(outcome.forwarded as f64, outcome.instructions as f64 / 2.0);
}

#[test]
fn code_that_does_not_fit_comes_at_the_speed_of_the_level_that_has_it() {
    // 64 KiB miss an L1I of 32 KiB with every line. One line is fetched ahead: of every two
    // lines, 32 operations or eight cycles of fetch, the first takes the L2's ten cycles and the
    // second is on its way since.
    let spec = plain();
    let fits = alone_for(&spec, &ops::long_code(16), 50_000);
    about(fits.ipc(), 4.0);
    let spills = alone_for(&spec, &ops::long_code(64), 50_000);
    assert!(spills.ipc() < 3.2, "{}", spills.ipc());
    assert!(spills.stack.cycles(SlotCause::Fetch) > 0.2 * spills.cycles as f64);
}

#[test]
fn decoded_code_comes_as_fast_as_it_is_dispatched() {
    // Two instructions of eight bytes per fetched block of 16, four operations per cycle of those
    // that 64 sets of 8 lines hold: 512 lines of 32 bytes are 16 KiB, one line in each set is 2 KiB.
    let spec = with(|core| {
        let front = core.front_end.get_or_insert_default();
        front.fetch_bytes = Some(16);
        front.op_cache = Some(OpCacheSpec {
            ops: 4096,
            ways: 8,
            line_ops: 8,
            width: 8,
            sharing: BufferSharing::Shared,
        });
    });
    let ipc = |kib| alone_for(&spec, &ops::wide_code(kib), 50_000).ipc();
    about(ipc(2), 4.0);
    about(ipc(15), 4.0);
    about(ipc(24), 2.0);
}

#[test]
fn in_order_cores_stop_at_the_first_operation_that_must_wait() {
    let in_order = with(|core| {
        core.pipeline = PipelineSpec::InOrder;
        core.rob_entries = None;
        core.buffers = None;
    });
    let ipc = |kind| alone(&in_order, &ops::chain(kind)).ipc();
    about(ipc(OpKind::Integer), 1.0);
    about(ipc(OpKind::FpAdd), 0.25);
    // A chain of four cycles beside three independent operations per link: in order, these come
    // with the link; so do they out of order, where only the chain counts as well.
    about(
        alone(&in_order, &ops::independent(OpKind::Integer)).ipc(),
        4.0,
    );
    // Independent loads that miss overlap up to the miss queue.
    let scatter = alone_for(&in_order, &ops::scatter(1024), 40_000);
    about(scatter.ipc(), 16.0 / 30.0);
}
