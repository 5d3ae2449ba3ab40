//! The live machine: a Linux host as a `Machine`.
//!
//! Each module is named after what it reads or writes: `topology` (sysfs,
//! cpusets), `perf` (the perf_event system call and its ring buffers),
//! `sampling` (instruction pointers to instruction mix), `events` (counters by
//! microarchitecture), `discovery` (which threads exist), `enact` (affinity,
//! journal, guardian).

pub mod discovery;
pub mod enact;
pub mod perf;
pub mod sampling;
pub mod topology;
