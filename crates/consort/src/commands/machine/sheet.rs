//! The numbers of a described machine: cores, caches, memory, interconnect, power, PMU.

use super::caches::{self, capacity, cycles, owner};
use super::report::{CoreTypeRow, core_types};
use super::tree::count;
use crate::output::{self, OutputColumn, text};
use consort_sim::chip::Chip;
use consort_sim::machine::{CoreSpec, MachineSpec, MemorySpec, NumaSpec, PmuEventSpec, UnitSpec};
use serde::Serialize;

/// Returns the word for a value in machine files.
fn word<T: Serialize>(value: T) -> String {
    let value = serde_json::to_value(value).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

pub(super) fn lines(chip: &Chip) -> Vec<String> {
    let spec = chip.spec();
    let mut lines: Vec<String> = core_types(chip.topology())
        .iter()
        .zip(chip.core_types())
        .flat_map(|(row, core)| core_type(row, core))
        .collect();
    let link = &spec.interconnect;
    let (kind, bandwidth) = (word(link.kind), link.bandwidth_gb_s);
    lines.push(llc(chip));
    lines.push(format!(
        "interconnect: {kind}, {bandwidth} GB/s per package"
    ));
    lines.push(memory(&spec.memory));
    lines.extend(spec.numa.as_ref().map(numa));
    let static_w = spec.uncore_power.static_w;
    lines.push(format!("power beside the cores: {static_w} W per package"));
    let (slice_ms, switch) = (spec.os.slice_ms, spec.os.switch_cycles);
    lines.push(format!(
        "operating system: slices of {slice_ms} ms, {switch} cycles per switch"
    ));
    lines.push(pmu(spec));
    lines
}

fn core_type(row: &CoreTypeRow, core: &CoreSpec) -> Vec<String> {
    let (name, capacity, pus) = (&row.name, row.capacity, &row.pus);
    let cores = count(row.cores, "core");
    let heading = format!("core type {name}: {cores}, capacity {capacity}, PUs {pus}");
    let mut details = vec![pipeline(core), units(core)];
    details.extend(caches::lines(core));
    details.push(power(core));
    let details = details.into_iter().map(|detail| format!("  {detail}"));
    std::iter::once(heading).chain(details).collect()
}

fn pipeline(core: &CoreSpec) -> String {
    let (kind, ghz, width) = (word(core.pipeline), core.frequency_ghz, core.dispatch_width);
    let mut parts = vec![format!("{kind}, {ghz} GHz, {width} instructions per cycle")];
    parts.extend(
        core.rob_entries
            .map(|n| format!("{n} reorder-buffer entries")),
    );
    parts.push(format!("{} outstanding misses", core.outstanding_misses));
    parts.join(", ")
}

fn units(core: &CoreSpec) -> String {
    let units = &core.units;
    let all = [
        ("int", Some(&units.int)),
        ("fp", Some(&units.fp)),
        ("load/store", Some(&units.load_store)),
        ("branch", units.branch.as_ref()),
        ("vector", units.vector.as_ref()),
    ];
    let text = |(name, unit): (&str, Option<&UnitSpec>)| {
        let unit = unit?;
        let (n, latency, per) = (unit.count, cycles(unit.latency_cycles), owner(unit.per));
        Some(format!("{n} {name} {per} ({latency})"))
    };
    let texts: Vec<String> = all.into_iter().filter_map(text).collect();
    format!("units: {}", texts.join(", "))
}

fn power(core: &CoreSpec) -> String {
    let power = &core.power;
    let idle_w = power.static_w * power.idle_fraction;
    let nj = &power.instruction_nj;
    let (static_w, int, fp, load) = (power.static_w, nj.int, nj.fp, nj.load);
    format!(
        "power: {static_w} W busy, {idle_w:.2} W idle, per instruction {int} nJ int, {fp} nJ fp, {load} nJ load"
    )
}

fn llc(chip: &Chip) -> String {
    let llc = &chip.spec().llc;
    let (ways, latency_ns) = (llc.ways, llc.latency_ns);
    let domains = 0..chip.domains().llcs;
    let mut sizes: Vec<String> = domains.map(|n| capacity(chip.llc_kib(n))).collect();
    sizes.dedup();
    let per_domain = match &sizes[..] {
        [size] => format!("{size} per LLC domain"),
        sizes => format!("{} by LLC domain", sizes.join(", ")),
    };
    let mut line = format!("LLC {per_domain}, {ways}-way, {latency_ns} ns");
    if let Some(remote_ns) = llc.remote_latency_ns {
        line.push_str(&format!(", in another domain {remote_ns} ns"));
    }
    line
}

fn memory(memory: &MemorySpec) -> String {
    let (latency_ns, each) = (memory.latency_ns, memory.bandwidth_gb_s);
    let controllers = count(memory.controllers_per_node as usize, "controller");
    let line_bytes = memory.line_bytes;
    format!(
        "memory per node: {latency_ns} ns, {controllers} of {each} GB/s, lines of {line_bytes} bytes"
    )
}

fn numa(numa: &NumaSpec) -> String {
    let (near, far, link) = (
        numa.same_package_ns,
        numa.other_package_ns,
        numa.link_bandwidth_gb_s,
    );
    let between = format!(
        "between nodes: {near} ns more within a package, {far} ns more to another, {link} GB/s out of each"
    );
    match &numa.memory_nodes {
        Some(nodes) => format!("{between}; memory on {nodes:?} alone"),
        None => between,
    }
}

fn pmu(spec: &MachineSpec) -> String {
    let fixed = spec.pmu.events.iter().filter(|event| event.fixed).count();
    let fixed = count(fixed, "fixed counter");
    let (programmable, noise) = (spec.pmu.programmable, 100.0 * spec.pmu.read_noise);
    format!("PMU per PU: {fixed}, {programmable} programmable, read noise {noise:.1} %")
}

const EVENT_COLUMNS: &[OutputColumn<PmuEventSpec>] = &[
    text("event", |e| e.name.clone()),
    text("counts", |e| word(e.counts)),
    text("counter", |e| {
        if e.fixed { "fixed" } else { "programmable" }.to_owned()
    }),
];

/// The events of the PMU as a table.
pub(super) fn events(spec: &MachineSpec) -> String {
    output::table(EVENT_COLUMNS, &spec.pmu.events)
}
