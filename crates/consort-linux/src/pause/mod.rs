//! Pausing programs: no thread of a process tree runs until it is resumed.
//!
//! Purpose: gangs and co-schedules need some programs out of the way while others run. Three
//! mechanisms, best first: the freezer of cgroup version 2, that of version 1, and SIGSTOP with
//! SIGCONT. The first mechanism that works for a program pauses it from then on.
//!
//! Usage: [`mechanisms`] lists the mechanisms of a host, and [`Pauser::new`] takes those that can
//! be used; [`Pauser::pause`] and [`Pauser::resume`] carry plans out, [`Pauser::forget`] follows a
//! program's end. Everything is journalled before it is paused, so the guardian of the
//! [`Enactor`](crate::enact::Enactor) and its [`close`](crate::enact::Enactor::close) leave nothing
//! paused, whatever happens.
//!
//! The states of a program:
//!
//! | from | event | to |
//! |---|---|---|
//! | unknown | `pause`: the first mechanism that works takes its processes in | paused |
//! | unknown | `pause` when none works, or without guardian or journal: undone | unknown |
//! | paused | `pause`: processes that were born or found since are taken in | paused |
//! | paused | `resume` | running |
//! | running | `pause` | paused |
//! | any | `forget`, or the end of the run: every process is where it was | unknown |
//!
//! Pitfalls: signals that must be handled reach a paused program only when it is resumed (SIGKILL
//! excepted, but for the freezer of version 1); so resume it before passing a signal on. With
//! SIGSTOP, a program that somebody else stops while it is paused goes on when it is resumed, as
//! the kernel knows only one stop; and parents that watch for stopped children see it.

mod confirm;
mod detect;
mod error;
mod freezer;
mod freezer_files;
mod freezer_mechanism;
mod kind;
mod mechanism;
mod moves;
mod pause_journal;
mod pauser;
mod signals;
mod tree;

pub use detect::{PauseSupport, mechanisms};
pub use error::PauseError;
pub(crate) use freezer::FreezerCgroup;
pub use kind::PauseKind;
pub use pauser::{PauseOutcome, Pauser};
