//! X1: the umbrella policy against each source's own policy on each source's own ground.
//!
//! Keys: see [`super::umbrella`].

use super::umbrella;
use crate::context::Context;
use crate::study::{Study, StudyError, StudyInfo, StudyOutput};

/// The study.
pub(super) struct X1;

static INFO: StudyInfo = StudyInfo {
    id: "X1",
    title: "holistic against the policies that were made for one ground each",
    source: "Consort; the grounds are those of the sources of chapters 5 to 9",
    section: "umbrella policy",
    original: "Each source compares its policy with the system's scheduler, and with others of its \
               kind, on its own machine and programs.",
    differs: "One machine and workload stands for each ground, as in studies W3, W4, S4, A2, A4, H4 \
              and M14, with fewer runs. The policy that did best by what the ground's source is \
              after is set beside holistic run by run, with the same seeds; it is told by the same \
              runs, which favours it. holistic is told the aim: where it is the time until all are done, by \
              objective=fairness. Programs start again until all have done the work of a set \
              time alone. On the Xeon the gang stands for the system's scheduler, serial sections \
              come in frames, and the quick scale leaves the ground out, since a policy takes many \
              quanta of 2 s to know four programs.",
    default_seed: 41,
    full_seconds_hint: 100,
};

impl Study for X1 {
    fn info(&self) -> &StudyInfo {
        &INFO
    }

    fn mechanism(&self) -> &'static [&'static str] {
        &MECHANISM
    }

    fn run(&self, context: &Context<'_>) -> Result<StudyOutput, StudyError> {
        umbrella::run(context)
    }
}

const MECHANISM: [&str; 3] = [
    "On Bulldozer and POWER7 no model of who disturbs whom is there, so holistic asks workover, \
     which promises most of what it can know. Here the FPU is far from full and copies of a program \
     share their text, so that its inverse, aggregate, has more throughput, and workover more \
     evenness. To find that out by trying, holistic would have to tell apart 2 percent where \
     programs vary by 10 from one quantum to the next.",
    "On the Core 2 holistic starts from nothing and tries mappings for up to four seconds, and what \
     it tries beside the best one is lost. With bodytrack and fluidanimate linux, which is no \
     single-purpose policy, is better than every mapping, and trying them costs 7 percent. Both \
     shrink with the length of programs.",
    "Where one policy knows the ground, on POWER8, with large and small cores and on the Xeon, \
     holistic does what that policy does, but for the quanta until it knows what runs.",
];
