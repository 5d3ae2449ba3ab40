//! The guidelines at work: mappings are priced, the best are tried, and the best of those stays.

use super::active_programs::{ActivePrograms, LoadSignature, ParticipationHistory};
use super::assignment::Assignment;
use super::candidate::MappingCandidate;
use super::characteristics::{Characteristic, ProgramCharacteristics};
use super::levels::MappingContext;
use super::load_stage::{GuidelineStage, LoadHistory, SettledMapping};
use super::report;
use super::shape::MappingShape;
use super::trials::{MappingTrials, TrialOutcome, sharing_and_excess};
use crate::plan::{Alternative, Decision};
use crate::policy::View;
use crate::signal::Signal;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Quanta of the operating system's mapping before the first choice: counters that take turns
/// need some to count everything.
const LOOKING: u32 = 4;
/// Quanta that another load must last before it counts.
const PATIENCE: u32 = 3;

/// Length of quanta until a mapping is chosen, ns: short, so that trials cost little. It also shows
/// the control loop that they are for measuring.
const TRIAL_NS: u64 = 50_000_000;

/// State of the guidelines for the present load.
pub(super) struct Guidelines {
    members: ParticipationHistory,
    /// Characteristics by name, so that a program that is started again is known.
    known: BTreeMap<Arc<str>, ProgramCharacteristics>,
    signature: LoadSignature,
    /// Quanta in succession in which another load ran.
    strange: u32,
    stage: GuidelineStage,
    memory: LoadHistory,
    assignment: Option<Assignment>,
    /// The choices level by level, as sentences.
    said: Vec<String>,
    /// The mappings that they compared.
    compared: Vec<Alternative>,
}

impl Default for Guidelines {
    fn default() -> Self {
        Self {
            members: ParticipationHistory::default(),
            known: BTreeMap::new(),
            signature: LoadSignature::new(),
            strange: 0,
            stage: GuidelineStage::Looking(0),
            memory: LoadHistory::default(),
            assignment: None,
            said: Vec::new(),
            compared: Vec::new(),
        }
    }
}

impl Guidelines {
    pub(super) fn decide(&mut self, view: View<'_>) -> Decision {
        let mut decision = Decision::default();
        let crowd = self.members.collect_programs(view);
        for (thread, why) in &crowd.left {
            report::leave_to_os(thread, why, &mut decision);
        }
        if crowd.groups.is_empty() || view.topology.pus().len() < 2 {
            let note = "there is nothing to place, or one CPU only to place it on";
            decision.report.notes.push(note.to_owned());
            return decision;
        }
        let free = self.stage.candidate() == MappingCandidate::Os;
        for group in &crowd.groups {
            let last = ProgramCharacteristics::from_program(group, free);
            let known = self.known.entry(Arc::clone(&group.name)).or_default();
            known.update(&last);
        }
        self.track_load(view, &crowd);
        self.place_threads(view.topology, &crowd, &mut decision);
        decision
    }

    fn known_characteristics(&self, crowd: &ActivePrograms<'_>) -> Vec<ProgramCharacteristics> {
        let known = |name| self.known.get(name).cloned().unwrap_or_default();
        crowd.groups.iter().map(|g| known(&g.name)).collect()
    }

    /// Detects another load, or continues with the present one.
    fn track_load(&mut self, view: View<'_>, crowd: &ActivePrograms<'_>) {
        let signature = crowd.signature();
        if signature == self.signature {
            self.strange = 0;
            self.advance_stage(view, crowd);
            return;
        }
        self.strange += 1;
        if let GuidelineStage::Trying(trials) = &mut self.stage {
            trials.interrupt();
        }
        if self.signature.is_empty() || self.strange >= PATIENCE {
            self.begin_load(signature);
        }
    }

    /// Begins with a load. A known one gets its mapping at once.
    fn begin_load(&mut self, signature: LoadSignature) {
        self.strange = 0;
        self.said.clear();
        self.compared.clear();
        self.stage = match self.memory.find(&signature) {
            Some(known) => {
                let settled = SettledMapping::from_outcome(known.clone());
                GuidelineStage::Settled(Box::new(settled))
            }
            None => GuidelineStage::Looking(0),
        };
        self.known
            .retain(|name, _| signature.iter().any(|(present, _)| present == name));
        self.signature = signature;
    }

