//! The JSON document of `consort machine probe`. Keys are a contract: add, never rename.

use consort_core::sharing::{Inference, PairEvidence, differences, infer};
use consort_core::{PuId, PuSet};
use consort_host::probe::{ProbeBudget, ProbeMeasurement, ProbeRuns};
use consort_linux::live::Host;
use serde::Serialize;
use std::path::Path;

#[derive(Serialize)]
pub(super) struct ProbeDocument {
    pub(super) machine: String,
    pub(super) hypervisor: Option<String>,
    pub(super) pus: PuSet,
    pub(super) pairs_total: usize,
    /// Pairs whose line transfers were measured.
    pub(super) pairs_timed: usize,
    /// Pairs on which kernels were run.
    pub(super) pairs_measured: usize,
    /// Pairs without kernels, at most a hundred.
    pub(super) left_out: Vec<(PuId, PuId)>,
    pub(super) runs: usize,
    pub(super) slice_ms: u64,
    pub(super) seconds: f64,
    /// Runs that do not count, because other programs had the PUs.
    pub(super) disturbed_runs: usize,
    pub(super) evidence: Vec<PairEvidence>,
    #[serde(flatten)]
    pub(super) inference: Inference,
    /// Contradictions between the measurements and the kernel, one sentence per group.
    pub(super) differences: Vec<String>,
    pub(super) notes: Vec<String>,
    pub(super) file: Option<String>,
}

/// Left-out pairs that are listed.
const LISTED: usize = 100;

impl ProbeDocument {
    pub(super) fn new(
        host: &Host,
        pus: &PuSet,
        budget: &ProbeBudget,
        measured: &ProbeMeasurement,
        file: Option<&Path>,
    ) -> Self {
        // Over all usable PUs, not only the chosen ones: a PU is alone on its core only if it was
        // compared with every other.
        let inference = infer(host.discovery.topology.pus(), &measured.evidence);
        let hypervisor = host.discovery.hypervisor.as_ref();
        Self {
            machine: host.offers().machine().to_owned(),
            hypervisor: hypervisor.map(|h| h.name.clone()),
            pus: pus.clone(),
            pairs_total: budget.pairs,
            pairs_timed: measured.evidence.len(),
            pairs_measured: pairs_with_kernels(&measured.evidence).count(),
            left_out: pairs_without_kernels(pus, &measured.evidence),
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
    pub(super) fn source(&self) -> String {
        format!(
            "consort machine probe on {}: {} of {} pairs of PUs {}, up to {} runs each of 5 \
             kernels in slices of {} ms",
            self.machine, self.pairs_measured, self.pairs_total, self.pus, self.runs, self.slice_ms
        )
    }
}

fn pairs_with_kernels(evidence: &[PairEvidence]) -> impl Iterator<Item = &PairEvidence> {
    evidence.iter().filter(|pair| !pair.effects.is_empty())
}

fn pairs_without_kernels(pus: &PuSet, evidence: &[PairEvidence]) -> Vec<(PuId, PuId)> {
    let done: std::collections::BTreeSet<(PuId, PuId)> =
        pairs_with_kernels(evidence).map(|p| (p.a, p.b)).collect();
    let pairs = pus
        .iter()
        .flat_map(|a| pus.iter().map(move |b| (a, b)))
        .filter(|(a, b)| a < b);
    pairs
        .filter(|pair| !done.contains(pair))
        .take(LISTED)
        .collect()
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
            "PU {pus} is the only one to be probed, so there is nothing to compare"
        ));
    }
    if budget.kernels < budget.pairs {
        notes.push(format!(
            "the time was enough for {} of {} pairs, those between which lines travel fastest; \
             --seconds gives more, --pus chooses",
            budget.kernels, budget.pairs
        ));
    }
    let ProbeRuns { good, disturbed } = measured.runs;
    if disturbed > good {
        notes.push(format!(
            "others had the PUs: {disturbed} of {} runs do not count; repeat it on a quiet machine",
            good + disturbed
        ));
    }
    if !inference.cores.undecided.is_empty() {
        notes.push(format!(
            "it cannot be told what cores PUs {} belong to",
            inference.cores.undecided
        ));
    }
    if host.discovery.hypervisor.is_some() {
        notes.push(
            "this is a virtual machine: the result holds while the hypervisor leaves its PUs where \
             they are"
                .to_owned(),
        );
    }
    notes
}
