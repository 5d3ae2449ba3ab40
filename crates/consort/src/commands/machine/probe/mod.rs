//! `consort machine probe`: what PUs share, measured.
//!
//! Threads of this process run on pairs of PUs, each bound to one; when the process ends, for
//! whatever reason, nothing is left running or bound.

mod budget;
mod document;
mod line;
mod measure;
mod show;
mod slices;

use crate::cli::{Format, ProbeArgs};
use crate::failure::bad_input;
use crate::out_file::OutFile;
use crate::output;
use crate::table_file::{TableFile, table_of};
use anyhow::Result;
use budget::Budget;
use consort_core::PuSet;
use consort_core::sharing::SharingMap;
use document::Document;
use std::process::ExitCode;
use std::time::Duration;

/// Time for the whole with `--quick`.
const QUICK: Duration = Duration::from_secs(3);

pub(super) fn execute(args: &ProbeArgs) -> Result<ExitCode> {
    let host = crate::host::look(None)?;
    let pus = chosen(args.pus.as_ref(), host.discovery.topology.pus())?;
    if pus.len() < 2 && args.write.is_some() {
        return Err(bad_input(format!(
            "--write: PU {pus} alone cannot be compared with any, so nothing would be measured; \
             probe at least two"
        )));
    }
    // Before anything is run, so that a bad path wastes no time.
    let file = args.write.as_deref();
    let file = file.map(|path| OutFile::create("topology", path, args.force));
    let file = file.transpose()?;
    let table = TableFile::begin(args.list.out.as_deref())?;
    let time = if args.quick { QUICK } else { args.seconds };
    let budget = Budget::new(pus.len(), time);
    let measured = measure::all(&pus, &budget)?;
    let document = Document::new(&host, &pus, &budget, &measured, args.write.as_deref());
    if let Some(file) = file {
        let map = SharingMap::of(&document.inference, document.source());
        file.write(&format!("{}{}", show::preamble(&document), map.to_toml()))?;
    }
    table.write(|| table_of(show::CSV_COLUMNS, &show::rows(&document)))?;
    print(args.format, &document)?;
    Ok(ExitCode::SUCCESS)
}

/// The PUs to probe: those asked for, all of which must be usable, or all that are.
fn chosen(asked: Option<&PuSet>, usable: &PuSet) -> Result<PuSet> {
    let Some(asked) = asked else {
        return Ok(usable.clone());
    };
    if asked.is_empty() {
        return Err(bad_input(format!("--pus names no PU; usable are {usable}")));
    }
    match asked.difference(usable).first() {
        Some(pu) => Err(bad_input(format!(
            "--pus: PU {pu} cannot be used here; usable are {usable}"
        ))),
        None => Ok(asked.clone()),
    }
}

fn print(format: Format, document: &Document) -> Result<()> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, document),
        Format::Csv => output::csv(&mut out, show::CSV_COLUMNS, &show::rows(document)),
        Format::Table => Ok(output::people(&mut out, &show::text(document))?),
    }
}
