//! Programs with known behaviour.
//!
//! # Purpose
//!
//! Consort needs threads whose effect on a processor is known beforehand: to show `consort run` at
//! work on any host, to train interference models, to probe a hidden topology, and to check that a
//! PMU's events count what their names say. This crate has two kinds of them:
//!
//! - **kernels** ([`kernels`]): small resumable works that load one part of the
//!   processor each (`int`, `fp`, `vector`, `l1` ... `dram`, `stream`,
//!   `branchy`, `bigcode`) or behave in one way (`lock`, `barrier`, `sleeper`,
//!   `phases`, `jit`, `selfmod`). Each computes the checksum that it must end
//!   with, so that a run which was disturbed is noticed.
//! - **counted loops** ([`counted`]): assembly loops with exactly known numbers
//!   of instructions, floating-point operations, loads, stores and branches.
//!
//! The binary `consort-demo` runs all of them, and whole programs made from them:
//!
//! | command | what it is |
//! |---|---|
//! | `KERNEL [--threads N] [--seconds S \| --work UNITS]` | one kernel |
//! | `mixed [--seconds S] [--threads-per-kind N]` | fp, int, memory and sleeping threads together |
//! | `churn [--rate N] [--seconds S]` | many short threads |
//! | `forks [--children N] [--threads N] [--depth N]` | child processes with threads |
//! | `pin-self [--pu N]` | a thread that sets its own affinity, one that does not |
//! | `renamer [--threads N] [--every-ms MS]` | threads that rename themselves |
//! | `counted [NAME] [--iterations N]` | a counted loop, or all of them listed |
//! | `list` | the kernels |
//!
//! All take `--format table|json`, check their own results, and exit with 0 if
//! these are right, 1 if not, 2 for bad usage.
//!
//! # Usage
//!
//! ```
//! use consort_kernels::{KernelSetup, kernels};
//!
//! let entry = kernels::find("fp").expect("fp is in the registry");
//! let mut kernel = entry.build_one(&KernelSetup::default())?;
//! let checksum = kernel.work(100);
//! assert_eq!(checksum, kernel.expected());
//! # Ok::<(), consort_kernels::KernelError>(())
//! ```
//!
//! [`crew::Crew`] runs several kernels on named threads, for a number of units or until a deadline.
//!
//! # Pitfalls
//!
//! - Units of different kernels are not comparable: a unit is whatever takes
//!   some tens of microseconds.
//! - In an unoptimised build the kernels keep their results but not their
//!   character: `fp` is then mostly loads and stores, `vector` is not packed.
//!   The [`counted`] loops are the same in every build.
//! - A kernel's memory lies on the node of the thread that built it; build a
//!   [`KernelBuilder`] on the thread that will run it.

pub mod caches;
pub mod counted;
pub mod crew;
mod kernel;
pub mod kernels;
mod machine_code;
mod opaque;
mod tally;

pub use kernel::{ExpectedClass, Kernel, KernelBuilder, KernelEntry, KernelError, KernelSetup};
pub use tally::PERIOD;

#[cfg(test)]
#[path = "../tests/skip/mod.rs"]
mod skip;
