//! Limits of a core: window, modes, units, caches, predictor, prefetcher, buffers, ports, power.

use super::{CACHE_WAYS, EVENT_NJ, LINES, SIZE_KIB, STATIC_W};
use crate::describe::{KeyScope, ValueRange};
use crate::machine::detail::{
    BufferSharing, BuffersSpec, FrontEndSpec, PortScope, RegistersSpec, WorkKind,
};
use crate::machine::{CacheSpec, CoreSpec, PipelineSpec, UnitsSpec};

const DISPATCH_WIDTH: ValueRange = (0.1, 64.0);
const ROB_ENTRIES: ValueRange = (4.0, 8192.0);
/// Units, ports, ways of an operation cache, operations per cycle.
const COUNT: ValueRange = (1.0, 64.0);
const WORK_CYCLES: ValueRange = (1.0, 200.0);
const TABLE_ENTRIES: ValueRange = (1.0, 1_048_576.0);
/// Entries of buffers between fetch and commit.
const BUFFER_ENTRIES: ValueRange = (1.0, 8192.0);
const ADDED_CYCLES: ValueRange = (0.0, 500.0);
const DEPTH_LINES: ValueRange = (1.0, 4096.0);
const SHARE: ValueRange = (0.0, 1.0);

pub(super) fn check(core: &CoreSpec, mut at: KeyScope<'_>) {
    at.check_range("frequency_ghz", core.frequency_ghz, (0.01, 20.0));
    at.check_range("dispatch_width", core.dispatch_width, DISPATCH_WIDTH);
    let depth = core.pipeline_depth_cycles;
    at.check_range("pipeline_depth_cycles", depth, (1.0, 100.0));
    let misses = core.outstanding_misses;
    at.check_range("outstanding_misses", misses, (1.0, 4096.0));
    let needed = core.pipeline == PipelineSpec::OutOfOrder;
    let message = "is missing; an out-of-order core needs it, expected 4 to 8192";
    let missing = needed && core.rob_entries.is_none();
    at.require(!missing, "rob_entries", message);
    let message = "is there; an in-order core has none, expected no such key";
    at.require(needed || core.rob_entries.is_none(), "rob_entries", message);
    at.check_optional("rob_entries", core.rob_entries, ROB_ENTRIES);
    check_modes(core, &mut at);
    check_units(&core.units, at.child("units"));
    check_memory_parts(core, &mut at);
    if let Some(front) = &core.front_end {
        check_front_end(front, at.child("front_end"));
    }
    if let Some(buffers) = &core.buffers {
        check_buffers(buffers, core, at.child("buffers"));
    }
    at.check_optional("halves_from_ways", core.halves_from_ways, (2.0, 64.0));
    check_ports(core, &mut at);
    for (work, time) in &core.operations {
        let mut here = at.child(&format!("operations.{}", work_name(*work)));
        here.check_range("latency_cycles", time.latency_cycles, WORK_CYCLES);
        here.check_range("interval_cycles", time.interval_cycles, WORK_CYCLES);
    }
    let power = &core.power;
    let mut at = at.child("power");
    at.check_range("static_w", power.static_w, STATIC_W);
    at.check_range("idle_fraction", power.idle_fraction, SHARE);
    at.check_range("l1_nj", power.l1_nj, EVENT_NJ);
    at.check_range("l2_nj", power.l2_nj, EVENT_NJ);
    let (energy, mut at) = (&power.instruction_nj, at.child("instruction_nj"));
    at.check_range("int", energy.int, EVENT_NJ);
    at.check_range("fp", energy.fp, EVENT_NJ);
    at.check_range("vector", energy.vector, EVENT_NJ);
    at.check_range("load", energy.load, EVENT_NJ);
    at.check_range("store", energy.store, EVENT_NJ);
    at.check_range("branch", energy.branch, EVENT_NJ);
}

fn check_modes(core: &CoreSpec, at: &mut KeyScope<'_>) {
    let first = core.smt.first().map(|mode| mode.ways);
    let message = "does not start with alone; expected a first mode with ways = 1";
    at.require(first == Some(1), "smt", message);
    let mut before = 0;
    for (index, mode) in core.smt.iter().enumerate() {
        let mut here = at.child(&format!("smt[{index}]"));
        let message = format!("is {} after {before}; expected ascending ways", mode.ways);
        here.require(mode.ways > before, "ways", message);
        before = mode.ways;
        here.check_range("ways", mode.ways, COUNT);
        let (width, most) = (mode.thread_dispatch_width, core.dispatch_width);
        here.check_range("thread_dispatch_width", width, DISPATCH_WIDTH);
        let message = format!("is {width}; expected at most the core's dispatch_width, {most}");
        here.require(width <= most, "thread_dispatch_width", message);
    }
}

