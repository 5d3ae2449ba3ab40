//! `consort machine probe`: measures which PUs share what.

mod document;
mod show;

use crate::cli::{OutputFormat, ProbeArgs};
use crate::failure::bad_input;
use crate::out_file::OutFile;
use crate::table_file::TableOutput;
use crate::{output, progress};
use anyhow::Result;
use consort_core::PuSet;
use consort_core::sharing::SharingMap;
use consort_data::List;
use consort_host::probe::{ProbeBudget, ProbeMeasurement, measure_lines, measure_slowdowns};
use document::ProbeDocument;
use std::process::ExitCode;
use std::time::{Duration, Instant};

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
    let measured = measure(&pus, &budget)?;
    let document = ProbeDocument::new(&host, &pus, &budget, &measured, args.write.as_deref());
    if let Some(file) = file {
        let map = SharingMap::from_inference(&document.inference, document.source());
        file.write(&format!("{}{}", show::preamble(&document), map.to_toml()))?;
    }
    table.write(|| List::new(show::CSV_COLUMNS, &show::rows(&document)).to_table())?;
    print(args.format, &document)?;
    Ok(ExitCode::SUCCESS)
}

/// Measures as much as the budget allows, with a meter for each of the two parts.
fn measure(pus: &PuSet, budget: &ProbeBudget) -> Result<ProbeMeasurement> {
    let begin = Instant::now();
    let meter = progress::start_meter("line transfers");
    let mut evidence = measure_lines(pus, budget, &|done, total| meter.set_done(done, total))?;
    meter.finish();
    let meter = progress::start_meter("pairs of PUs");
    let runs = measure_slowdowns(&mut evidence, budget, &|done, total| {
        meter.set_done(done, total);
    })?;
    meter.finish();
    Ok(ProbeMeasurement {
        evidence,
        seconds: begin.elapsed().as_secs_f64(),
        runs,
    })
}

/// Returns the PUs to probe: the requested ones, which must be usable, or all usable ones.
fn probed_pus(requested: Option<&PuSet>, usable: &PuSet) -> Result<PuSet> {
    let Some(requested) = requested else {
        return Ok(usable.clone());
    };
    if requested.is_empty() {
        return Err(bad_input(format!("--pus names no PU; usable are {usable}")));
    }
    match requested.difference(usable).first() {
        Some(pu) => Err(bad_input(format!(
            "--pus: PU {pu} cannot be used here; usable are {usable}"
        ))),
        None => Ok(requested.clone()),
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
