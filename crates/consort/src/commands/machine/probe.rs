//! `consort machine probe`: measures which CPUs share what.

use crate::commands::manage::detect_host;
use crate::failure::bad_input;
use crate::options::{TABLE, parse_simulated};
use crate::output::file::{OutFile, TableOutput, own_output};
use crate::output::{self, OutputColumn, OutputFormat, count, number, or_dash, text};
use crate::progress;
use anyhow::Result;
use clap::Args;
use consort_core::sharing::{
    Inference, PairEvidence, SharingAnswer, SharingLevel, SharingMap, SharingVerdict, Stress,
    differences, infer,
};
use consort_core::{PuId, PuSet};
use consort_data::{ColumnHead, List};
use consort_host::probe::{
    ProbeBudget, ProbeMeasurement, ProbeRuns, measure_lines, measure_slowdowns,
};
use consort_linux::live::Host;
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

#[derive(Debug, Args)]
pub(crate) struct ProbeArgs {
    /// Approximate time of the probe; pairs that do not fit in are reported as missing
    #[arg(long, value_name = "TIME", alias = "seconds", value_parser = parse_simulated, default_value = "30s")]
    pub(crate) duration: Duration,
    /// Make fewer and shorter runs, for a preview in 3 s
    #[arg(long, conflicts_with = "duration")]
    pub(crate) quick: bool,
    /// Probe only these CPUs, for example 0-3,8; all usable ones if not given
    #[arg(long, value_name = "CPUS", alias = "pus")]
    pub(crate) cpus: Option<PuSet>,
    #[arg(short, long, value_name = "PATH", help = format!("Write the result to PATH.toml, for --topology, or every measurement to {TABLE}; repeat it for both"))]
    pub(crate) out: Vec<PathBuf>,
    /// Write the result to FILE, for --topology
    #[arg(long, value_name = "FILE", hide = true)]
    pub(crate) write: Option<PathBuf>,
    /// Replace files that exist
    #[arg(long)]
    pub(crate) force: bool,
    /// Output format; csv lists every measurement
    #[arg(long, value_enum, default_value_t)]
    pub(crate) format: OutputFormat,
}

/// Time of the whole probe with `--quick`.
const QUICK: Duration = Duration::from_secs(3);

pub(super) fn execute(args: &ProbeArgs) -> Result<ExitCode> {
    let host = detect_host(None)?;
    let pus = probed_pus(args.cpus.as_ref(), host.discovery.topology.pus())?;
    let place = own_output(&args.out).or(args.write.as_deref());
    if pus.len() < 2 && place.is_some() {
        return Err(bad_input(format!(
            "--out: CPU {pus} alone cannot be compared with any, so nothing would be measured; \
             probe at least two"
        )));
    }
    // Before anything is run, so that a bad path wastes no time.
    let file = place.map(|path| OutFile::create("topology", path, args.force));
    let file = file.transpose()?;
    let table = TableOutput::begin_from_out(&args.out, 0)?;
    let time = if args.quick { QUICK } else { args.duration };
    let budget = ProbeBudget::new(pus.len(), time);
    let measured = measure(&pus, &budget)?;
    let document = ProbeDocument::new(&host, &pus, &budget, &measured, place);
    if let Some(file) = file {
        let map = SharingMap::from_inference(&document.inference, document.source());
        file.write(&format!("{}{}", preamble(&document), map.to_toml()))?;
    }
    table.write(|| List::new(CSV_COLUMNS, &rows(&document)).to_table())?;
    output::print(
        args.format,
        CSV_COLUMNS,
        &rows(&document),
        &document,
        || probe_text(&document),
    )?;
    Ok(ExitCode::SUCCESS)
}

