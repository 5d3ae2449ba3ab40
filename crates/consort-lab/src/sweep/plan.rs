//! Plans: a sweep cut into numbered shards.

use super::SweepError;
use super::units::Sweep;
use crate::VERSION;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// A sweep in shards, with the description that it was made of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SweepPlan {
    /// The version of Consort that made it.
    pub version: String,
    /// Name of the description's file, for messages.
    pub file: String,
    /// The description.
    pub description: String,
    /// True if its units are studies instead of runs.
    pub studies: bool,
    /// The shards, by number.
    pub shards: Vec<Shard>,
}

/// Consecutive units that one process runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shard {
    /// Its first unit.
    pub first: usize,
    /// Number of its units.
    pub units: usize,
    /// Estimated host time on one worker, s.
    pub seconds: f64,
    /// Fingerprint of everything that decides its result.
    pub content: String,
}

impl Shard {
    /// Its units.
    pub(super) fn range(&self) -> Range<usize> {
        self.first..self.first + self.units
    }
}

impl SweepPlan {
    /// Plans the sweep of a description. The same description, files and version give the same
    /// plan.
    ///
    /// # Errors
    /// An error in the description, or in anything that it names.
    pub fn new(file: &str, description: &str) -> Result<Self, SweepError> {
        let sweep = Sweep::parse(file, description)?;
        let parts = cut(&sweep.costs()?, sweep.spec.shard_s);
        let shards = parts.into_iter().map(|(units, seconds)| {
            Ok(Shard {
                first: units.start,
                units: units.len(),
                seconds,
                content: sweep.fingerprint(units)?,
            })
        });
        Ok(Self {
            version: VERSION.to_owned(),
            file: file.to_owned(),
            description: description.to_owned(),
            studies: !sweep.studies.is_empty(),
            shards: shards.collect::<Result<_, SweepError>>()?,
        })
    }

    /// The sweep, with the current contents of everything that the description names.
    pub(super) fn sweep(&self) -> Result<Sweep, SweepError> {
        Sweep::parse(&self.file, &self.description)
    }

    /// Estimated host time of all shards, s.
    pub fn seconds(&self) -> f64 {
        self.shards.iter().map(|shard| shard.seconds).sum()
    }
}

/// Ranges of consecutive costs whose sums reach `least`, with the sums. The rest at the end joins
/// the last range.
fn cut(costs: &[f64], least: f64) -> Vec<(Range<usize>, f64)> {
    let mut parts: Vec<(Range<usize>, f64)> = Vec::new();
    let mut open: (Range<usize>, f64) = (0..0, 0.0);
    for (n, cost) in costs.iter().enumerate() {
        open = (open.0.start..n + 1, open.1 + cost);
        if open.1 >= least {
            parts.push(std::mem::replace(&mut open, (n + 1..n + 1, 0.0)));
        }
    }
    match parts.last_mut() {
        Some(last) => *last = (last.0.start..open.0.end, last.1 + open.1),
        None => parts.push(open),
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_cover_everything_once_and_are_long_enough(
            costs in prop::collection::vec(0.1f64..50.0, 1..200), least in 0.1f64..100.0,
        ) {
            let parts = cut(&costs, least);
            let mut next = 0;
            for (units, seconds) in &parts {
                prop_assert_eq!(units.start, next);
                next = units.end;
                let sum: f64 = costs[units.clone()].iter().sum();
                prop_assert!((sum - seconds).abs() < 1e-9 * sum.max(1.0));
                prop_assert!(*seconds >= least || parts.len() == 1);
            }
            prop_assert_eq!(next, costs.len());
        }
    }

    const DESCRIPTION: &str = "machines = [\"bulldozer-6282se\", \"power7:smt=2\"]\n\
        workloads = [\"mcf+povray\", \"2*hmmer\"]\npolicies = [\"linux\", \"workover\"]\n\
        runs = 3\nalone_s = 0.2\nshard_s = 0.001\nhost_s_per_thread_s = 0.01\n";

    #[test]
    fn plans_repeat_and_fingerprints_follow_content() {
        let plan = SweepPlan::new("s.toml", DESCRIPTION).unwrap();
        assert_eq!(plan, SweepPlan::new("s.toml", DESCRIPTION).unwrap());
        let units: usize = plan.shards.iter().map(|shard| shard.units).sum();
        assert_eq!(units, 2 * 2 * 2 * 3);
        let other = DESCRIPTION.replace("2*hmmer", "2*hmmer+mcf");
        let other = SweepPlan::new("s.toml", &other).unwrap();
        assert_eq!(plan.shards[0].content, other.shards[0].content);
        assert!(plan.shards.last().map(|s| &s.content) != other.shards.last().map(|s| &s.content));
    }

    #[test]
    fn error_in_any_machine_is_found_at_once() {
        let text =
            format!("{DESCRIPTION}[[parameters]]\nkey = \"llc.size_kib\"\nvalues = [4096, -1]\n");
        let error = SweepPlan::new("s.toml", &text).unwrap_err();
        assert!(error.to_string().contains("llc.size_kib: is -1"), "{error}");
        assert!(error.is_input());
        let error = SweepPlan::new("s.toml", "studies = [\"W99\"]\n").unwrap_err();
        assert!(
            error.to_string().starts_with("unknown study 'W99'"),
            "{error}"
        );
    }
}
