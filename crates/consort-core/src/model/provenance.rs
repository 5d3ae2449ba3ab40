//! Origin of a model, and its errors on the programs that it was trained with.

/// Origin of a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Provenance {
    /// The source of the parameters: a paper, or how they were trained.
    pub source: String,
    /// Date of the training, as its source gives it.
    pub date: String,
    /// The training programs; empty where the source does not tell.
    pub programs: Vec<String>,
    /// Quanta that the training used, together over all co-runs; 0 where the
    /// source does not tell.
    pub quanta: u64,
    /// Errors with whole programs held out, one per level that was tested.
    pub accuracy: Vec<Accuracy>,
}

/// Errors of one level.
#[derive(Clone, Debug, PartialEq)]
pub struct Accuracy {
    /// Threads per core.
    pub ways: u32,
    /// Slowdown predicted against measured, in percent of the measured one.
    pub forward: Deviation,
    /// ST cycles that the inverse model puts under a wrong cause, in percent of
    /// the ST cycles.
    pub inverse: Deviation,
}

/// Sizes of errors.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Deviation {
    /// Mean of the magnitudes, in percent.
    pub mean_absolute_percent: f64,
    /// 95 percent of the magnitudes are at most this, in percent.
    pub p95_percent: f64,
}
