//! `consort machine probe`: what PUs share, measured.
//!
//! Threads of this process run on pairs of PUs, each bound to one; when the process ends, for
//! whatever reason, nothing is left running or bound.

mod budget;
mod document;
mod line_transfer;
mod measure;
mod show;
mod slices;

use crate::cli::{OutputFormat, ProbeArgs};
use crate::failure::bad_input;
use crate::out_file::OutFile;
use crate::output;
use crate::table_file::TableOutput;
use anyhow::Result;
use budget::ProbeBudget;
use consort_core::PuSet;
use consort_core::sharing::SharingMap;
use consort_data::List;
use document::ProbeDocument;
use std::process::ExitCode;
use std::time::Duration;

/// Time for the whole with `--quick`.
const QUICK: Duration = Duration::from_secs(3);

pub(super) fn execute(args: &ProbeArgs) -> Result<ExitCode> {
    let host = crate::host::discover_host(None)?;
    let pus = probed_pus(args.pus.as_ref(), host.discovery.topology.pus())?;
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
    let table = TableOutput::begin(args.list.out.as_deref())?;
    let time = if args.quick { QUICK } else { args.seconds };
    let budget = ProbeBudget::new(pus.len(), time);
    let measured = measure::measure_all(&pus, &budget)?;
    let document = ProbeDocument::new(&host, &pus, &budget, &measured, args.write.as_deref());
    if let Some(file) = file {
        let map = SharingMap::from_inference(&document.inference, document.source());
        file.write(&format!("{}{}", show::preamble(&document), map.to_toml()))?;
    }
    table.write(|| List::new(show::CSV_COLUMNS, &show::rows(&document)).to_table())?;
    print(args.format, &document)?;
    Ok(ExitCode::SUCCESS)
}

/// The PUs to probe: those asked for, all of which must be usable, or all that are.
fn probed_pus(asked: Option<&PuSet>, usable: &PuSet) -> Result<PuSet> {
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

fn print(format: OutputFormat, document: &ProbeDocument) -> Result<()> {
    let mut out = output::stdout();
    match format {
        OutputFormat::Json => output::write_json(&mut out, document),
        OutputFormat::Csv => output::write_csv(&mut out, show::CSV_COLUMNS, &show::rows(document)),
        OutputFormat::Table => Ok(output::print_text(&mut out, &show::text(document))?),
    }
}
