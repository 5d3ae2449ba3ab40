//! Trials within a run: the flags, the measure, and the verdict.

use super::{NONE, PolicySelection, is_auto};
use crate::failure::bad_input;
use crate::metric::{MetricSampler, MetricSource};
use crate::options::parse_interval;
use crate::output::count;
use anyhow::{Context, Result};
use clap::{Args, ValueEnum};
use consort_core::trial::{MetricKind, ProgressMeasure, Trial, TrialTiming, Verdict};
use consort_core::{ControlLoop, Machine};
use std::time::Duration;

/// Half of the time is unmanaged.
const HALF: f64 = 0.5;

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct TrialArgs {
    /// Alternate managed and unmanaged stretches in random order, and report how much faster or slower
    /// the managed ones are
    #[arg(long)]
    pub(crate) trial: bool,
    /// Length of a stretch of the trial; ten quanta but at least 2.5s if not given
    #[arg(long, value_name = "TIME", value_parser = parse_interval, requires = "trial")]
    pub(crate) stretch: Option<Duration>,
    #[command(flatten)]
    pub(crate) metric: MetricArgs,
}

#[derive(Clone, Debug, Default, Args)]
pub(crate) struct MetricArgs {
    /// Number that measures progress: file:PATH or cmd:COMMAND, the last number there;
    /// prometheus:http://127.0.0.1:PORT/metrics#NAME; with `consort trial` also print:TEXT, the number
    /// after TEXT in the command's output. If not given, `consort trial` takes the time, and the others
    /// instructions or waiting for CPUs
    #[arg(long, value_name = "SOURCE", value_parser = str::parse::<MetricSource>)]
    pub(crate) metric: Option<MetricSource>,
    /// Meaning of the number
    #[arg(
        long,
        value_name = "MEANING",
        value_enum,
        default_value_t,
        requires = "metric"
    )]
    pub(crate) metric_is: MetricMeaning,
}

/// Meaning of the user's number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MetricMeaning {
    /// Work done so far: its increase per second counts.
    #[default]
    Count,
    /// A rate or a score: more is better.
    More,
    /// A time or a cost: less is better.
    Less,
}

impl From<MetricMeaning> for MetricKind {
    fn from(meaning: MetricMeaning) -> Self {
        match meaning {
            MetricMeaning::Count => Self::Count,
            MetricMeaning::More => Self::More,
            MetricMeaning::Less => Self::Less,
        }
    }
}

/// Source of a run's verdict: readings of the user's number, or the reason for which there is none.
pub(super) struct EffectMeter {
    /// `None` if the run has no trial.
    sampler: Option<MetricSampler>,
    source: Option<MetricSource>,
    /// The verdict if there is no trial.
    unmeasured: String,
}

impl TrialArgs {
    /// Refuses flags that do not go together.
    pub(crate) fn check(&self, is_dry_run: bool) -> Result<()> {
        match &self.metric.metric {
            Some(MetricSource::Printed(_)) => Err(bad_input(
                "--metric print:TEXT needs whole runs; use it with `consort trial`",
            )),
            Some(_) if !self.trial => Err(bad_input("--metric needs --trial")),
            _ if self.trial && is_dry_run => Err(bad_input(
                "--trial needs places that are changed; leave --dry-run out",
            )),
            _ => Ok(()),
        }
    }

