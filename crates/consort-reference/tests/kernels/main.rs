//! Micro-kernels whose time can be worked out by hand, within 5 percent.

mod alone;
mod caches;
mod laws;
mod machine;
mod ops;
mod siblings;
