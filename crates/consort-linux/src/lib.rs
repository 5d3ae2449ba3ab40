//! The live machine: a Linux host as a `Machine`.
//!
//! Each module is named after the part of the host that it reads or writes: `topology` (sysfs),
//! `cgroup` (cpusets), `proc` (threads' files), `perf` (the perf_event system call and its ring
//! buffers), `reader` (others' memory and files, in a process that may be abandoned), `sampling`
//! (instruction pointers to instruction mix), `discovery` (which threads there
//! are), `events` (event files by microarchitecture), `counters` (groups of them on threads, and
//! the probe of all tiers), `owners` (others that place threads), `enforce` (nudges and pins, and
//! how well threads keep to the plan), `enact` (affinity, journal, guardian), `cookies` (core
//! scheduling), `pause` (freezers and stop signals), `energy` (RAPL), `protocol` (lines of JSON
//! between processes), `control` (the socket of a daemon), `group` (several runs under one control
//! loop). `live` puts them together.

pub mod cgroup;
pub mod control;
pub mod cookies;
pub mod counters;
pub mod discovery;
pub mod enact;
pub mod energy;
pub mod enforce;
pub mod events;
pub mod group;
pub mod live;
pub mod owners;
pub mod pause;
pub mod perf;
mod proc;
mod protocol;
mod read;
pub mod reader;
pub mod sampling;
pub mod topology;

pub use enact::raise_descriptor_limit;

#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
