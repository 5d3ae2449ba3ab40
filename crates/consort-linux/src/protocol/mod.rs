//! Lines of JSON between processes of one host: the layer that the control socket
//! ([`crate::control`]) and groups ([`crate::group`]) share.
//!
//! `messages` holds all messages of both languages. `connection` reads and writes lines of bounded
//! length, each with the version of its language first, without waiting on a server's side and with a
//! deadline on a client's.

mod connection;
mod messages;

pub(crate) use connection::{Acceptor, LineConnection, ReadError};
pub use connection::{Language, LineBuffer, LineError, MAX_LINE_BYTES, Peer};
pub use messages::{
    AttachTargets, DaemonAnswer, DaemonRequest, Demands, GroupTerms, JoiningCommand, LeaderMessage,
    MAX_ANSWER_BYTES, MemberMessage, OpenTerms,
};
