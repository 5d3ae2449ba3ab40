//! The guidelines at work: what is known is priced, the best mappings are tried, the best stays.

use super::assignment::Assignment;
use super::candidate::Candidate;
use super::characteristics::{Characteristic, Characteristics};
use super::crowd::{Crowd, Members, Signature};
use super::learnt::sharing_and_excess;
use super::levels::Scene;
use super::memory::Memory;
use super::report;
use super::shape::Shape;
use super::stage::{Settled, Stage};
use super::trials::{Outcome, Trials};
use crate::plan::Decision;
use crate::policy::View;
use crate::signal::Signal;
use crate::topology::Topology;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Quanta of the operating system's mapping before the first choice: counters that take turns
/// need some to tell everything.
const LOOKING: u32 = 4;
/// Quanta that another load must last before it counts.
const PATIENCE: u32 = 3;

/// Length of quanta until a mapping is chosen, ns: trials are to cost little. It also tells the
/// control loop that they are for measuring.
const TRIAL_NS: u64 = 50_000_000;

/// State of the guidelines for the present load.
pub(super) struct Guidelines {
    members: Members,
    /// Characteristics by name, so that a program that is started again is known.
    known: BTreeMap<Arc<str>, Characteristics>,
    signature: Signature,
    /// Quanta in succession in which another load ran.
    strange: u32,
    stage: Stage,
    memory: Memory,
    assignment: Option<Assignment>,
    /// The choices level by level, told in sentences when they were made.
    said: Vec<String>,
}

impl Default for Guidelines {
    fn default() -> Self {
        Self {
            members: Members::default(),
            known: BTreeMap::new(),
            signature: Signature::new(),
            strange: 0,
            stage: Stage::Looking(0),
            memory: Memory::default(),
            assignment: None,
            said: Vec::new(),
        }
    }
}

impl Guidelines {
    pub(super) fn decide(&mut self, view: View<'_>) -> Decision {
        let mut decision = Decision::default();
        let crowd = self.members.follow(view);
        for (thread, why) in &crowd.left {
            report::leave(thread, why, &mut decision);
        }
        if crowd.groups.is_empty() || view.topology.pus().len() < 2 {
            let note = "there is nothing to place, or one PU only to place it on";
            decision.report.notes.push(note.to_owned());
            return decision;
        }
        self.characterise(&crowd);
        self.follow(view, &crowd);
        self.place(view.topology, &crowd, &mut decision);
        decision
    }

    /// Takes the characteristics of the last quantum in.
    fn characterise(&mut self, crowd: &Crowd<'_>) {
        let free = self.stage.candidate() == Candidate::Os;
        for group in &crowd.groups {
            let last = Characteristics::of(group, free);
            let known = self.known.entry(Arc::clone(&group.name)).or_default();
            known.update(&last);
        }
    }

    fn known(&self, crowd: &Crowd<'_>) -> Vec<Characteristics> {
        let of = |name| self.known.get(name).cloned().unwrap_or_default();
        crowd.groups.iter().map(|g| of(&g.name)).collect()
    }

    /// Notices another load, and goes on with the present one.
    fn follow(&mut self, view: View<'_>, crowd: &Crowd<'_>) {
        let signature = crowd.signature();
        if signature == self.signature {
            self.strange = 0;
            self.advance(view, crowd);
            return;
        }
        self.strange += 1;
        if let Stage::Trying(trials) = &mut self.stage {
            trials.interrupt();
        }
        if self.signature.is_empty() || self.strange >= PATIENCE {
            self.begin(signature);
        }
    }

    /// Begins with a load. One that is known has its mapping at once.
    fn begin(&mut self, signature: Signature) {
        self.strange = 0;
        self.said.clear();
        self.stage = match self.memory.find(&signature) {
            Some(remembered) => Stage::Settled(Box::new(Settled::of(remembered.clone()))),
            None => Stage::Looking(0),
        };
        let names = signature.iter().map(|(name, _)| name);
        let names: Vec<&Arc<str>> = names.collect();
        self.known.retain(|name, _| names.contains(&name));
        self.signature = signature;
    }