    fn advance_stage(&mut self, view: View<'_>, crowd: &ActivePrograms<'_>) {
        match &mut self.stage {
            GuidelineStage::Looking(quanta) => {
                *quanta += 1;
                if *quanta >= LOOKING {
                    self.choose_candidates(view.topology, crowd);
                }
            }
            GuidelineStage::Trying(trials) => {
                if let Some(outcome) = trials.record_quantum(crowd, view.observation.interval_ns) {
                    self.settle_outcome(view.topology, crowd, outcome);
                }
            }
            GuidelineStage::Settled(settled) => {
                if settled.record_quantum(crowd) {
                    self.stage = GuidelineStage::Looking(0);
                }
            }
        }
    }

    /// Chooses the mappings to try: the choice of the levels, and the source's. If progress cannot
    /// be measured, the choice of the levels is taken untried.
    fn choose_candidates(&mut self, topology: &Topology, crowd: &ActivePrograms<'_>) {
        let (known, counts) = (self.known_characteristics(crowd), crowd.thread_counts());
        let now = MappingShape::from_even_spread(topology, &counts);
        let scene = MappingContext {
            topology,
            counts: &counts,
            known: &known,
            now: &now,
        };
        let levels = scene.choose_levels();
        self.said = report::describe_levels(&levels, &known);
        self.compared = report::compared_mappings(&levels);
        let mut groups = crowd.groups.iter();
        if !groups.all(|group| group.sum(Signal::Instructions).is_some()) {
            let settled = SettledMapping::from_prediction(&scene, &levels);
            self.stage = GuidelineStage::Settled(Box::new(settled));
            return;
        }
        let best = levels.last().map(|level| level.best().candidate);
        // Of candidates that differ only in the names of parts, the first is tried.
        let mut distinct: Vec<(MappingCandidate, MappingShape)> = Vec::new();
        for candidate in best.into_iter().chain(MappingCandidate::source_mappings()) {
            let shape = scene.price_candidate(candidate).shape.into_canonical();
            if distinct.iter().all(|(_, other)| *other != shape) {
                distinct.push((candidate, shape));
            }
        }
        let candidates: Vec<MappingCandidate> = distinct.into_iter().map(|(c, _)| c).collect();
        let trials = MappingTrials::new(&candidates, counts.len());
        self.stage = GuidelineStage::Trying(Box::new(trials));
    }

    /// Stores an outcome, and learns from it about the programs.
    fn settle_outcome(
        &mut self,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
        outcome: TrialOutcome,
    ) {
        self.learn_sharing(crowd);
        let (known, counts) = (self.known_characteristics(crowd), crowd.thread_counts());
        let places = outcome.chosen.places(topology, &counts, &known);
        let now = outcome.chosen.shape(topology, &counts, places.as_deref());
        let scene = MappingContext {
            topology,
            counts: &counts,
            known: &known,
            now: &now,
        };
        let levels = scene.choose_levels();
        self.said = report::describe_levels(&levels, &known);
        self.compared = report::compared_mappings(&levels);
        let stored = self.memory.store_outcome(&self.signature, outcome);
        self.stage = GuidelineStage::Settled(Box::new(SettledMapping::from_outcome(stored)));
    }

    fn learn_sharing(&mut self, crowd: &ActivePrograms<'_>) {
        let GuidelineStage::Trying(trials) = &self.stage else {
            return;
        };
        for (at, group) in crowd.groups.iter().enumerate() {
            let seen = trials.traffic_rates();
            let seen = seen.filter_map(|(c, programs)| Some((c, programs.get(at)?)));
            let (sharing, excess) = sharing_and_excess(seen);
            if let Some(known) = self.known.get_mut(&group.name) {
                known.set(Characteristic::Sharing, sharing);
                known.set(Characteristic::Excess, excess);
            }
        }
    }

    fn place_threads(
        &mut self,
        topology: &Topology,
        crowd: &ActivePrograms<'_>,
        decision: &mut Decision,
    ) {
        let candidate = self.stage.candidate();
        let before = self.assignment.take();
        let known = self.known_characteristics(crowd);
        let assignment = match before {
            Some(kept) if kept.is_current(candidate, topology, crowd) => kept,
            other => Assignment::new(candidate, topology, crowd, &known, other.as_ref()),
        };
        if !matches!(self.stage, GuidelineStage::Settled(_)) {
            decision.quantum_ns = Some(TRIAL_NS);
        }
        report::place_threads(crowd, candidate, &known, &assignment, decision);
        if !self.compared.is_empty() {
            let members = crowd.groups.iter().flat_map(|group| &group.members);
            let compared = members.map(|thread| (thread.id, self.compared.clone()));
            decision.report.alternatives.extend(compared);
        }
        let notes = &mut decision.report.notes;
        notes.push(report::describe_stage(&self.stage));
        notes.extend(self.said.iter().cloned());
        self.assignment = Some(assignment);
    }
}
