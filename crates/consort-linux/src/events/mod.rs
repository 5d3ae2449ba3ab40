//! Event files: the hardware events of a microarchitecture, their encodings, the counters that can
//! hold them, and the signals that follow from them.
//!
//! # Usage
//!
//! [`event_file_for`] gives the built-in [`EventFile`] of a CPU;
//! [`crate::counters`] plans groups from it and computes signals. The written
//! form is described at [`schema`].
//!
//! # Pitfalls
//!
//! Encodings without a source stay out of the files: a wrong event is worse than
//! none. [`crate::counters::check`] runs every event against loops of known
//! counts.

mod expr;
mod expr_parser;
mod file;
mod matching;
mod parse;
mod registry;
pub mod schema;
mod validate;

pub use expr::{Expr, ExprError, Operator};
pub use file::{EventDefinition, EventFile, EventFileError, FormulaPart, PmuEvents, SignalFormula};
pub use parse::parse_event_file;
pub use registry::{EMBEDDED, event_file_for, event_files};
pub use schema::{CounterKind, EventUnit, MatchRule};
