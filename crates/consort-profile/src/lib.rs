//! Demands of a real program on a processor, measured while it runs.
//!
//! A program runs under QEMU's user-mode emulator with a plugin that reports every executed block
//! and every access to memory ([`recorder`]). Blocks are decoded into operations
//! ([`consort_ops::Op`]), which the meters of [`measure`] take; a [`Profiler`] has all of them, and
//! its [`Profile`] becomes a program file that the simulator takes. docs/profiling.md is the tour.

mod crew;
mod figures;
mod file;
mod interval;
pub mod measure;
mod metered;
mod phases;
mod profile;
pub mod recorder;
mod spread;
mod threads;

pub use figures::{Figures, Shares};
pub use file::{Told, plain};
pub use profile::{Profile, Profiler};
pub use threads::{Barriers, Locks, Role, Shared, Threads};
