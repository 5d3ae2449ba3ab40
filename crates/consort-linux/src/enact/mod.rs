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
//! SIGKILL. Once [`Enactor::send_heartbeat`] was called, it has to be called about once a second: otherwise the
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
//! | free, restricted | the mask was changed by somebody else | released |
//! | restricted | the guardian has restored, as there were no beats | free |
//! | free | `leave`: its control group is none of those that are managed | foreign |
//! | restricted | a cpuset or hotplug change moved the mask: asserted again | restricted |
//! | any | the thread exits, or `forget` | unmanaged |
//!
//! Pitfalls: two parties that write the same mask cannot be told apart. A thread that has been
//! born within a clock tick (10 ms) of a nudge in its tree, and pins itself to the very PUs of that
//! nudge before it is found, is taken for an heir; so is, under lasting masks, one that pins itself
//! to a mask that some thread of its tree has then. After a SIGKILL of owner and all, any mask that
//! was ever written in a tree counts.

mod adopt;
mod affinity;
mod apply;
mod caller_placement;
mod candidate_dirs;
mod checked_write;
mod enactor;
mod family;
mod group_signals;
mod guardian;
mod guardian_main;
mod host;
mod host_snapshot;
mod journal;
mod journal_state;
mod launch;
mod mask_check;
mod mask_history;
mod nudge;
mod original_mask;
mod other_runs;
mod path_field;
mod record;
mod recover;
mod report;
mod restore;
mod runtime_dir;
mod signals;
mod stat_file_cache;
mod wait;

pub use adopt::{AdoptError, ChildStatus};
pub use affinity::bind_calling_thread;
pub use candidate_dirs::runtime_dirs;
pub use enactor::{EnactConfig, EnactError, Enactor, ThreadState};
pub use guardian::{GuardianError, GuardianHealth};
pub use guardian_main::guardian_main;
pub use host::{current_mask, identify};
pub use journal::JournalError;
pub use launch::{LaunchError, LaunchedProgram, RUN_MARKER, launch};
pub(crate) use record::JournalRecord;
pub(crate) use recover::wait_for_guardians;
pub use recover::{RecoverReport, recover_stale};
pub use report::{ApplyReport, Refusal, RestoreReport, ThreadWish};
pub(crate) use runtime_dir::RuntimeDir;
pub use runtime_dir::RuntimeDirError;
pub use signals::{SignalAction, SignalEvent, SignalReader, choose_action};
pub use wait::{ChildEvent, exit_code};
