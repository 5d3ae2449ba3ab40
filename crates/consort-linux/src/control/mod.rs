//! The control socket: the requests that a daemon takes, and the users that may make them.
//!
//! One line of JSON each way, version first; a client may send any number of requests over one
//! connection:
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
//! | `status` | reports what is managed, how, and since when | all: each sees its own threads, root all |
//! | `{"explain":{"tid":N}}` | reports why a thread is where it is | its owner, root |
//! | `{"attach":{"pids":[],"cgroups":[],"policy":null}}` | manages them | owners their processes; root and the daemon's user also control groups |
//! | `{"detach":{"pids":[],"cgroups":[]}}` | restores their masks and stops managing them | the same |
//! | `{"policy":{"policy":"NAME"}}` | uses another policy from now on | root, the daemon's user |
//! | `"reload"` | reads the configuration again | root, the daemon's user |
//!
//! The kernel reports the user of a client (`SO_PEERCRED`, `unix(7)`). Requests have at most 4,096
//! bytes, answers at most 16 MiB. A user has at most 16 connections and 200 requests per second, all
//! together 64 connections, 16 of them for root and the daemon's user alone; requests beyond that
//! rate wait. A process that may have few descriptors has fewer connections. A connection without a
//! complete request for 30 seconds is closed, and one whose peer does not take its answer within
//! ten. A peer that is refused gets the reason as an answer.
//!
//! Usage: a daemon opens a [`ControlServer`], polls its descriptors and calls
//! [`ControlServer::serve_clients`]; clients use [`connect_daemon`].

mod client;
mod server;
mod socket_place;

pub use crate::protocol::{
    AttachTargets, DaemonAnswer, DaemonRequest, LineError, MAX_ANSWER_BYTES, Peer,
};
pub use client::{DaemonConnection, DaemonConnectionError, connect_daemon, has_daemon, sockets};
pub use server::ControlServer;
pub use socket_place::{ControlServerError, SocketPlace};