    /// Begins the trial, if one was requested and there is something to measure.
    pub(super) fn begin<M: Machine>(
        &self,
        control_loop: &mut ControlLoop<M>,
        chosen: &PolicySelection,
        (seed, is_dry_run): (u64, bool),
    ) -> Result<EffectMeter> {
        let mut meter = EffectMeter {
            sampler: None,
            source: self.metric.metric.clone(),
            unmeasured: without_trial(chosen, is_dry_run, "--trial measures it"),
        };
        if !self.trial {
            return Ok(meter);
        }
        if is_auto(&chosen.requested) && chosen.policy == NONE {
            // Both arms would be the same.
            meter.unmeasured = format!(
                "no trial was made: {}; name a policy to try one here, for example --policy spread",
                chosen.why
            );
            return Ok(meter);
        }
        let by_metric = self
            .metric
            .metric
            .as_ref()
            .map(|_| self.metric.metric_is.into());
        let by_metric = by_metric.map(ProgressMeasure::Metric);
        let offers = control_loop.machine().offers();
        let Some(measure) = by_metric.or_else(|| ProgressMeasure::from_offers(offers)) else {
            "nothing on this host measures progress: name a number that does with --metric, for \
             example --metric file:PATH"
                .clone_into(&mut meter.unmeasured);
            return Ok(meter);
        };
        if let Some(source) = &self.metric.metric {
            let sampler = MetricSampler::start(source.clone());
            meter.sampler = Some(sampler.context("cannot start the thread that reads --metric")?);
        }
        let quantum_ns = u64::try_from(chosen.interval.as_nanos()).unwrap_or(u64::MAX);
        let mut timing = TrialTiming::for_quantum(quantum_ns, HALF);
        if let Some(stretch) = self.stretch {
            let stretch_ns = u64::try_from(stretch.as_nanos()).unwrap_or(u64::MAX);
            timing.settle_ns = stretch_ns / 5;
            timing.measure_ns = stretch_ns - timing.settle_ns;
        }
        control_loop.set_trial(Some(Trial::new(timing, measure, false, seed)));
        Ok(meter)
    }
}

/// The first line without a trial; `way` says how to get one.
pub(crate) fn without_trial(chosen: &PolicySelection, is_dry_run: bool, way: &str) -> String {
    if chosen.policy == NONE {
        return match is_auto(&chosen.requested) {
            true => chosen.why.clone(),
            false => "watching only: policy none places nothing".to_owned(),
        };
    }
    if is_dry_run {
        return "nothing was changed (dry run), so nothing was gained or lost".to_owned();
    }
    format!("effect not measured; {way}")
}

/// Verdict of back-off without a trial of the user's; `None` if it has undone nothing. `way` says how
/// to get a trial.
pub(crate) fn undone_verdict<M: Machine>(
    control_loop: &ControlLoop<M>,
    way: &str,
) -> Option<Verdict> {
    let undone = control_loop.undone_plans();
    let fall = 100.0 * control_loop.largest_fall();
    let plans = count(undone as usize, "plan");
    (undone > 0).then(|| match control_loop.back_off_verdict() {
        Some(mut verdict) => {
            let text = format!("; compared because progress fell by {fall:.0} % after {plans}");
            verdict.text.push_str(&text);
            verdict
        }
        None => Verdict::unmeasured(format!(
            "progress fell by up to {fall:.0} % after {plans}, undone; {way}"
        )),
    })
}

impl EffectMeter {
    /// Passes the new readings of the user's number to the trial.
    pub(super) fn read<M: Machine>(&self, control_loop: &mut ControlLoop<M>) {
        let (Some(sampler), Some(trial)) = (&self.sampler, control_loop.trial_mut()) else {
            return;
        };
        for (value, at) in sampler.take() {
            let age_ns = u64::try_from(at.elapsed().as_nanos()).unwrap_or(u64::MAX);
            trial.add_metric(value, age_ns);
        }
    }

    /// The verdict of the run.
    pub(super) fn verdict<M: Machine>(&self, control_loop: &ControlLoop<M>) -> Verdict {
        let Some(trial) = control_loop.trial() else {
            return undone_verdict(control_loop, "--trial measures the effect")
                .unwrap_or_else(|| Verdict::unmeasured(self.unmeasured.clone()));
        };
        let mut verdict = trial.verdict();
        if let Some(source) = &self.source {
            verdict.measure = Some(source.to_string());
        }
        verdict
    }

    /// The last reason for which the user's number could not be read.
    pub(super) fn warning(&self) -> Option<String> {
        let why = self.sampler.as_ref()?.error()?;
        Some(format!("--metric: {why}"))
    }
}
