//! `consort policies`: the registry as a table.

use crate::cli::PoliciesArgs;
use crate::output::{self, OutputColumn, extra_text, number, text};
use crate::table_file;
use anyhow::Result;
use consort_core::policies::REGISTRY;
use consort_core::policy::PolicyInfo;
use std::process::ExitCode;

const COLUMNS: &[OutputColumn<PolicyInfo>] = &[
    text("name", |p| p.name.to_owned()),
    extra_text("family", |p| p.family.to_owned()),
    text("needs", |p| {
        let needs: Vec<&str> = p.needs.iter().map(|signal| signal.name()).collect();
        if needs.is_empty() {
            "nothing".to_owned()
        } else {
            needs.join(", ")
        }
    }),
    text("tier from", |p| p.tier_min.to_string()),
    number("quantum (ms)", |p| p.quantum_ms.to_string()),
    extra_text("runs on", |p| match (p.live, p.simulated) {
        (true, true) => "live, simulated".to_owned(),
        (true, false) => "live".to_owned(),
        (false, _) => "simulated".to_owned(),
    }),
    text("summary", |p| p.summary.to_owned()),
    extra_text("source", |p| p.source.to_owned()),
];

pub(crate) fn execute(args: &PoliciesArgs) -> Result<ExitCode> {
    table_file::write_list(args.list.out.as_deref(), COLUMNS, REGISTRY)?;
    let mut out = output::stdout();
    output::print(&mut out, args.format, COLUMNS, REGISTRY, REGISTRY)?;
    Ok(ExitCode::SUCCESS)
}
