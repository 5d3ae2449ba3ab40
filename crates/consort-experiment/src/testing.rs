//! Machines and programs for tests.

use crate::slots::Suite;
use consort_core::ThreadId;
use consort_sim::chip::Chip;
use consort_sim::contention::ThreadRates;
use consort_sim::engine::{PuUse, RunSegment};
use consort_sim::machine::MachineRef;
use consort_sim::program::{ProgramSpec, presets};
use consort_sim::workload::{ProgramInstance, Workload};
use std::num::NonZeroUsize;
use std::sync::Arc;

/// A number of workers.
pub(crate) fn workers(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

/// A preset machine.
pub(crate) fn chip(name: &str) -> Arc<Chip> {
    let machine: MachineRef = name.parse().unwrap();
    let loaded = machine.load(&[]).unwrap();
    Arc::new(Chip::new(&loaded.spec, loaded.smt).unwrap())
}

/// A preset program.
pub(crate) fn program(name: &str) -> Arc<ProgramSpec> {
    Arc::new(presets::find(name).unwrap())
}

/// Two programs of one thread each.
pub(crate) fn pair(names: [&str; 2]) -> Workload {
    let entry = |name: &str| ProgramInstance {
        name: name.to_owned(),
        program: program(name),
        threads: 1,
        start_ms: 0.0,
    };
    Workload {
        text: names.join("+"),
        entries: names.map(entry).to_vec(),
    }
}

/// A suite of programs of eight threads each on a machine of eight cores.
pub(crate) fn suite(names: &[&str]) -> Suite {
    let entry = |name: &&str| ProgramInstance {
        name: (*name).to_owned(),
        program: program(name),
        threads: 8,
        start_ms: 0.0,
    };
    let workload = Workload {
        text: names.join("+"),
        entries: names.iter().map(entry).collect(),
    };
    Suite::new(&chip("xeon-e5320"), &workload)
}

/// A thread by its number.
pub(crate) fn thread(tid: u32) -> ThreadId {
    ThreadId {
        pid: 1,
        tid,
        start_ticks: 0,
    }
}

/// A thread that works on a CPU in this span, ps.
pub(crate) fn segment(
    tid: u32,
    pu: usize,
    span_ps: [u64; 2],
    rates: &ThreadRates,
) -> RunSegment<'_> {
    RunSegment {
        thread: thread(tid),
        name: "x",
        pu,
        from_ps: span_ps[0],
        to_ps: span_ps[1],
        doing: PuUse::Work,
        phase: (0, 1),
        kernel_share: 0.0,
        rates,
    }
}