/// Measures as much as the budget allows, with a meter for each of the two parts.
fn measure(pus: &PuSet, budget: &ProbeBudget) -> Result<ProbeMeasurement> {
    let begin = Instant::now();
    let meter = progress::start_meter("line transfers");
    let mut evidence = measure_lines(pus, budget, &|done, total| meter.set_done(done, total))?;
    meter.finish();
    let meter = progress::start_meter("pairs of CPUs");
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

/// Returns the CPUs to probe: the requested ones, which must be usable, or all usable ones.
fn probed_pus(requested: Option<&PuSet>, usable: &PuSet) -> Result<PuSet> {
    let Some(requested) = requested else {
        return Ok(usable.clone());
    };
    if requested.is_empty() {
        return Err(bad_input(format!(
            "--cpus names no CPU; usable are {usable}"
        )));
    }
    match requested.difference(usable).first() {
        Some(pu) => Err(bad_input(format!(
            "--cpus: CPU {pu} cannot be used here; usable are {usable}"
        ))),
        None => Ok(requested.clone()),
    }
}

#[derive(Serialize)]
struct ProbeDocument {
    machine: String,
    hypervisor: Option<String>,
    pus: PuSet,
    pairs_total: usize,
    /// Pairs whose line transfers were measured.
    pairs_timed: usize,
    /// Pairs on which kernels were run.
    pairs_measured: usize,
    /// Pairs without kernels, at most a hundred.
    left_out: Vec<(PuId, PuId)>,
    runs: usize,
    slice_ms: u64,
    seconds: f64,
    /// Runs that do not count, because other programs had the CPUs.
    disturbed_runs: usize,
    evidence: Vec<PairEvidence>,
    #[serde(flatten)]
    inference: Inference,
    /// Contradictions between the measurements and the kernel, one sentence per group.
    differences: Vec<String>,
    notes: Vec<String>,
    file: Option<String>,
}

/// Pairs without kernels that are listed.
const LISTED: usize = 100;

impl ProbeDocument {
    fn new(
        host: &Host,
        pus: &PuSet,
        budget: &ProbeBudget,
        measured: &ProbeMeasurement,
        file: Option<&Path>,
    ) -> Self {
        // Over all usable CPUs, not only the chosen ones: a CPU is alone on its core only if it was
        // compared with every other.
        let inference = infer(host.discovery.topology.pus(), &measured.evidence);
        let hypervisor = host.discovery.hypervisor.as_ref();
        let done = pairs_with_kernels(&measured.evidence);
        let done: BTreeSet<(PuId, PuId)> = done.map(|pair| (pair.a, pair.b)).collect();
        let pairs = { pus.iter() }.flat_map(|a| pus.iter().map(move |b| (a, b)));
        let pairs = pairs.filter(|(a, b)| a < b);
        Self {
            machine: host.offers().machine().to_owned(),
            hypervisor: hypervisor.map(|h| h.name.clone()),
            pus: pus.clone(),
            pairs_total: budget.pairs,
            pairs_timed: measured.evidence.len(),
            pairs_measured: pairs_with_kernels(&measured.evidence).count(),
            left_out: { pairs.filter(|pair| !done.contains(pair)) }
                .take(LISTED)
                .collect(),
            runs: budget.runs,
            slice_ms: budget.slice_ms,
            seconds: measured.seconds,
            disturbed_runs: measured.runs.disturbed,
            differences: differences(&inference, &host.discovery.machine),
            notes: notes(host, pus, budget, measured, &inference),
            evidence: measured.evidence.clone(),
            inference,
            file: file.map(|path| path.display().to_string()),
        }
    }

    /// Describes the origin of the groups in one sentence.
    fn source(&self) -> String {
        format!(
            "consort machine probe on {}: {} of {} pairs of CPUs {}, up to {} runs each of 5 \
             kernels in slices of {} ms",
            self.machine, self.pairs_measured, self.pairs_total, self.pus, self.runs, self.slice_ms
        )
    }
}

fn pairs_with_kernels(evidence: &[PairEvidence]) -> impl Iterator<Item = &PairEvidence> {
    evidence.iter().filter(|pair| !pair.effects.is_empty())
}

fn notes(
    host: &Host,
    pus: &PuSet,
    budget: &ProbeBudget,
    measured: &ProbeMeasurement,
    inference: &Inference,
) -> Vec<String> {
    let mut notes = Vec::new();
    if pus.len() == 1 {
        notes.push(format!(
            "CPU {pus} is the only one to be probed, so there is nothing to compare"
        ));
    }
    if budget.kernels < budget.pairs {
        notes.push(format!(
            "the time was enough for {} of {} pairs, those between which lines travel fastest; \
             --duration gives more, --cpus chooses",
            budget.kernels, budget.pairs
        ));
    }
    let ProbeRuns { good, disturbed } = measured.runs;
    if disturbed > good {
        notes.push(format!(
            "other programs used the CPUs: {disturbed} of {} runs do not count; repeat it on a quiet \
             machine",
            good + disturbed
        ));
    }
    if !inference.cores.undecided.is_empty() {
        notes.push(format!(
            "the cores of CPUs {} are unknown",
            inference.cores.undecided
        ));
    }
    if host.discovery.hypervisor.is_some() {
        notes.push(
            "this is a virtual machine: the result holds while the hypervisor leaves its CPUs where \
             they are"
                .to_owned(),
        );
    }
    notes
}

/// One measurement, for CSV.
struct ProbeRow {
    a: u32,
    b: u32,
    what: String,
    unit: &'static str,
    mean: f64,
    low: f64,
    high: f64,
    runs: usize,
}

const CSV_COLUMNS: &[OutputColumn<ProbeRow>] = &[
    number("a", |r| r.a.to_string()),
    number("b", |r| r.b.to_string()),
    text("what", |r| r.what.clone()),
    text("unit", |r| r.unit.to_owned()),
    number("mean", |r| format!("{:.4}", r.mean)),
    number("low", |r| format!("{:.4}", r.low)),
    number("high", |r| format!("{:.4}", r.high)),
    number("runs", |r| r.runs.to_string()),
];

/// Every measurement of every pair.
fn rows(document: &ProbeDocument) -> Vec<ProbeRow> {
    let mut rows = Vec::new();
    for pair in &document.evidence {
        let (a, b) = (pair.a.0, pair.b.0);
        rows.extend(pair.effects.iter().map(|effect| ProbeRow {
            a,
            b,
            what: effect.stress.to_string(),
            unit: "slowdown",
            mean: effect.slowdown.mean,
            low: effect.slowdown.low(),
            high: effect.slowdown.high(),
            runs: effect.slowdown.n,
        }));
        rows.extend(pair.round_trip_ns.map(|time| ProbeRow {
            a,
            b,
            what: "line".to_owned(),
            unit: "ns",
            mean: time.mean,
            low: time.low(),
            high: time.high(),
            runs: time.n,
        }));
    }
    rows
}

/// Pairs that are shown at most; csv and json have all.
const SHOWN: usize = 40;

fn probe_text(document: &ProbeDocument) -> String {
    let mut text = format!("{}, {:.1} s\n", document.source(), document.seconds);
    if !document.evidence.is_empty() {
        text +=
            "slowdown of two copies of a kernel, with its 95 % interval; line: there and back\n\n";
        text += &pair_table(document);
    }
    let levels = [
        ("cores", &document.inference.cores),
        ("level 2 caches", &document.inference.l2s),
        ("LLC domains", &document.inference.llcs),
    ];
    text.push('\n');
    for (what, level) in levels {
        text += &format!("{what}: {}\n", groups(level));
    }
    text.push('\n');
    if document.differences.is_empty() {
        text += "no measurement contradicts the kernel's description\n";
    }
    for difference in &document.differences {
        text += &format!("differs: {difference}\n");
    }
    for note in &document.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(file) = &document.file {
        text += &format!("written: {file}; use it by consort run --topology {file} -- CMD\n");
    }
    text
}

fn pair_table(document: &ProbeDocument) -> String {
    let stresses = Stress::ALL.iter().map(ToString::to_string);
    let numbers = stresses.chain(["line ns".to_owned()]);
    let numbers = numbers.map(|text| head(text, true));
    let verdicts = ["core", "L2", "LLC"].map(|text| head(text.to_owned(), false));
    let heads: Vec<ColumnHead> = std::iter::once(head("CPUs".to_owned(), false))
        .chain(numbers)
        .chain(verdicts)
        .collect();
    let pairs = document.evidence.iter().zip(&document.inference.pairs);
    let rows = pairs.take(SHOWN).map(|(pair, verdict)| {
        let mut row = vec![format!("{},{}", pair.a, pair.b)];
        for stress in Stress::ALL {
            let effect = pair.effects.iter().find(|effect| effect.stress == stress);
            row.push(or_dash(effect, |effect| {
                let slowdown = &effect.slowdown;
                let (mean, low, high) = (slowdown.mean, slowdown.low(), slowdown.high());
                match slowdown.factor95 {
                    Some(_) => format!("{mean:.2} ({low:.2}-{high:.2})"),
                    None => format!("{mean:.2} (1 run)"),
                }
            }));
        }
        row.push(or_dash(pair.round_trip_ns, |time| {
            format!("{:.0} ±{:.0}", time.mean, time.ci95.unwrap_or(0.0))
        }));
        row.extend([&verdict.core, &verdict.l2, &verdict.llc].map(word));
        row
    });
    let mut text = output::grid(&heads, rows);
    let more = document.evidence.len().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("and {}; --format csv has all\n", count(more, "more pair"));
    }
    text
}

