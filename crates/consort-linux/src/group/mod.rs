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
//! Usage: [`enter`] gives the place in a group; [`Leader::attend`] reports members that come and
//! go, and [`Leader::proposal`] one that asks for open terms; [`Member`] speaks with the leader.
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
mod conversation;
mod error;
mod leader;
mod line;
mod lock;
mod message;
mod name;
mod place;
mod sweep;
mod verdict;

pub use client::{Heard, Member};
pub use error::GroupError;
pub use leader::{Attended, Candidate, Leader};
pub use line::Lines;
pub use message::{
    Answer, Demands, Joining, MAX_LINE_BYTES, MessageError, Open, Request, Terms, VERSION,
};
pub use name::{GroupName, NameError};
pub use place::{Place, enter, try_enter};
pub(crate) use sweep::sweep;
