//! The four coefficients of one component, and the bounds of a model.

/// Most threads per core that a model may be for: those of POWER8.
pub const MAX_WAYS: u32 = 8;

/// Largest magnitude of a coefficient. Published ones stay below 2; the bound
/// keeps every prediction finite.
pub const MAX_PARAMETER: f64 = 1e3;

/// Growth of one component of a thread's stack next to co-runners (section 3 of
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
    /// The component next to co-runners, in ST cycles; below 0 where `alpha` is
    /// negative and the shares are small.
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

    /// Says whether the component occurs but depends on no share, as training makes it where no
    /// thread has it alone; its shares alone are then 0.
    pub fn is_never_alone(&self) -> bool {
        [self.beta, self.gamma, self.delta] == [0.0; 3] && !self.is_absent()
    }

    /// Says whether the component is left out: it never occurred in training.
    pub fn is_absent(&self) -> bool {
        *self == Self::default()
    }
}
