//! A plain machine that kernels run on and change, and how to run them.

use consort_core::PuId;
use consort_reference::{
    OpSource, Reference, ReferenceOutcome, RunLength, ThreadOutcome, TracePlacement,
};
use consort_sim::chip::Chip;
use consort_sim::machine::detail::BuffersSpec;
use consort_sim::machine::{self, CoreSpec, MachineSpec};

const TEXT: &str = include_str!("machine.toml");

/// Two SMT2 cores, 4 wide with a window of 128, at 2 GHz: L1 32 KiB in 3 cycles, L2 256 KiB in
/// 10, LLC 2 MiB in 30, memory in 170 and 10 bytes per cycle.
pub fn plain() -> MachineSpec {
    machine::parse("machine.toml", TEXT).expect("it is a machine")
}

/// The plain machine with another core.
pub fn with(change: impl FnOnce(&mut CoreSpec)) -> MachineSpec {
    let mut spec = plain();
    change(spec.core_types.get_mut("core").expect("it has this core"));
    spec
}

/// Description of a core's buffers.
pub fn buffers(core: &mut CoreSpec) -> &mut BuffersSpec {
    core.buffers.get_or_insert_default()
}

/// Runs programs on CPUs 0, 1, 2, ... in address spaces of their own.
pub fn run(spec: &MachineSpec, programs: &[&dyn OpSource], length: RunLength) -> ReferenceOutcome {
    let pus: Vec<u32> = (0..programs.len() as u32).collect();
    run_on(spec, &pus, programs, length)
}

/// Runs programs on these CPUs.
pub fn run_on(
    spec: &MachineSpec,
    pus: &[u32],
    programs: &[&dyn OpSource],
    length: RunLength,
) -> ReferenceOutcome {
    let chip = Chip::new(spec, None).expect("it has CPUs");
    let placements = (0..)
        .zip(pus)
        .zip(programs)
        .map(|((space, &pu), &program)| {
            let pu = PuId(pu);
            TracePlacement { pu, space, program }
        });
    let placements: Vec<_> = placements.collect();
    let reference = Reference::new(&chip, &placements, 1).expect("it can be run");
    reference.run(length).expect("it makes progress")
}

/// Runs one program for as many instructions as settle it.
pub fn alone(spec: &MachineSpec, program: &dyn OpSource) -> ThreadOutcome {
    alone_for(spec, program, 10_000)
}

/// Runs one program for this many instructions after as many.
pub fn alone_for(spec: &MachineSpec, program: &dyn OpSource, instructions: u64) -> ThreadOutcome {
    let length = RunLength {
        warm_up: instructions,
        measured: instructions,
    };
    run(spec, &[program], length).threads.remove(0)
}

/// Fails unless a value is within 5 percent of what it should be.
#[track_caller]
pub fn about(value: f64, expect: f64) {
    within(value, expect, 0.05);
}

/// Fails unless a value is within a share of what it should be.
#[track_caller]
pub fn within(value: f64, expect: f64, share: f64) {
    let off = value / expect - 1.0;
    assert!(
        off.abs() <= share,
        "{value:.4} instead of {expect:.4}: off by {:.1} %",
        off * 100.0
    );
}
