//! Micro-kernels whose time can be worked out by hand, within 5 percent.

mod alone;
mod caches;
mod classes;
mod fusion;
mod laws;
mod machine;
mod multi2sim;
mod ops;
mod siblings;
