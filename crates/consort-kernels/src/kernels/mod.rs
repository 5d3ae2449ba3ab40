//! The kernels, one file each, and their registry.
//!
//! To add a kernel, write its file with an `ENTRY`, and name the file here:
//! once as a module, once in [`REGISTRY`].

use crate::kernel::KernelEntry;

mod alu;
mod barrier;
mod bigcode;
mod branchy;
mod chase;
mod dram;
mod fp;
mod int;
mod jit;
mod l1;
mod l2;
mod llc;
mod lock;
mod phases;
mod selfmod;
mod sleeper;
mod spin;
mod stream;
mod vector;

/// Every kernel, in the order of `consort-demo list`.
pub const REGISTRY: &[KernelEntry] = &[
    int::ENTRY,
    alu::ENTRY,
    fp::ENTRY,
    vector::ENTRY,
    l1::ENTRY,
    l2::ENTRY,
    llc::ENTRY,
    dram::ENTRY,
    stream::ENTRY,
    branchy::ENTRY,
    bigcode::ENTRY,
    lock::ENTRY,
    barrier::ENTRY,
    sleeper::ENTRY,
    phases::ENTRY,
    jit::ENTRY,
    selfmod::ENTRY,
];

/// The registry's line for `name`, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
