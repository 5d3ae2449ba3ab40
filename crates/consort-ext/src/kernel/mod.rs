//! The scheduler inside the kernel, or its stand-in in builds without one.

#[cfg(not(feature = "bpf"))]
mod absent;
#[cfg(feature = "bpf")]
mod loaded;

#[cfg(not(feature = "bpf"))]
pub(crate) use absent::Kernel;
#[cfg(feature = "bpf")]
pub(crate) use loaded::Kernel;

/// Code that libbpf-cargo generates from the scheduler's source.
#[cfg(feature = "bpf")]
#[expect(
    unused_qualifications,
    clippy::allow_attributes,
    clippy::panic,
    clippy::pedantic,
    clippy::undocumented_unsafe_blocks,
    clippy::unwrap_used,
    reason = "generated code is as its generator writes it"
)]
mod skeleton {
    include!(concat!(env!("OUT_DIR"), "/scheduler.skel.rs"));
}
