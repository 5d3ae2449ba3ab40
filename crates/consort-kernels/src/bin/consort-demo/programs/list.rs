//! The registry as a table.

use crate::output::{self, Format, Outcome, Verdict};
use consort_kernels::kernels::REGISTRY;

/// Prints the registry.
pub(crate) fn run(format: Format) -> Outcome {
    match format {
        Format::Table => output::line(&table())?,
        Format::Json => output::json(&REGISTRY)?,
    }
    Ok(Verdict::Right)
}

fn table() -> String {
    let mut text = format!("{:<10} {:<8} summary\n", "kernel", "class");
    for entry in REGISTRY {
        text += &format!("{:<10} {:<8} {}\n", entry.name, entry.class, entry.summary);
    }
    text
}
