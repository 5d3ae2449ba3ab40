//! Reading of other programs' memory and files, in a process that may be abandoned.
//!
//! A read of another program's memory faults its page in, and the program that serves the page may never do
//! so: a file system of a user (FUSE), a dead server (NFS), a userfaultfd. Opening a file and
//! reading it wait for the same servers, and the list of mappings waits for a lock that such a fault
//! may hold. The kernel does not interrupt these waits, and a *thread* in one would keep Consort
//! from exiting. So a helper process makes them ([`reader_main`]): the same program, started with
//! hidden words. A request that is not answered in time is given up, the helper is killed and left
//! to die whenever it can, and another one takes its place (`client`).
//!
//! The helper is not an ancestor of the managed programs, so Yama (`ptrace_scope` 1) would refuse it
//! their memory. Consort opens `/proc/PID/mem`, which waits for no page, and sends the descriptor.
//!
//! | limit | value |
//! |---|---|
//! | waiting in one round for a helper that sleeps | 20 ms |
//! | the same for one that waits for a CPU | 500 ms |
//! | age at which an unanswered request is given up | 1 s |
//! | time for which its page or file is not read again | 10 min |
//! | unanswered requests after which a program's code is not read any more | 3 |
//! | starts of helpers per minute | 10 |

mod client;
mod helper;
mod request;
mod serve;

pub(crate) use client::CodeReader;
pub(crate) use helper::cpu_ns;
pub use helper::use_helper;
pub(crate) use request::{FileRef, PageAddress};
pub use serve::reader_main;

/// CPU time of all helpers so far, s.
#[must_use]
pub fn cpu_s() -> f64 {
    cpu_ns() as f64 / 1e9
}