fn check_units(units: &UnitsSpec, mut at: KeyScope<'_>) {
    for (name, unit) in [
        ("int", Some(&units.int)),
        ("fp", Some(&units.fp)),
        ("load_store", Some(&units.load_store)),
        ("branch", units.branch.as_ref()),
        ("vector", units.vector.as_ref()),
    ] {
        if let Some(unit) = unit {
            let mut at = at.child(name);
            at.check_range("count", unit.count, COUNT);
            at.check_range("latency_cycles", unit.latency_cycles, WORK_CYCLES);
            at.check_range("interval_cycles", unit.interval_cycles, (0.25, 200.0));
        }
    }
}

fn check_cache(cache: &CacheSpec, mut at: KeyScope<'_>) {
    at.check_range("size_kib", cache.size_kib, SIZE_KIB);
    at.check_range("ways", cache.ways, CACHE_WAYS);
    at.check_range("latency_cycles", cache.latency_cycles, (1.0, 500.0));
    at.check_optional("miss_queue", cache.miss_queue, LINES);
    at.check_optional("gathered_lines", cache.gathered_lines, LINES);
    at.check_optional("bytes_per_cycle", cache.bytes_per_cycle, (0.1, 4096.0));
}

fn check_memory_parts(core: &CoreSpec, at: &mut KeyScope<'_>) {
    check_cache(&core.l1i, at.child("l1i"));
    check_cache(&core.l1d, at.child("l1d"));
    if let Some(l2) = &core.l2 {
        check_cache(l2, at.child("l2"));
        // An L2 smaller or faster than the L1 before it makes no sense of either.
        let (mut at, l1d) = (at.child("l2"), &core.l1d);
        for (key, value, least) in [
            ("size_kib", l2.size_kib, l1d.size_kib),
            ("latency_cycles", l2.latency_cycles, l1d.latency_cycles),
        ] {
            let message = format!("is {value}; expected at least the L1D's, {least}");
            at.require(value >= least, key, message);
        }
    }
    let tlb = &core.tlb;
    at.check_range("tlb.entries", tlb.entries, TABLE_ENTRIES);
    // From the smallest page of any processor to 16 GiB.
    at.check_range("tlb.page_kib", tlb.page_kib, (0.5, 16_777_216.0));
    at.check_range("tlb.walk_cycles", tlb.walk_cycles, (1.0, 10_000.0));
    at.check_optional("tlb.first_entries", tlb.first_entries, TABLE_ENTRIES);
    at.check_optional("tlb.hit_cycles", tlb.hit_cycles, ADDED_CYCLES);
    let (predictor, mut here) = (&core.branch_predictor, at.child("branch_predictor"));
    here.check_range("size_kib", predictor.size_kib, (0.01, 65_536.0));
    here.check_optional("targets", predictor.targets, TABLE_ENTRIES);
    let bubble = predictor.taken_bubble_cycles;
    here.check_optional("taken_bubble_cycles", bubble, ADDED_CYCLES);
    here.check_optional("return_stack", predictor.return_stack, (1.0, 4096.0));
    if let Some(prefetcher) = &core.prefetcher {
        let mut at = at.child("prefetcher");
        at.check_range("coverage", prefetcher.coverage, SHARE);
        at.check_range("depth_lines", prefetcher.depth_lines, DEPTH_LINES);
        at.check_optional("streams", prefetcher.streams, DEPTH_LINES);
    }
}

