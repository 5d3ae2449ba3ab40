//! The coefficients of one component, and the forward model at one number of threads per core.

use crate::model::ModelError;

/// Most threads per core of a model: those of POWER8.
pub const MAX_WAYS: u32 = 8;

/// Largest magnitude of a coefficient. Published ones stay below 2; the bound
/// keeps every prediction finite.
pub const MAX_PARAMETER: f64 = 1e3;

/// Growth of one component of a thread's stack next to co-runners (section 3.1 of
/// the paper): `alpha + beta c + gamma s + delta c s`, where `c` is the thread's
/// own share and `s` the sum of its co-runners' shares of the component, all in
/// shares of ST cycles. The coefficients have no unit.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ComponentParameters {
    /// Part that sharing adds to every thread.
    pub alpha: f64,
    /// Factor of the thread's own share.
    pub beta: f64,
    /// Factor of the co-runners' shares.
    pub gamma: f64,
    /// Factor of the product of both.
    pub delta: f64,
}

impl ComponentParameters {
    /// The component next to co-runners, in ST cycles; below 0 if `alpha` is negative and the
    /// shares are small.
    pub fn predict_component(&self, own: f64, others_sum: f64) -> f64 {
        self.alpha + self.beta * own + self.gamma * others_sum + self.delta * own * others_sum
    }

    /// The coefficients by name, in the order of the formula.
    pub fn named_values(&self) -> [(&'static str, f64); 4] {
        [
            ("alpha", self.alpha),
            ("beta", self.beta),
            ("gamma", self.gamma),
            ("delta", self.delta),
        ]
    }

    /// Returns true if the component occurs but depends on no share. Training produces that if no
    /// thread has the component alone; its shares alone are then 0.
    pub fn is_never_alone(&self) -> bool {
        [self.beta, self.gamma, self.delta] == [0.0; 3] && !self.is_absent()
    }

    /// Returns true if the component never occurred in training.
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}

/// The parameters of all components at one SMT level.
#[doc(alias = "forward model")]
#[derive(Clone, Debug, PartialEq)]
pub struct LevelParameters {
    ways: u32,
    parameters: Vec<ComponentParameters>,
}

impl LevelParameters {
    /// Returns a level for `ways` threads per core, with one set of parameters per component in the
    /// order of the model's components.
    ///
    /// # Errors
    /// If the ways are outside 2 to [`MAX_WAYS`], there is no component, or a coefficient is not
    /// within [`MAX_PARAMETER`] of 0.
    pub fn new(ways: u32, parameters: Vec<ComponentParameters>) -> Result<Self, ModelError> {
        if !(2..=MAX_WAYS).contains(&ways) {
            return Err(ModelError::Ways { ways });
        }
        if parameters.is_empty() {
            return Err(ModelError::NoComponents);
        }
        for (component, parameters) in parameters.iter().enumerate() {
            for (name, value) in parameters.named_values() {
                if !(-MAX_PARAMETER..=MAX_PARAMETER).contains(&value) {
                    return Err(ModelError::Parameter {
                        component,
                        name,
                        value,
                    });
                }
            }
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

    /// Predicts the stack of a thread next to co-runners: writes each component to `out`, in ST
    /// cycles of the thread. `own` is its ST stack, `others_sum` the sum of the ST stacks of its
    /// co-runners. Shares are clamped to their range, NaN to 0. Entries beyond the shortest slice
    /// stay as they are.
    pub fn predict_stack(&self, own: &[f64], others_sum: &[f64], out: &mut [f64]) {
        let predicted = self.predict(own, others_sum);
        for (out, value) in out.iter_mut().zip(predicted) {
            *out = value;
        }
    }

    /// Time together over time alone: the sum of the components together, and at least 1. A model
    /// that predicts less is outside the range of its training, since no thread gains from sharing
    /// a core.
    pub fn slowdown(&self, own: &[f64], others_sum: &[f64]) -> f64 {
        self.raw_slowdown(own, others_sum).max(1.0)
    }

    /// The sum of the components together, even if it is below 1.
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

/// Clamps a share to 0 and `most`; NaN becomes 0.
pub(super) fn share(value: f64, most: f64) -> f64 {
    if value.is_nan() {
        return 0.0;
    }
    value.clamp(0.0, most)
}
