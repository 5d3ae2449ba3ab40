//! Options and values that several verbs share.

pub(crate) use crate::output::args::{
    ListOut, NUMBERS, NamedListArgs, NumbersOut, ResultOut, TABLE,
};
use crate::progress;
use clap::Args;
use consort_core::parse_count;
use consort_experiment::{ExperimentContext, Scale, StageProgress};
use std::num::NonZeroUsize;
use std::ops::RangeInclusive;
use std::time::Duration;

/// Name of the machine that this runs on.
pub(crate) const LIVE: &str = "live";

/// Number of workers that share the runs; results do not depend on it.
#[derive(Clone, Copy, Debug, Args)]
pub(crate) struct Jobs {
    /// Worker threads of simulated runs; one per CPU if not given
    #[arg(long, value_name = "N", value_parser = |text: &str| {
        let workers = count_parser::<usize>(1..=65_536)(text)?;
        Ok::<_, String>(NonZeroUsize::new(workers).unwrap_or(NonZeroUsize::MIN))
    })]
    jobs: Option<NonZeroUsize>,
}

impl Jobs {
    pub(crate) fn requested_workers(self) -> Option<NonZeroUsize> {
        self.jobs
    }

    /// Workers to start: as many as there are CPUs if none were requested.
    pub(crate) fn workers(self) -> NonZeroUsize {
        let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        self.jobs.unwrap_or_else(all)
    }

    /// Runs a simulated experiment with these workers and a bar that counts `what`.
    pub(crate) fn run_experiment<T>(
        self,
        what: &'static str,
        seed: u64,
        is_quick: bool,
        experiment: impl FnOnce(&ExperimentContext<'_>) -> T,
    ) -> T {
        let bar = progress::start_meter(what);
        let report_progress = |at: StageProgress| bar.set_done(at.done, at.total);
        let workers = self.workers();
        let context = ExperimentContext::new(seed, scale(is_quick), workers, &report_progress);
        let result = experiment(&context);
        bar.finish();
        result
    }
}

pub(crate) const fn scale(is_quick: bool) -> Scale {
    match is_quick {
        true => Scale::Quick,
        false => Scale::Full,
    }
}

/// A parser of whole numbers within a range, with units: `20000`, `20_000`, `20k`, `1.5M`, `2e6`.
///
/// The range must fit into `T`; a number outside it is refused.
pub(crate) fn count_parser<T: TryFrom<u64>>(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |text| {
        let number = parse_count(text).filter(|number| range.contains(number));
        let number = number.and_then(|number| T::try_from(number).ok());
        number.ok_or_else(|| {
            let (least, most) = (range.start(), range.end());
            let most = match most {
                &u64::MAX => "2^64 - 1".to_owned(),
                most => most.to_string(),
            };
            format!(
                "expected a whole number from {least} to {most}, for example 20000, 20_000, 20k, \
                 1.5M, 2G or 2e6"
            )
        })
    }
}

pub(crate) fn seed_parser() -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static
{
    count_parser(0..=u64::MAX)
}

/// Shortest quantum that is accepted: of a shorter one, the slack of timers (50 us) and a turn of the
/// control loop take too much.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(1);

const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);

/// Reads a simulated time, from 100 µs to an hour.
pub(crate) fn parse_simulated(text: &str) -> Result<Duration, String> {
    let time = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 1ms or 30s".to_owned())?;
    if (Duration::from_micros(100)..=LONGEST_INTERVAL).contains(&time) {
        Ok(time)
    } else {
        Err("expected a time from 100us to 1h".to_owned())
    }
}

/// Reads a share from 0 to 1, as `0.05` or `5%`.
pub(crate) fn parse_share(text: &str) -> Result<f64, String> {
    let share = parse_percent(text).or_else(|| text.parse::<f64>().ok());
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, for example 0.05 or 5%".to_owned())
}

/// Reads `5 %` as 0.05.
pub(crate) fn parse_percent(text: &str) -> Option<f64> {
    let percent = text.trim().strip_suffix('%')?.trim().parse::<f64>().ok()?;
    percent.is_finite().then_some(percent / 100.0)
}

/// Reads a quantum such as `200ms`, within the accepted range.
pub(crate) fn parse_interval(text: &str) -> Result<Duration, String> {
    let interval = humantime::parse_duration(text)
        .map_err(|_| "expected a time with its unit, for example 200ms or 1s".to_owned())?;
    if (SHORTEST_INTERVAL..=LONGEST_INTERVAL).contains(&interval) {
        Ok(interval)
    } else {
        Err("expected a time from 1ms to 1h".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_the_range_are_refused() {
        let parse = count_parser::<u32>(1..=10_000);
        assert_eq!(parse("10k"), Ok(10_000));
        for text in ["0", "10001", "1.5", "", "4294967297"] {
            let error = parse(text).unwrap_err();
            assert!(error.contains("from 1 to 10000"), "{error}");
        }
        assert_eq!(seed_parser()("18446744073709551615"), Ok(u64::MAX));
    }
}
