//! Measurement of a real program while it runs: its demands on a processor.
//!
//! A program runs under QEMU's user-mode emulator with a plugin that reports every executed block
//! and every access to memory ([`recorder`]). Blocks are decoded into operations
//! ([`consort_ops::Op`]), which the meters of [`measure`] take. A [`ProgramProfiler`] has all of
//! them, and its [`ProgramProfile`] becomes a program file that the simulator takes.
//! docs/understand/profiles.md describes the figures and their methods.

mod crew;
mod figures;
mod file;
mod interval;
pub mod measure;
mod phase_text;
mod phases;
mod profile;
pub mod recorder;
mod sample;
mod thread_meter;
mod threads;

pub use figures::{DivisionFigures, ExecutionFigures, InstructionShares, PowerLaw};
pub use file::{ProgramFileHeader, sanitize_name};
pub use profile::{ProgramProfile, ProgramProfiler};
pub use threads::{Barriers, Locks, SharedLines, ThreadRelations, ThreadRole};
