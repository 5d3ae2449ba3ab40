//! What a real program asks of a processor, measured while it runs.
//!
//! A program runs under QEMU's user-mode emulator with a plugin that reports every executed block
//! and every access to memory ([`recorder`]). Blocks are decoded into operations
//! ([`consort_ops::Op`]), from which a trace or a profile is made.

pub mod measure;
pub mod recorder;
