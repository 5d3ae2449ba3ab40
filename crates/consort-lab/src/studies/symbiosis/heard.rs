//! Facts of decisions: disadvantages that were learnt of each core, and the time that threads were
//! measured alone.

use consort_core::plan::{Decision, Placement};
use consort_core::policies::CORE_DISADVANTAGE;
use consort_experiment::DecisionListener;
use consort_sim::chip::Chip;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// Facts heard in a run.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::studies) struct DecisionFacts {
    /// The last disadvantage that was told of each core; none where none was.
    pub learnt: Vec<Option<f64>>,
    /// Time of the quanta in which threads were alone: s, or as a share of the run, 0 to 1, once
    /// it is over.
    pub alone: f64,
}

impl DecisionFacts {
    /// A listener for a run on a chip, and what it has heard.
    pub(super) fn listen(chip: &Arc<Chip>) -> (Rc<RefCell<Self>>, DecisionListener) {
        let heard = Self {
            learnt: vec![None; chip.domains().cores],
            alone: 0.0,
        };
        let heard = Rc::new(RefCell::new(heard));
        let (here, chip) = (Rc::clone(&heard), Arc::clone(chip));
        let listener = move |decision: &Decision| here.borrow_mut().hear(decision, &chip);
        (heard, Box::new(listener))
    }

    /// Takes a decision's facts. Quanta of another length are those in which `symbiotic` measures
    /// alone.
    fn hear(&mut self, decision: &Decision, chip: &Chip) {
        self.alone += decision.quantum_ns.unwrap_or(0) as f64 * 1e-9;
        for (thread, reason) in &decision.report.threads {
            let mut facts = reason.facts.iter();
            let reported = facts.find(|fact| fact.name == CORE_DISADVANTAGE);
            let at = match decision.placements.get(thread) {
                Some(Placement::Restricted(pus)) => pus.first(),
                _ => None,
            };
            let core = at.and_then(|pu| chip.topology().core_of(pu));
            if let Some((core, reported)) = core.zip(reported) {
                self.learnt[core] = Some(reported.value);
            }
        }
    }

    /// Ends the account of a run of so many seconds.
    pub(super) fn over(mut self, run_s: f64) -> Self {
        self.alone /= run_s;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::super::chip;
    use super::*;
    use consort_core::plan::{Fact, Reason};
    use consort_core::{PuId, ThreadId};

    #[test]
    fn what_is_told_of_a_pu_is_of_its_core() {
        let chip = chip(4).unwrap();
        let (heard, mut listener) = DecisionFacts::listen(&chip);
        let mut decision = Decision {
            quantum_ns: Some(500_000_000),
            ..Decision::default()
        };
        let thread = ThreadId {
            pid: 1,
            tid: 1,
            start_ticks: 0,
        };
        let reason = Reason {
            considered: String::new(),
            chosen: String::new(),
            facts: vec![Fact {
                name: CORE_DISADVANTAGE.into(),
                value: 0.25,
                unit: "".into(),
            }],
        };
        decision.place(thread, Placement::Restricted(PuId(5).into()), reason);
        listener(&decision);
        listener(&Decision::default());
        let heard = heard.borrow().clone().over(2.0);
        assert_eq!(heard.learnt, [None, None, Some(0.25), None]);
        assert_eq!(heard.alone, 0.25);
    }
}
