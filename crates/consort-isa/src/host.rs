//! Properties of the processor that the estimate needs.

/// Sizes and speed of the processor that was sampled; what is not known is none.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Host {
    /// Size of a core's first-level data cache, bytes.
    pub l1_bytes: Option<u64>,
    /// Size of a core's second-level cache, bytes; its first level where it has no second.
    pub l2_bytes: Option<u64>,
    /// Core cycles per nanosecond while a thread runs.
    pub cycles_per_ns: Option<f64>,
}
