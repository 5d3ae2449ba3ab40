//! Timelines for Perfetto and Chrome: who ran where, when and how fast.
//!
//! [`TimelineWriter`] streams events in the Trace Event Format (Google, "Trace
//! Event Format", JSON object format) to any writer. Processes are LLC domains,
//! tracks are PUs, slices are threads; memory utilisation is a counter track.
//! What it has written is valid JSON after [`TimelineWriter::finish`], and after
//! dropping it too, unless the underlying writer has failed.
//!
//! Pitfall: a slice is written when the next one on its PU begins or at the end;
//! the file is not sorted by time, which viewers do not need.

mod event;
mod slice;
mod writer;

pub use slice::TimelineSegment;
pub use writer::TimelineWriter;
