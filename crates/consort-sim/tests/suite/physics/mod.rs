//! The physics of the contention engine: known forms (`forms`) and laws that hold for every
//! machine, program and placement (`laws`).

mod branches;
mod build;
mod chains;
mod classes;
mod copies;
mod counts;
mod dividers;
mod domains;
mod forms;
mod fusion;
mod laws;
mod lines;
mod miss_queues;
mod prefetch;
mod random;
mod siblings;
mod stretches;
mod windows;
