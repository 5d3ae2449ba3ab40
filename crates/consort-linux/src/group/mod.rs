//! Groups: several runs of Consort whose programs share the machine under one control loop.
//!
//! Every `consort run --group NAME` starts its command itself. The first of a group leads: it
//! holds the lock, and its control loop covers the programs of all. Each later one is a member: it
//! tells the leader which process it has started, and waits. When the leader goes away, for
//! whatever reason, its enactor or guardian puts every mask back, and a member that gets the lock
//! leads from then on.
//!
//! Chance decides which run comes first where several are started at once. So terms that the leader
//! was not asked for are open: the first member that asks for a policy or a quantum settles it for
//! all.
//!
//! Usage: [`enter_group`] gives the place in a group; [`Leader::serve_members`] reports members that come and
//! go, and [`Leader::proposal`] one that asks for open terms; [`GroupMember`] speaks with the leader.
//!
//! The files of a group lie in the folder for journals, which is private to its user:
//! `group-NAME.lock`, locked by the leader (`flock(2)`), and `group-NAME.socket`. Files that a
//! killed leader leaves there are deleted by its guardian, or else by the next run. Peers are
//! checked all the same (`SO_PEERCRED`, `unix(7)`): the same effective user, and only processes
//! that the peer has started itself.
//!
//! Pitfalls: a group is one user's; runs of other users with the same name are another group. A
//! leader that is stopped by SIGSTOP keeps its lock, and the group waits for it.

mod client;
mod error;
mod leader;
mod line_buffer;
mod lock;
mod member_connection;
mod message;
mod name;
mod place;
mod sweep;
mod verdict;

pub use client::{GroupMember, LeaderNews};
pub use error::GroupError;
pub use leader::{Leader, LeaderCandidate, LeaderTask};
pub use line_buffer::LineBuffer;
pub use message::{
    Demands, GroupTerms, JoiningCommand, LeaderMessage, MAX_LINE_BYTES, MemberMessage,
    MessageError, OpenTerms, VERSION,
};
pub use name::{GroupName, NameError};
pub use place::{GroupPlace, enter_group, try_enter_group};
pub(crate) use sweep::delete_stale_files;
