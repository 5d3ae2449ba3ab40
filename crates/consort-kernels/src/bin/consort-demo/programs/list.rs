//! The registry as a table.

use crate::output::{self, DemoFormat, DemoOutcome, DemoVerdict};
use consort_kernels::kernels::REGISTRY;

/// Prints the registry.
pub(crate) fn run(format: DemoFormat) -> DemoOutcome {
    match format {
        DemoFormat::Table => output::print_line(&table())?,
        DemoFormat::Json => output::print_json(&REGISTRY)?,
    }
    Ok(DemoVerdict::Right)
}

fn table() -> String {
    let mut text = format!("{:<10} {:<8} summary\n", "kernel", "class");
    for entry in REGISTRY {
        text += &format!("{:<10} {:<8} {}\n", entry.name, entry.class, entry.summary);
    }
    text
}
