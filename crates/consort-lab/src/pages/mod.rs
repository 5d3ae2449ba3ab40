//! Reports of studies as files: a page for each, an index, and all tables and figures.

mod html;
mod write;

pub use html::{INDEX, index, page};
pub use write::{write, write_index};