    fn advance(&mut self, view: View<'_>, crowd: &Crowd<'_>) {
        match &mut self.stage {
            Stage::Looking(quanta) => {
                *quanta += 1;
                if *quanta >= LOOKING {
                    self.choose(view.topology, crowd);
                }
            }
            Stage::Trying(trials) => {
                if let Some(outcome) = trials.note(crowd, view.observation.interval_ns) {
                    self.conclude(view.topology, crowd, outcome);
                }
            }
            Stage::Settled(settled) => {
                if settled.is_over(crowd) {
                    self.stage = Stage::Looking(0);
                }
            }
        }
    }

    /// Chooses the mappings to try: those that the levels choose, and beside them those of the
    /// source, where progress can be measured; else the levels' choice is taken untried.
    fn choose(&mut self, topology: &Topology, crowd: &Crowd<'_>) {
        let (known, counts) = (self.known(crowd), crowd.counts());
        let now = Shape::expected(topology, &counts);
        let scene = Scene {
            topology,
            counts: &counts,
            known: &known,
            now: &now,
        };
        let levels = scene.levels();
        self.said = report::levels(&levels, &known);
        let measurable = |g: &super::crowd::Group<'_>| g.sum(Signal::Instructions).is_some();
        if !crowd.groups.iter().all(measurable) {
            self.stage = Stage::Settled(Box::new(Settled::unmeasured(&scene, &levels)));
            return;
        }
        let best = levels.last().map(|level| level.best().candidate);
        let candidates = best.into_iter().chain(Candidate::named());
        let candidates = unlike(&scene, candidates);
        let trials = Trials::new(&candidates, counts.len());
        self.stage = Stage::Trying(Box::new(trials));
    }

    /// Keeps an outcome, and learns from it about the programs.
    fn conclude(&mut self, topology: &Topology, crowd: &Crowd<'_>, outcome: Outcome) {
        self.learn(crowd);
        let (known, counts) = (self.known(crowd), crowd.counts());
        let places = outcome.chosen.places(topology, &counts, &known);
        let now = outcome.chosen.shape(topology, &counts, places.as_deref());
        let scene = Scene {
            topology,
            counts: &counts,
            known: &known,
            now: &now,
        };
        self.said = report::levels(&scene.levels(), &known);
        let remembered = self.memory.keep(&self.signature, outcome);
        self.stage = Stage::Settled(Box::new(Settled::of(remembered)));
    }

    fn learn(&mut self, crowd: &Crowd<'_>) {
        let Stage::Trying(trials) = &self.stage else {
            return;
        };
        for (at, group) in crowd.groups.iter().enumerate() {
            let seen = trials
                .seen()
                .filter_map(|(c, seen)| Some((c, seen.get(at)?)));
            let (sharing, excess) = sharing_and_excess(seen);
            if let Some(known) = self.known.get_mut(&group.name) {
                known.set(Characteristic::Sharing, sharing);
                known.set(Characteristic::Excess, excess);
            }
        }
    }

    fn place(&mut self, topology: &Topology, crowd: &Crowd<'_>, decision: &mut Decision) {
        let candidate = self.stage.candidate();
        let before = self.assignment.take();
        let known = self.known(crowd);
        let assignment = match before {
            Some(kept) if kept.is_of(candidate, topology, crowd) => kept,
            other => Assignment::new(candidate, topology, crowd, &known, other.as_ref()),
        };
        if !matches!(self.stage, Stage::Settled(_)) {
            decision.quantum_ns = Some(TRIAL_NS);
        }
        report::place(crowd, candidate, &known, &assignment, decision);
        decision.report.notes.push(report::stage(&self.stage));
        decision.report.notes.extend(self.said.iter().cloned());
        self.assignment = Some(assignment);
    }
}

/// Keeps, of candidates that differ in nothing but the names of parts, the first.
fn unlike(scene: &Scene<'_>, candidates: impl Iterator<Item = Candidate>) -> Vec<Candidate> {
    let mut kept: Vec<(Candidate, Shape)> = Vec::new();
    for candidate in candidates {
        let shape = scene.weigh(candidate).shape.canonical();
        if kept.iter().all(|(_, known)| *known != shape) {
            kept.push((candidate, shape));
        }
    }
    kept.into_iter().map(|(candidate, _)| candidate).collect()
}
