//! The probe for people: measurements, groups, contradictions with the kernel's account.

use super::document::ProbeDocument;
use crate::output::{self, OutputColumn, number, text as words};
use consort_core::PuSet;
use consort_core::sharing::{PairEvidence, SharingAnswer, SharingLevel, SharingVerdict, Stress};
use consort_core::stats::RatioInterval;
use consort_data::ColumnHead;

/// One measurement, for CSV.
pub(super) struct ProbeRow {
    a: u32,
    b: u32,
    what: String,
    unit: &'static str,
    mean: f64,
    low: f64,
    high: f64,
    runs: usize,
}

pub(super) const CSV_COLUMNS: &[OutputColumn<ProbeRow>] = &[
    number("a", |r| r.a.to_string()),
    number("b", |r| r.b.to_string()),
    words("what", |r| r.what.clone()),
    words("unit", |r| r.unit.to_owned()),
    number("mean", |r| format!("{:.4}", r.mean)),
    number("low", |r| format!("{:.4}", r.low)),
    number("high", |r| format!("{:.4}", r.high)),
    number("runs", |r| r.runs.to_string()),
];

/// Every measurement of every pair.
pub(super) fn rows(document: &ProbeDocument) -> Vec<ProbeRow> {
    document.evidence.iter().flat_map(pair_rows).collect()
}

fn pair_rows(pair: &PairEvidence) -> Vec<ProbeRow> {
    let (a, b) = (pair.a.0, pair.b.0);
    let slowdowns = pair.effects.iter().map(|effect| ProbeRow {
        a,
        b,
        what: effect.stress.to_string(),
        unit: "slowdown",
        mean: effect.slowdown.mean,
        low: effect.slowdown.low(),
        high: effect.slowdown.high(),
        runs: effect.slowdown.n,
    });
    let line = pair.round_trip_ns.map(|time| ProbeRow {
        a,
        b,
        what: "line".to_owned(),
        unit: "ns",
        mean: time.mean,
        low: time.low(),
        high: time.high(),
        runs: time.n,
    });
    slowdowns.chain(line).collect()
}

/// Pairs that are shown at most; csv and json have all.
const SHOWN: usize = 40;

pub(super) fn text(document: &ProbeDocument) -> String {
    let mut text = format!("{}, {:.1} s\n", document.source(), document.seconds);
    if !document.evidence.is_empty() {
        text +=
            "slowdown of two copies of a kernel, with its 95 % interval; line: there and back\n\n";
        text += &table(document);
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
    text += &differences_text(document);
    for note in &document.notes {
        text += &format!("note: {note}\n");
    }
    if let Some(file) = &document.file {
        text += &format!("written: {file}; use it by consort run --topology {file} -- CMD\n");
    }
    text
}

fn table(document: &ProbeDocument) -> String {
    let stresses = Stress::ALL.iter().map(ToString::to_string);
    let numbers = stresses.chain(["line ns".to_owned()]);
    let numbers = numbers.map(|text| head(text, true));
    let verdicts = ["core", "L2", "LLC"].map(|text| head(text.to_owned(), false));
    let heads: Vec<ColumnHead> = std::iter::once(head("PUs".to_owned(), false))
        .chain(numbers)
        .chain(verdicts)
        .collect();
    let pairs = document.evidence.iter().zip(&document.inference.pairs);
    let rows = pairs.take(SHOWN).map(|(pair, verdict)| {
        let mut row = vec![format!("{},{}", pair.a, pair.b)];
        row.extend(Stress::ALL.iter().map(|stress| cell(pair, *stress)));
        row.push(pair.round_trip_ns.map_or_else(dash, |time| {
            format!("{:.0} ±{:.0}", time.mean, time.ci95.unwrap_or(0.0))
        }));
        row.extend([&verdict.core, &verdict.l2, &verdict.llc].map(word));
        row
    });
    let mut text = output::grid(&heads, rows);
    let more = document.evidence.len().saturating_sub(SHOWN);
    if more > 0 {
        text += &format!("and {more} pairs more; --format csv has all\n");
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

fn dash() -> String {
    "-".to_owned()
}

fn cell(pair: &PairEvidence, stress: Stress) -> String {
    let effect = pair.effects.iter().find(|effect| effect.stress == stress);
    effect.map_or_else(dash, |effect| ratio(&effect.slowdown))
}

fn ratio(slowdown: &RatioInterval) -> String {
    let (mean, low, high) = (slowdown.mean, slowdown.low(), slowdown.high());
    match slowdown.factor95 {
        Some(_) => format!("{mean:.2} ({low:.2}-{high:.2})"),
        None => format!("{mean:.2} (1 run)"),
    }
}

fn word(verdict: &SharingVerdict) -> String {
    let word = match verdict.sharing {
        SharingAnswer::Shared => "shared",
        SharingAnswer::Apart => "apart",
        SharingAnswer::Unclear => return "cannot tell".to_owned(),
    };
    match verdict.confidence {
        Some(confidence) => format!("{word} {}", percent(confidence)),
        None => word.to_owned(),
    }
}

/// Never more than what an approximation can promise.
fn percent(confidence: f64) -> String {
    if confidence > 0.999 {
        ">99.9%".to_owned()
    } else {
        format!("{:.1}%", 100.0 * confidence)
    }
}

fn groups(level: &SharingLevel) -> String {
    let group = |pus: &PuSet, confidence: Option<f64>| match confidence {
        Some(confidence) => format!("{{{pus}}} {}", percent(confidence)),
        None => format!("{{{pus}}}"),
    };
    let groups = level.groups.iter().map(|g| group(&g.pus, g.confidence));
    let unclear =
        (!level.undecided.is_empty()).then(|| format!("cannot tell for PUs {}", level.undecided));
    groups.chain(unclear).collect::<Vec<_>>().join("  ")
}

fn differences_text(document: &ProbeDocument) -> String {
    if document.differences.is_empty() {
        return "nothing measured contradicts what the kernel tells\n".to_owned();
    }
    let lines = document.differences.iter();
    lines.map(|line| format!("differs: {line}\n")).collect()
}

/// The head of the written file: the reasons for its groups, and the notes.
pub(super) fn preamble(document: &ProbeDocument) -> String {
    let mut lines = vec![
        "Which PUs share what, for --topology of consort run and consort machine.".to_owned(),
        "PUs that are not named keep what the kernel tells.".to_owned(),
    ];
    let pairs = document.inference.pairs.iter();
    let decided = pairs.filter(|pair| pair.core.sharing == SharingAnswer::Shared);
    lines.extend(decided.map(|pair| format!("{},{}: {}", pair.a, pair.b, pair.core.why)));
    lines.extend(document.notes.iter().map(|note| format!("note: {note}")));
    lines.iter().map(|line| format!("# {line}\n")).collect()
}
