//! The kernels and their registry.
//!
//! To add a kernel, write its [`KernelEntry`] in one of these files or a new one, and name it in
//! [`REGISTRY`].

use crate::kernel::KernelEntry;

mod arithmetic;
mod chase;
mod front_end;
mod generated_code;
mod phases;
mod stream;
mod waiting;

/// Every kernel, in the order of `consort-demo list`.
pub const REGISTRY: &[KernelEntry] = &[
    arithmetic::INT,
    arithmetic::ALU,
    arithmetic::FP,
    arithmetic::VECTOR,
    chase::L1,
    chase::L2,
    chase::LLC,
    chase::DRAM,
    stream::ENTRY,
    front_end::BRANCHY,
    front_end::BIGCODE,
    waiting::LOCK,
    waiting::BARRIER,
    waiting::SLEEPER,
    phases::ENTRY,
    generated_code::JIT,
    generated_code::SELFMOD,
];

/// Returns the kernel of that name, if there is one.
#[must_use]
pub fn find(name: &str) -> Option<&'static KernelEntry> {
    REGISTRY.iter().find(|entry| entry.name == name)
}
