//! One quantum of one thread, as its sample tells it.

use consort_core::{Sample, Signal};

/// Counts of one quantum.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrainingQuantum {
    /// Instructions completed.
    pub instructions: f64,
    /// Cycles on a PU.
    pub cycles: f64,
    /// Shares of the cycles by component; none before every event has counted once.
    pub shares: Option<Vec<f64>>,
}

impl TrainingQuantum {
    /// Reads a sample; nothing counted is nothing done. A stack that lacks one of the
    /// components is no stack.
    pub fn from_sample(sample: &Sample, components: &[String]) -> Self {
        let stack = sample.stack.as_ref().map(|(stack, _)| stack);
        let share = |name: &String| stack.and_then(|stack| stack.share(name));
        Self {
            instructions: sample.get(Signal::Instructions).unwrap_or(0.0),
            cycles: sample.get(Signal::Cycles).unwrap_or(0.0),
            shares: components.iter().map(share).collect(),
        }
    }

    /// Cycles by component, with the shares of another quantum where it has none of its own.
    pub(super) fn amounts<'a>(&'a self, others: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        let shares = self.shares.as_deref().unwrap_or(others);
        shares.iter().map(|share| share * self.cycles)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use consort_core::{CycleStack, Reading, Tier};

    #[test]
    fn a_stack_without_one_of_the_components_is_none() {
        let mut sample = Sample::default();
        let reading = Reading::fully_counted(7.0, Tier::Counters, 1);
        sample.set(Signal::Cycles, reading);
        sample.stack = Some((
            CycleStack::from_amounts([("base", 3.0), ("data", 1.0)]),
            Tier::Counters,
        ));
        let of = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(|n| (*n).to_owned()).collect();
            TrainingQuantum::from_sample(&sample, &names)
        };
        assert_eq!(of(&["data", "base"]).shares, Some(vec![0.25, 0.75]));
        assert_eq!(of(&["base", "branch"]).shares, None);
        assert_eq!(of(&["base"]).cycles, 7.0);
        assert_eq!(of(&["base"]).instructions, 0.0);
    }
}
