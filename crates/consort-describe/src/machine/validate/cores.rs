//! Limits of a core.

use super::{ValueRange, caches, detail, power, units};
use crate::describe::KeyScope;
use crate::machine::{CoreSpec, PipelineSpec, SmtMode};

const FREQUENCY_GHZ: ValueRange = (0.01, 20.0);
const DISPATCH_WIDTH: ValueRange = (0.1, 64.0);
const ROB_ENTRIES: ValueRange = (4.0, 8192.0);
const PIPELINE_DEPTH_CYCLES: ValueRange = (1.0, 100.0);
const OUTSTANDING_MISSES: ValueRange = (1.0, 4096.0);
const WAYS: ValueRange = (1.0, 64.0);

pub(super) fn check(core: &CoreSpec, mut at: KeyScope<'_>) {
    at.check_range("frequency_ghz", core.frequency_ghz, FREQUENCY_GHZ);
    at.check_range("dispatch_width", core.dispatch_width, DISPATCH_WIDTH);
    let depth = core.pipeline_depth_cycles;
    at.check_range("pipeline_depth_cycles", depth, PIPELINE_DEPTH_CYCLES);
    let misses = core.outstanding_misses;
    at.check_range("outstanding_misses", misses, OUTSTANDING_MISSES);
    check_window(core, &mut at);
    check_modes(core, &mut at);
    units::check(&core.units, at.child("units"));
    caches::check(core, &mut at);
    detail::check(core, &mut at);
    power::check_core(&core.power, at.child("power"));
}

fn check_window(core: &CoreSpec, at: &mut KeyScope<'_>) {
    let needed = core.pipeline == PipelineSpec::OutOfOrder;
    let message = "is missing; an out-of-order core needs it, expected 4 to 8192";
    at.require(
        !needed || core.rob_entries.is_some(),
        "rob_entries",
        message,
    );
    let message = "is there; an in-order core has none, expected no such key";
    at.require(needed || core.rob_entries.is_none(), "rob_entries", message);
    if let Some(entries) = core.rob_entries {
        at.check_range("rob_entries", entries, ROB_ENTRIES);
    }
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
        check_mode(mode, core.dispatch_width, &mut here);
    }
}

fn check_mode(mode: &SmtMode, core_width: f64, here: &mut KeyScope<'_>) {
    here.check_range("ways", mode.ways, WAYS);
    let width = mode.thread_dispatch_width;
    here.check_range("thread_dispatch_width", width, DISPATCH_WIDTH);
    let message = format!("is {width}; expected at most the core's dispatch_width, {core_width}");
    here.require(width <= core_width, "thread_dispatch_width", message);
}
