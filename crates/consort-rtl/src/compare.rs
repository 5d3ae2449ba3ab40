//! A unit beside its policy, step by step.

use crate::cycle::{CycleInputs, CycleOutputs};
use crate::error::RtlError;
use crate::model::RtlModel;
use crate::reference_policy::{ElapsedCycles, ReferencePolicy, Swaps};
use crate::unit_parameters::{UnitParameters, UnitPolicy};
use std::fmt;

/// Extent of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ComparisonSummary {
    /// Cycles of the unit.
    pub cycles: u64,
    /// Quanta that ended.
    pub quanta: u64,
    /// Exchanges, the same in both.
    pub swaps: u64,
    /// Cycles in which the policy was called.
    pub requested: u64,
    /// Longest time from the end of a quantum to the decision in cycles, where nothing came between.
    pub longest_decision: u64,
}

impl fmt::Display for ComparisonSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (quanta, cycles, requested) = (self.quanta, self.cycles, self.requested);
        let swaps = self.swaps;
        write!(f, "{quanta} quanta, {cycles} cycles, ")?;
        write!(
            f,
            "policy asked in {requested}: {swaps} exchanges, all the same"
        )?;
        if self.longest_decision > 0 {
            write!(f, "; decision within {} cycles", self.longest_decision)?;
        }
        Ok(())
    }
}

/// A unit and its policy, which have seen the same so far.
pub(crate) struct LockstepPair<'a> {
    setting: UnitParameters,
    model: &'a mut RtlModel,
    pub(crate) reference: ReferencePolicy,
    /// Exchanges under way.
    pub(crate) standing: Swaps,
    pub(crate) summary: ComparisonSummary,
    /// Inputs that the policy has seen and the unit not yet, with the exchanges then under way.
    ahead: Vec<(CycleInputs, Swaps)>,
}

/// Cycles by which a policy may be ahead: replies to so many fit into a pipe.
const AHEAD: usize = 64;

impl<'a> LockstepPair<'a> {
    pub(crate) fn new(setting: &UnitParameters, model: &'a mut RtlModel) -> Result<Self, RtlError> {
        Ok(Self {
            setting: *setting,
            model,
            reference: ReferencePolicy::new(setting)?,
            standing: vec![None; setting.groups],
            summary: ComparisonSummary::default(),
            ahead: Vec::new(),
        })
    }

    /// Lets both see the same cycles.
    ///
    /// # Errors
    /// [`RtlError::Differs`] where they ask for different exchanges.
    pub(crate) fn step(&mut self, inputs: &CycleInputs) -> Result<CycleOutputs, RtlError> {
        let outputs = self.model.step(inputs)?;
        let held = self.find_blocked_groups(&outputs)?;
        let passed = ElapsedCycles {
            cycles: outputs.cycles,
            taken: outputs.taken.contains(&true),
            held: &held,
        };
        self.step_policy(inputs, passed);
        self.check(inputs, &outputs, &self.standing)?;
        Ok(outputs)
    }

    /// Lets the policy see a cycle, and the unit some cycles later. Only for units that do
    /// everything in the cycle in which they are asked (hrrs, kuths), so that the policy needs no
    /// answer of theirs.
    ///
    /// # Errors
    /// As [`LockstepPair::step`].
    pub(crate) fn run_ahead(&mut self, inputs: CycleInputs) -> Result<(), RtlError> {
        let held: Vec<bool> = self.standing.iter().map(Option::is_some).collect();
        let passed = ElapsedCycles {
            cycles: 1,
            taken: inputs.tick,
            held: &held,
        };
        self.step_policy(&inputs, passed);
        self.model.send(&inputs)?;
        self.ahead.push((inputs, self.standing.clone()));
        if self.ahead.len() == AHEAD {
            return self.catch_up();
        }
        Ok(())
    }

    /// Hears the answers of the unit to all cycles that it is behind.
    ///
    /// # Errors
    /// As [`LockstepPair::step`].
    pub(crate) fn catch_up(&mut self) -> Result<(), RtlError> {
        for (inputs, standing) in std::mem::take(&mut self.ahead) {
            let outputs = self.model.receive()?;
            self.check(&inputs, &outputs, &standing)?;
        }
        Ok(())
    }

    /// Asks the policy, and notes the exchanges that end and begin.
    fn step_policy(&mut self, inputs: &CycleInputs, passed: ElapsedCycles<'_>) {
        self.summary.cycles += u64::from(passed.cycles);
        self.summary.requested += 1 + u64::from(passed.cycles > 1);
        self.summary.quanta += u64::from(passed.taken);
        let swaps = self.reference.step(inputs, passed);
        for (group, swap) in swaps.iter().enumerate() {
            if inputs.ack[group] {
                self.standing[group] = None;
            }
            if swap.is_some() {
                self.standing[group] = *swap;
                self.summary.swaps += 1;
            }
        }
    }

    /// Groups in which no logical core can be exchanged in the last cycle.
    fn find_blocked_groups(&self, outputs: &CycleOutputs) -> Result<Vec<bool>, RtlError> {
        let mut held = Vec::new();
        for (decided, standing) in outputs.decided.iter().zip(&self.standing) {
            let decides = match self.setting.policy {
                UnitPolicy::Hrrs | UnitPolicy::Kuths => standing.is_none(),
                UnitPolicy::Tcs => *decided,
            };
            if decides && standing.is_some() {
                return Err(
                    self.difference_error("it decides while an exchange is under way".to_owned())
                );
            }
            held.push(!decides);
        }
        Ok(held)
    }

    fn check(
        &self,
        inputs: &CycleInputs,
        outputs: &CycleOutputs,
        standing: &[Option<(usize, usize)>],
    ) -> Result<(), RtlError> {
        if outputs.asks != standing {
            let (unit, policy) = (&outputs.asks, standing);
            return Err(self.difference_error(format!(
                "the unit asks for {unit:?}, the policy for {policy:?}, after {inputs:?}"
            )));
        }
        let saves = |core: usize| {
            let in_it = |swap: &(usize, usize)| swap.0 == core || swap.1 == core;
            standing.iter().flatten().any(in_it)
        };
        let expected: Vec<bool> = (0..self.setting.cores).map(saves).collect();
        if outputs.saves != expected {
            let saves = &outputs.saves;
            return Err(self.difference_error(format!(
                "registers are saved on {saves:?}, not on {expected:?}"
            )));
        }
        let loads = outputs.loads.iter().filter(|&&on| on).count();
        let acks = inputs.ack.iter().filter(|&&on| on).count();
        if outputs.cycles == 1 && loads != 2 * acks {
            return Err(self.difference_error(format!(
                "registers are loaded on {loads} cores after {acks} exchanges"
            )));
        }
        Ok(())
    }

    pub(crate) fn difference_error(&self, what: String) -> RtlError {
        RtlError::Differs {
            setting: self.setting.to_string(),
            cycle: self.summary.cycles,
            what,
        }
    }
}