/// The name of a work in files.
fn work_name(work: WorkKind) -> String {
    let value = serde_json::to_value(work).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn check_front_end(front: &FrontEndSpec, mut at: KeyScope<'_>) {
    at.check_optional("fetch_width", front.fetch_width, COUNT);
    at.check_optional("fetch_threads", front.fetch_threads, COUNT);
    at.check_optional("dispatch_threads", front.dispatch_threads, COUNT);
    at.check_optional("commit_width", front.commit_width, COUNT);
    at.check_optional("fetch_bytes", front.fetch_bytes, (1.0, 1024.0));
    at.check_optional("buffer_ops", front.buffer_ops, BUFFER_ENTRIES);
    if let Some(cache) = &front.op_cache {
        let mut at = at.child("op_cache");
        at.check_range("ops", cache.ops, TABLE_ENTRIES);
        at.check_range("ways", cache.ways, COUNT);
        at.check_range("line_ops", cache.line_ops, COUNT);
        at.check_range("width", cache.width, COUNT);
        let message = format!("is {}; expected at most ops, {}", cache.line_ops, cache.ops);
        at.require(cache.line_ops <= cache.ops, "line_ops", message);
    }
}

fn check_buffers(buffers: &BuffersSpec, core: &CoreSpec, mut at: KeyScope<'_>) {
    let ways = core.smt.iter().map(|mode| mode.ways).max().unwrap_or(1);
    for (index, queue) in buffers.issue.iter().enumerate() {
        let mut here = at.child(&format!("issue[{index}]"));
        check_entries(queue.entries, queue.sharing, queue.reserve, ways, &mut here);
        let message = "is empty; expected the work that waits in this queue";
        here.require(!queue.holds.is_empty(), "holds", message);
    }
    for (key, queue) in [
        ("load_queue", buffers.load_queue),
        ("store_queue", buffers.store_queue),
    ] {
        if let Some(queue) = queue {
            let mut here = at.child(key);
            check_entries(queue.entries, queue.sharing, queue.reserve, ways, &mut here);
        }
    }
    for (key, file) in [
        ("int_registers", buffers.int_registers),
        ("vector_registers", buffers.vector_registers),
    ] {
        if let Some(file) = file {
            check_registers(file, ways, at.child(key));
        }
    }
    if let Some(group) = buffers.group {
        let mut at = at.child("group");
        at.check_range("entries", group.entries, BUFFER_ENTRIES);
        at.check_range("slots", group.slots, COUNT);
        at.check_range("branches", group.branches, COUNT);
        let (branches, slots) = (group.branches, group.slots);
        let message = format!("is {branches}; expected fewer than slots, {slots}");
        at.require(branches < slots, "branches", message);
    }
    at.check_optional("balance_percent", buffers.balance_percent, (1.0, 100.0));
    at.check_optional("balance_misses", buffers.balance_misses, BUFFER_ENTRIES);
    at.check_optional("issue_delay_cycles", buffers.issue_delay_cycles, COUNT);
}

/// A buffer from which some CPU could have nothing cannot work.
fn check_entries(
    entries: u32,
    sharing: BufferSharing,
    reserve: u32,
    ways: u32,
    at: &mut KeyScope<'_>,
) {
    at.check_range("entries", entries, BUFFER_ENTRIES);
    let parts = match sharing {
        BufferSharing::Private => 1,
        BufferSharing::Halved => ways.min(2),
        BufferSharing::Partitioned | BufferSharing::Shared => ways,
    };
    let message = format!("is {entries}; expected at least one for each of {parts} parts");
    at.require(entries >= parts, "entries", message);
    let kept = u64::from(reserve) * u64::from(ways);
    let message =
        format!("is {reserve} for each of {ways} CPUs; expected at most entries, {entries}");
    at.require(kept <= u64::from(entries), "reserve", message);
}

fn check_registers(file: RegistersSpec, ways: u32, mut at: KeyScope<'_>) {
    at.check_range("entries", file.entries, BUFFER_ENTRIES);
    let states = match file.sharing {
        BufferSharing::Private => 1,
        _ => u64::from(ways),
    };
    let held = u64::from(file.architected) * states;
    let message = format!(
        "is {} with states of {held}; expected more registers than the states take",
        file.entries
    );
    at.require(u64::from(file.entries) > held, "entries", message);
}

fn check_ports(core: &CoreSpec, at: &mut KeyScope<'_>) {
    for (index, port) in core.ports.iter().enumerate() {
        let mut here = at.child(&format!("ports[{index}]"));
        here.check_range("count", port.count, COUNT);
        let message = "is empty; expected the work that this port takes";
        here.require(!port.takes.is_empty(), "takes", message);
        let message = format!("is {}; expected an even number for two halves", port.count);
        let even = port.per != PortScope::Half || port.count % 2 == 0;
        here.require(even, "count", message);
    }
    if core.ports.is_empty() {
        return;
    }
    for work in &WorkKind::ALL[..WorkKind::Other.index()] {
        let taken = core.ports.iter().any(|port| port.takes.contains(work));
        let message = format!("have none that takes '{}'; expected one", work_name(*work));
        at.require(taken, "ports", message);
    }
}
