//! Affinity within original masks, and their restoration whatever happens.
//!
//! Purpose: put threads where a plan wants them, and restore every thread when Consort ends, whatever
//! signal ends it.
//!
//! Usage: [`Enactor::start`] opens a journal and starts a guardian; [`Enactor::adopt`] and
//! [`Enactor::adopt_child`] take threads in; [`Enactor::apply`] carries out a plan once per
//! quantum; [`Enactor::close`] restores everything and ends the guardian. Dropping an `Enactor`
//! without `close` leaves the restoration to the guardian, as does SIGKILL. Once
//! [`Enactor::send_heartbeat`] was called, it has to be called about once a second: otherwise the
//! guardian restores while the owner lives. [`recover_stale`] at the next start restores the rest
//! when the guardian was killed too.
//!
//! The states of a thread ([`ThreadState`]):
//!
//! | from | event | to |
//! |---|---|---|
//! | unmanaged | `adopt`, or `adopt_child` with the program's original mask | free |
//! | unmanaged | `adopt_child` with a mask of Consort's that was in force at its birth: reset | free |
//! | unmanaged | `adopt_child` with any other mask | foreign |
//! | foreign | `adopt` (the override) | free |
//! | free | `apply` with a nudge, journalled first: narrowed and widened again | free |
//! | free | `apply` with a lasting mask, journalled first | restricted |
//! | restricted | `apply` unrestricted or with a nudge, or `restore_all` | free |
//! | free, restricted | the mask was changed by another program | released |
//! | restricted | the guardian has restored, as there were no beats | free |
//! | free | `stop_managing`: its control group is not managed | foreign |
//! | restricted | a cpuset or hotplug change moved the mask: asserted again | restricted |
//! | any | the thread exits, or `forget` | unmanaged |
//!
//! Pitfalls: two programs that write the same mask cannot be distinguished. A thread that was started
//! within a clock tick (10 ms) of a nudge in its tree, and pins itself to exactly the CPUs of that
//! nudge before it is found, seems to have inherited that mask; so does, under lasting masks, a
//! thread that pins itself to a mask that some thread of its tree has then. After a SIGKILL of
//! owner and guardian, any mask that was ever written in a tree counts as inherited.

mod adopt;
mod affinity;
mod apply;
mod checked_write;
mod enactor;
mod family;
mod guardian;
mod host;
mod journal;
mod journal_state;
mod launch;
mod mask_history;
mod nudge;
mod other_runs;
mod record;
mod recover;
mod restore;
mod runtime_dir;
mod signals;

pub use adopt::{AdoptError, ChildStatus};
pub use affinity::bind_calling_thread;
pub use apply::{ApplyReport, Refusal, ThreadWish};
pub use enactor::{EnactConfig, EnactError, Enactor, ThreadState};
pub use guardian::{GuardianError, GuardianHealth, guardian_main};
pub use host::{current_mask, identify};
pub use journal::JournalError;
pub(crate) use launch::children_cpu_s;
pub use launch::{
    ChildEvent, CommandTimes, LaunchError, LaunchedProgram, RUN_MARKER, exit_code, launch,
    raise_descriptor_limit,
};
pub(crate) use record::JournalRecord;
pub(crate) use recover::wait_for_guardians;
pub use recover::{RecoverReport, recover_stale};
pub use restore::RestoreReport;
pub(crate) use runtime_dir::RuntimeDir;
pub use runtime_dir::{RuntimeDirError, runtime_dirs};
pub use signals::{SignalAction, SignalEvent, SignalReader, choose_action};
