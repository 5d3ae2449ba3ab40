//! The forward model at one number of threads per core.

use super::error::ModelError;
use super::parameters::{ComponentParameters, MAX_PARAMETER, MAX_WAYS};

/// The parameters of all components at one SMT level.
#[doc(alias = "forward model")]
#[derive(Clone, Debug, PartialEq)]
pub struct LevelParameters {
    ways: u32,
    parameters: Vec<ComponentParameters>,
}

impl LevelParameters {
    /// A level for `ways` threads per core, one set of parameters per component
    /// in the order of the model's components.
    ///
    /// # Errors
    /// Ways outside 2 to [`MAX_WAYS`], no component, or a coefficient that is not
    /// within [`MAX_PARAMETER`] of 0.
    pub fn new(ways: u32, parameters: Vec<ComponentParameters>) -> Result<Self, ModelError> {
        if !(2..=MAX_WAYS).contains(&ways) {
            return Err(ModelError::Ways { ways });
        }
        if parameters.is_empty() {
            return Err(ModelError::NoComponents);
        }
        for (component, of_one) in parameters.iter().enumerate() {
            check(component, of_one)?;
        }
        Ok(Self { ways, parameters })
    }

    /// Threads per core.
    pub fn ways(&self) -> u32 {
        self.ways
    }

    /// The parameters, one set per component.
    pub fn parameters(&self) -> &[ComponentParameters] {
        &self.parameters
    }

    /// The stack of a thread next to co-runners: writes to `out` what becomes of
    /// each component, in ST cycles of the thread. `own` is its ST stack,
    /// `others_sum` the sum of the ST stacks of its co-runners. Shares are
    /// taken within their range, NaN for 0. Entries beyond the shortest slice stay as they are.
    pub fn predict_stack(&self, own: &[f64], others_sum: &[f64], out: &mut [f64]) {
        let predicted = self.predict(own, others_sum);
        for (out, value) in out.iter_mut().zip(predicted) {
            *out = value;
        }
    }

    /// Time together over time alone: the sum of the components together, and
    /// never below 1. A model that predicts less has left the range in which it
    /// was trained, since no thread gains from sharing a core.
    pub fn slowdown(&self, own: &[f64], others_sum: &[f64]) -> f64 {
        self.raw_slowdown(own, others_sum).max(1.0)
    }

    /// The sum of the components together, also where it is below 1.
    pub(super) fn raw_slowdown(&self, own: &[f64], others_sum: &[f64]) -> f64 {
        self.predict(own, others_sum).sum()
    }

    fn predict(&self, own: &[f64], others_sum: &[f64]) -> impl Iterator<Item = f64> {
        let most = f64::from(self.ways - 1);
        let shares = own.iter().zip(others_sum);
        self.parameters
            .iter()
            .zip(shares)
            .map(move |(p, (&own, &others))| {
                p.predict_component(share(own, 1.0), share(others, most))
            })
    }
}

/// A share as the model takes it: within 0 and `most`, and 0 where it is not a
/// number.
pub(super) fn share(value: f64, most: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    value.clamp(0.0, most)
}

fn check(component: usize, parameters: &ComponentParameters) -> Result<(), ModelError> {
    for (name, value) in parameters.named_values() {
        if !(-MAX_PARAMETER..=MAX_PARAMETER).contains(&value) {
            return Err(ModelError::Parameter {
                component,
                name,
                value,
            });
        }
    }
    Ok(())
}
