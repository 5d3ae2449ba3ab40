//! Events: what happens when, and what each thread has done until then.

mod counts;

pub use counts::Counts;
