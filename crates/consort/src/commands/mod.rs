//! The verbs, one file each.

pub(crate) mod attach;
pub(crate) mod bench;
mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod daemon_requests;
pub(crate) mod machine;
pub(crate) mod man;
pub(crate) mod manage;
pub(crate) mod map;
pub(crate) mod policies;
pub(crate) mod profile;
pub(crate) mod programs;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod train;
pub(crate) mod validate;
pub(crate) mod what_if;
