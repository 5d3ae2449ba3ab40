//! Affinity within original masks, and their restoration whatever happens.
//!
//! Purpose: put threads where a plan wants them, and leave every thread as it
//! was when Consort ends, by whatever signal.
//!
//! Usage: [`Enactor::start`] opens a journal and starts a guardian;
//! [`Enactor::adopt`] and [`Enactor::adopt_child`] take threads in;
//! [`Enactor::apply`] carries out a plan once per quantum;
//! [`Enactor::close`] restores everything and ends the guardian. Dropping an
//! `Enactor` without `close` leaves the restoration to the guardian, as does
//! SIGKILL. [`recover_stale`] at the next start mends what is left when the
//! guardian was killed too.
//!
//! The states of a thread ([`ThreadState`]):
//!
//! | from | event | to |
//! |---|---|---|
//! | unmanaged | `adopt`, or `adopt_child` with the program's original mask | free |
//! | unmanaged | `adopt_child` with a mask that Consort wrote: reset to the original | free |
//! | unmanaged | `adopt_child` with any other mask | foreign |
//! | foreign | `adopt` (the override) | free |
//! | free | `apply` with a narrower set of PUs, journalled first | restricted |
//! | restricted | `apply` unrestricted, or `restore_all` | free |
//! | free, restricted | the mask was changed by somebody else | released |
//! | restricted | a cpuset or hotplug change moved the mask: asserted again | restricted |
//! | any | the thread exits, or `forget` | unmanaged |
//!
//! Pitfalls: two parties that write the same mask cannot be told apart. A
//! thread that pins itself, between two quanta, to a mask that Consort has
//! written somewhere in its program's tree is taken for an heir of that mask.

mod adopt;
mod affinity;
mod apply;
mod checked_write;
mod elsewhere;
mod enactor;
mod family;
mod guardian;
mod guardian_main;
mod host;
mod journal;
mod launch;
mod ledger;
mod original;
mod path_field;
mod record;
mod recover;
mod report;
mod restore;
mod runtime_dir;
mod signals;
mod wait;
mod witness;

pub use adopt::{AdoptError, ChildStatus};
pub use enactor::{EnactConfig, EnactError, Enactor, ThreadState};
pub use guardian::{GuardianError, Health};
pub use guardian_main::guardian_main;
pub use host::{current_mask, identify};
pub use journal::JournalError;
pub use launch::{LaunchError, Launched, RUN_MARKER, launch};
pub(crate) use record::Record;
pub use recover::{RecoverReport, recover_stale};
pub use report::{ApplyReport, Refusal, RestoreReport, Wanted};
pub(crate) use runtime_dir::RuntimeDir;
pub use runtime_dir::{RuntimeDirError, runtime_dirs};
pub use signals::{Relay, SignalEvent, Signals, relay};
pub use wait::{ChildEvent, exit_code};
