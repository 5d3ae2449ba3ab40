//! Processors without counted loops.

use super::CountedLoop;

/// The loops of this processor.
pub const LOOPS: &[CountedLoop] = &[];

/// Reason why there are no loops, if there are none.
pub const UNAVAILABLE: Option<&str> =
    Some("counted loops are written in assembly, for x86_64 and aarch64 only");
