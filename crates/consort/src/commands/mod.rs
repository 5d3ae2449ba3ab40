//! The verbs, one file each.

pub(crate) mod bench;
mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod machine;
pub(crate) mod man;
pub(crate) mod map;
pub(crate) mod policies;
pub(crate) mod profile;
pub(crate) mod programs;
pub(crate) mod reproduce;
pub(crate) mod run;
pub(crate) mod schema;
pub(crate) mod simulate;
pub(crate) mod sweep;
pub(crate) mod train;
pub(crate) mod validate;
