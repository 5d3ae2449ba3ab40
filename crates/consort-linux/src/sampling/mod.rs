//! The sampling tier: profiles of threads from samples of their instruction pointers.
//!
//! [`Sampler`] reads perf's rings into a [`RecordBatch`] per round; [`SampleProfiler`] fetches the
//! code at each sampled address, has it classified (crate `consort-isa`) and keeps a
//! [`ThreadProfile`] per thread; the same batches feed [`crate::discovery::ThreadTracker`]. Nothing
//! runs in the background: the caller polls, or calls [`Sampler::drain`] every 100 ms or so.
//!
//! Pitfalls: processes that end before their code was fetched can be decoded from their files only,
//! so JIT code of such a process stays unknown. Time in the kernel is not sampled; a thread that is
//! mostly in system calls has few samples for its CPU time.

mod attach;
mod blocks;
mod budget;
mod calibrate;
mod code;
mod config;
mod feed;
mod members;
mod profile;
mod profiler;
mod sampler;

pub use calibrate::sample_cost_ns;
pub(crate) use calibrate::{sampling_clone_ns, sampling_switch_ns, switch_cost_ns};
pub use code::CodeCounts;
pub use config::{SamplerConfig, SamplingScope, UnknownWatchRate, WatchRate};
pub use feed::RecordBatch;
pub(crate) use profile::ESTIMATED_STACK;
pub use profile::{ProfiledThread, ThreadProfile, ThreadSampleCounts};
pub use profiler::SampleProfiler;
pub use sampler::{Sampler, SamplerError};
