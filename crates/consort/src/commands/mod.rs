//! The verbs, one file or folder each, with their arguments.

pub(crate) mod attach;
pub(crate) mod bench;
pub(crate) mod compare;
pub(crate) mod config;
pub(crate) mod daemon;
pub(crate) mod daemon_requests;
pub(crate) mod glossary;
pub(crate) mod list;
pub(crate) mod listings;
pub(crate) mod machine;
pub(crate) mod manage;
pub(crate) mod map;
pub(crate) mod policies;
pub(crate) mod profile;
pub(crate) mod programs;
pub(crate) mod replay;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod top;
pub(crate) mod train;
pub(crate) mod trial;
pub(crate) mod validate;
pub(crate) mod what_if;
