//! Models as TOML files: reading and writing.

mod read;
mod section;
mod write;

#[cfg(test)]
mod tests;