fn head(text: String, numeric: bool) -> ColumnHead {
    ColumnHead {
        text,
        numeric,
        extra: false,
    }
}

fn word(verdict: &SharingVerdict) -> String {
    let word = match verdict.sharing {
        SharingAnswer::Shared => "shared",
        SharingAnswer::Apart => "apart",
        SharingAnswer::Unclear => return "unclear".to_owned(),
    };
    match verdict.confidence {
        Some(confidence) => format!("{word} {}", confidence_text(confidence)),
        None => word.to_owned(),
    }
}

/// Never more than an approximation can promise.
fn confidence_text(confidence: f64) -> String {
    if confidence > 0.999 {
        ">99.9%".to_owned()
    } else {
        format!("{:.1}%", 100.0 * confidence)
    }
}

fn groups(level: &SharingLevel) -> String {
    let group = |pus: &PuSet, confidence: Option<f64>| match confidence {
        Some(confidence) => format!("{{{pus}}} {}", confidence_text(confidence)),
        None => format!("{{{pus}}}"),
    };
    let groups = level.groups.iter().map(|g| group(&g.pus, g.confidence));
    let unclear =
        (!level.undecided.is_empty()).then(|| format!("unclear for CPUs {}", level.undecided));
    groups.chain(unclear).collect::<Vec<_>>().join("  ")
}

/// The head of the written file: the reasons for its groups, and the notes.
fn preamble(document: &ProbeDocument) -> String {
    let mut lines = vec![
        "Cores and caches that CPUs share, for --topology of consort run and consort machine."
            .to_owned(),
        "CPUs that are not named are as the kernel describes them.".to_owned(),
    ];
    let pairs = document.inference.pairs.iter();
    let decided = pairs.filter(|pair| pair.core.sharing == SharingAnswer::Shared);
    lines.extend(decided.map(|pair| format!("{},{}: {}", pair.a, pair.b, pair.core.why)));
    lines.extend(document.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(|line| format!("# {line}\n")).collect()
}
