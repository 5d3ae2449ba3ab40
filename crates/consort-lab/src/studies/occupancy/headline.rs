//! The figures that the source prints, each program run once.

use super::classes::Class;
use super::tables::ratio;
use super::{AGGREGATE, LINUX, Measured, POLICIES, WORKOVER};
use crate::report::{Cell, Headline, Table};
use crate::study::StudyError;
use consort_core::stats::{mean, sample_standard_deviation};

pub(super) fn table(once: &[Measured<'_>]) -> Result<Table, StudyError> {
    let mut headline = Headline::new()?;
    for m in once {
        gains(m, &mut headline)?;
        misses(m, &mut headline)?;
        spreads(m, &mut headline)?;
    }
    Ok(headline.into_table())
}

/// A case's name in rows.
fn case(m: &Measured<'_>) -> String {
    m.case.key.replace('/', " ")
}

/// By how much the time until all have finished is shorter.
fn gains(m: &Measured<'_>, headline: &mut Headline) -> Result<(), StudyError> {
    let pairs = [(WORKOVER, LINUX), (AGGREGATE, LINUX), (WORKOVER, AGGREGATE)];
    let is_run = |policy: usize| m.policies().contains(&policy);
    for (of, over) in pairs.into_iter().filter(|p| is_run(p.0) && is_run(p.1)) {
        let [ours, theirs] = [of, over].map(|policy| POLICIES[policy].name);
        let row = format!("{ours} over {theirs}, {}", case(m));
        headline.add_gain(&row, ratio(m, over, of, |o| o.result.makespan_s))?;
    }
    Ok(())
}

/// Changes of L2 misses, for pairs.
fn misses(m: &Measured<'_>, headline: &mut Headline) -> Result<(), StudyError> {
    for policy in [WORKOVER, AGGREGATE]
        .into_iter()
        .filter(|_| m.case.is_pair())
    {
        let class = Class::all(m, policy);
        let row = format!(
            "L2 misses, {} over linux, {}",
            POLICIES[policy].name,
            case(m)
        );
        headline.add(&row, "percent", class.l2_change_percent())?;
    }
    Ok(())
}

/// Standard deviation of the time over its mean.
fn spreads(m: &Measured<'_>, headline: &mut Headline) -> Result<(), StudyError> {
    for policy in m.policies() {
        let times = m.over(policy, |o| o.result.makespan_s);
        let row = format!("run-to-run spread, {}, {}", POLICIES[policy].name, case(m));
        headline.add(&row, "percent", spread_percent(&times))?;
    }
    Ok(())
}

fn spread_percent(times: &[f64]) -> Cell {
    let both = sample_standard_deviation(times).zip(mean(times));
    let percent = both.map(|(deviation, mean)| 100.0 * deviation / mean);
    percent.map_or_else(|| Cell::missing("too few runs"), Cell::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spread_is_relative_to_the_mean() {
        assert_eq!(spread_percent(&[9.0, 10.0, 11.0]).value(), Some(10.0));
        assert_eq!(spread_percent(&[9.0]).value(), None);
    }
}
