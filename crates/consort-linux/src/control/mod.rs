//! The control socket: the requests that a daemon takes, and the users that may make them.
//!
//! One line of JSON each way, version first; a conversation may ask any number of times:
//!
//! ```text
//! {"version":1,"request":"status"}
//! {"version":1,"answer":{"ok":{"policy":"workover",...}}}
//! {"version":1,"request":{"attach":{"pids":[4711],"cgroups":[],"policy":"gang"}}}
//! {"version":1,"answer":{"ok":{"attached":["xz (4711)"]}}}
//! {"version":1,"request":{"attach":{"pids":[1],"cgroups":[],"policy":null}}}
//! {"version":1,"answer":{"error":"process 1 belongs to user 0, and user 1000 asks for it"}}
//! ```
//!
//! | request | does | who may |
//! |---|---|---|
//! | `status` | what is managed, how, and since when | all: each sees its own threads, root all |
//! | `{"explain":{"tid":N}}` | why a thread is where it is | its owner, root |
//! | `{"attach":{"pids":[],"cgroups":[],"policy":null}}` | manages them | owners their processes; root and the daemon's user also control groups |
//! | `{"detach":{"pids":[],"cgroups":[]}}` | puts them back and lets them alone | the same |
//! | `{"policy":{"policy":"NAME"}}` | goes on with another policy | root, the daemon's user |
//! | `"reload"` | reads the configuration again | root, the daemon's user |
//!
//! The kernel says which user asks (`SO_PEERCRED`, `unix(7)`). Requests have at most 4,096 bytes,
//! answers at most 16 MiB. A user has at most 16 conversations and 200 requests per second, all
//! together 64 conversations, 16 of them for root and the daemon's user alone; requests beyond that
//! rate wait. A process that may have few descriptors has fewer. A conversation without a whole
//! request for 30 seconds ends, and one whose peer does not take its answer within ten. A peer that
//! is refused gets the reason as an answer.
//!
//! Usage: the daemon opens a [`ControlServer`] and gives it to [`crate::live::LiveMachine::open_control_server`]; others
//! [`connect_daemon`] it.

mod client;
mod client_connection;
mod control_server;
mod message;
mod place;

pub use client::{DaemonConnection, DaemonConnectionError, connect_daemon, has_daemon, sockets};
pub use client_connection::Peer;
pub use control_server::{ControlServer, ControlServerError, PendingRequest, RequestHandler};
pub use message::{
    AttachTargets, DaemonAnswer, DaemonRequest, MAX_ANSWER_BYTES, RequestError, VERSION,
};
pub use place::SocketPlace;
