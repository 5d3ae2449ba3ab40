//! From what threads did to the rows of a training set: one per member of a pair.

use super::watch::KernelObservation;
use consort_train::TrainingRow;

/// A row for every member of a pair of which all is known: pairs with a thread that did nothing
/// or was never sampled have none.
pub(super) fn rows(watched: &[KernelObservation], components: &[String]) -> Vec<TrainingRow> {
    let together = watched.iter().filter(|w| w.deed.together);
    together
        .filter_map(|member| row(watched, member, components))
        .collect()
}

fn row(
    watched: &[KernelObservation],
    member: &KernelObservation,
    components: &[String],
) -> Option<TrainingRow> {
    let (pair, slot) = (member.deed.pair, member.deed.slot);
    let alone = |slot| {
        let mut all = watched.iter();
        all.find(|w| w.deed.pair == pair && w.deed.slot == slot && !w.deed.together)
    };
    let (own, other) = (alone(slot)?, alone(1 - slot)?);
    let slowdown = speed(own)? / speed(member)?;
    let measured = shares(member, components)?;
    Some(TrainingRow {
        co_run: pair as u64,
        program: member.deed.program.clone(),
        co_runners: vec![member.deed.co_runner.clone()],
        own: shares(own, components)?,
        others: shares(other, components)?,
        together: measured.iter().map(|share| share * slowdown).collect(),
        measured,
    })
}

/// Units per ns of CPU time.
fn speed(watched: &KernelObservation) -> Option<f64> {
    let deed = &watched.deed;
    let worked = deed.units > 0 && deed.cpu_ns > 0;
    worked.then(|| deed.units as f64 / deed.cpu_ns as f64)
}

/// The stack in the order of the components; none of a thread that was never sampled.
fn shares(watched: &KernelObservation, components: &[String]) -> Option<Vec<f64>> {
    let share = |name: &String| {
        let found = watched.stack.iter().find(|(n, _)| n == name);
        found.map(|(_, share)| *share)
    };
    let shares: Vec<f64> = components.iter().map(share).collect::<Option<_>>()?;
    (shares.iter().sum::<f64>() > 0.0).then_some(shares)
}

#[cfg(test)]
mod tests {
    use super::super::plan::KernelRun;
    use super::*;

    fn watched(slot: usize, together: bool, units: u64, memory: f64) -> KernelObservation {
        let name = |slot: usize| ["fp", "dram"][slot].to_owned();
        KernelObservation {
            deed: KernelRun {
                tid: 0,
                pair: 7,
                slot,
                together,
                program: name(slot),
                co_runner: name(1 - slot),
                units,
                cpu_ns: 1000,
            },
            stack: vec![
                ("base".to_owned(), 1.0 - memory),
                ("memory".to_owned(), memory),
            ],
        }
    }

    #[test]
    fn cycles_together_are_on_the_scale_of_the_same_work_alone() {
        let all = [
            watched(0, false, 100, 0.0),
            watched(1, false, 50, 1.0),
            watched(0, true, 50, 0.25),
            watched(1, true, 40, 1.0),
        ];
        let rows = rows(&all, &["base".to_owned(), "memory".to_owned()]);
        assert_eq!(rows[0].own, [1.0, 0.0]);
        assert_eq!(rows[0].others, [0.0, 1.0]);
        assert_eq!(rows[0].together, [1.5, 0.5]);
        assert_eq!(rows[0].measured, [0.75, 0.25]);
        assert_eq!((rows[1].co_run, rows[1].slowdown()), (7, 1.25));
    }

    #[test]
    fn members_of_pairs_of_which_something_is_unknown_have_no_row() {
        let components = ["base".to_owned(), "memory".to_owned()];
        let mut all = vec![
            watched(0, false, 100, 0.0),
            watched(1, false, 50, 1.0),
            watched(0, true, 50, 0.25),
        ];
        assert_eq!(rows(&all, &components).len(), 1);
        all[2].deed.units = 0;
        assert!(rows(&all, &components).is_empty());
        all[2].deed.units = 1;
        all[1].stack.clear();
        assert!(rows(&all, &components).is_empty());
        assert!(rows(&all, &["branch".to_owned()]).is_empty());
    }
}
