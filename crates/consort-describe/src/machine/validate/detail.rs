//! Limits inside a core: buffers, ports, latencies, front end.

use super::ValueRange;
use crate::describe::KeyScope;
use crate::machine::CoreSpec;
use crate::machine::detail::{
    BufferSharing, BuffersSpec, FrontEndSpec, PortScope, RegistersSpec, WorkKind,
};

const ENTRIES: ValueRange = (1.0, 8192.0);
const WAYS: ValueRange = (2.0, 64.0);
const COUNT: ValueRange = (1.0, 64.0);
const WIDTH: ValueRange = (1.0, 64.0);
const BYTES: ValueRange = (1.0, 1024.0);
const OPS: ValueRange = (1.0, 1_048_576.0);
const LATENCY_CYCLES: ValueRange = (1.0, 200.0);
const PERCENT: ValueRange = (1.0, 100.0);

pub(super) fn check(core: &CoreSpec, at: &mut KeyScope<'_>) {
    if let Some(front) = &core.front_end {
        check_front(front, at.child("front_end"));
    }
    if let Some(buffers) = &core.buffers {
        check_buffers(buffers, core, at.child("buffers"));
    }
    at.check_range("halves_from_ways", core.halves_from_ways.unwrap_or(2), WAYS);
    check_ports(core, at);
    for (work, time) in &core.operations {
        let mut here = at.child("operations");
        let mut here = here.child(&work_name(*work));
        here.check_range("latency_cycles", time.latency_cycles, LATENCY_CYCLES);
        here.check_range("interval_cycles", time.interval_cycles, LATENCY_CYCLES);
    }
}

/// The name of a work in files.
fn work_name(work: WorkKind) -> String {
    let value = serde_json::to_value(work).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

fn check_front(front: &FrontEndSpec, mut at: KeyScope<'_>) {
    let widths = [
        ("fetch_width", front.fetch_width),
        ("fetch_threads", front.fetch_threads),
        ("dispatch_threads", front.dispatch_threads),
        ("commit_width", front.commit_width),
    ];
    for (key, width) in widths {
        at.check_range(key, width.unwrap_or(1), WIDTH);
    }
    at.check_range("fetch_bytes", front.fetch_bytes.unwrap_or(1), BYTES);
    at.check_range("buffer_ops", front.buffer_ops.unwrap_or(1), ENTRIES);
    if let Some(cache) = &front.op_cache {
        let mut at = at.child("op_cache");
        at.check_range("ops", cache.ops, OPS);
        at.check_range("ways", cache.ways, COUNT);
        at.check_range("line_ops", cache.line_ops, WIDTH);
        at.check_range("width", cache.width, WIDTH);
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
        at.check_range("entries", group.entries, ENTRIES);
        at.check_range("slots", group.slots, WIDTH);
        at.check_range("branches", group.branches, WIDTH);
        let message = format!(
            "is {}; expected fewer than slots, {}",
            group.branches, group.slots
        );
        at.require(group.branches < group.slots, "branches", message);
    }
    let percent = buffers.balance_percent.unwrap_or(100);
    at.check_range("balance_percent", percent, PERCENT);
}

/// A buffer from which some PU could have nothing cannot work.
fn check_entries(
    entries: u32,
    sharing: BufferSharing,
    reserve: u32,
    ways: u32,
    at: &mut KeyScope<'_>,
) {
    at.check_range("entries", entries, ENTRIES);
    let parts = match sharing {
        BufferSharing::Private => 1,
        BufferSharing::Halved => ways.min(2),
        BufferSharing::Partitioned | BufferSharing::Shared => ways,
    };
    let message = format!("is {entries}; expected at least one for each of {parts} parts");
    at.require(entries >= parts, "entries", message);
    let kept = u64::from(reserve) * u64::from(ways);
    let message =
        format!("is {reserve} for each of {ways} PUs; expected at most entries, {entries}");
    at.require(kept <= u64::from(entries), "reserve", message);
}

fn check_registers(file: RegistersSpec, ways: u32, mut at: KeyScope<'_>) {
    at.check_range("entries", file.entries, ENTRIES);
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
