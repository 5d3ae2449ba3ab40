//! Lines of JSON between processes of one host: the layer that the control socket
//! ([`crate::control`]) and groups ([`crate::group`]) share.
//!
//! `line` reads and writes lines of bounded length, each with the version of its language first.
//! `messages` holds all messages of both languages. `connection` accepts connections and exchanges
//! lines over them, without waiting on a server's side and with a deadline on a client's.

mod connection;
mod line;
mod messages;

pub use connection::Peer;
pub(crate) use connection::{Acceptor, LineConnection, ReadError};
pub use line::{Language, LineBuffer, LineError, MAX_LINE_BYTES};
pub use messages::{
    AttachTargets, DaemonAnswer, DaemonRequest, Demands, GroupTerms, JoiningCommand, LeaderMessage,
    MAX_ANSWER_BYTES, MemberMessage, OpenTerms,
};
