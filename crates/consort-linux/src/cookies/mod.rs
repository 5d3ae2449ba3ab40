//! Core-scheduling cookies: only threads that a plan has together on one core run there together.
//!
//! Threads on the PUs of one core run at the same time only if they have the same cookie; a PU whose
//! core is taken by others idles until they leave (Linux,
//! `Documentation/admin-guide/hw-vuln/core-scheduling.rst`). So the threads of a core get a cookie
//! in common, and all others none. A thread that is alone on its core gets none either: its
//! sibling PU would idle for nothing.
//!
//! Usage, by the live machine, once per quantum: `look` finds the threads that may be given
//! cookies, `share` gives one to each group of them. `kernel` has the system call, and `status`
//! tells whether it can be used here.
//!
//! Every cookie is made by a thread of Consort's that keeps it, and its number is journalled before
//! any other thread gets it. So a restoration can take away every cookie of these numbers, even
//! inherited ones. Children inherit cookies, and an `exec` does not take them away: so the cookie
//! of each thread is read anew in every quantum.
//!
//! Pitfalls: a program that runs with another user's rights keeps the cookie that it has inherited,
//! unless Consort runs as root. While Consort has a cookie itself it can take none away.

mod cookie_journal;
mod core_scheduling;
mod groups;
mod status;

pub(crate) use core_scheduling::{CoreScheduling, HostCoreScheduling};
pub(crate) use groups::{CookieReport, Cookies};
pub use status::CookieStatus;
pub(crate) use status::probe;
