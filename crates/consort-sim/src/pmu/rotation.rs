//! Groups of events that are counted together, within the budget of counters.

/// Packs events that are wanted together into groups of at most `budget` events.
///
/// The events of one want share a group where they fit; a wider want fills groups
/// of its own. Wide wants come first, then the narrower ones into the first group
/// with room, so that there are few groups. No event is in two groups unless a
/// want needs it beside others. A budget of 0 gives no groups.
pub(super) fn groups(wants: &[Vec<usize>], budget: usize) -> Vec<Vec<usize>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    if budget == 0 {
        return groups;
    }
    let mut order: Vec<&Vec<usize>> = wants.iter().filter(|want| !want.is_empty()).collect();
    order.sort_by_key(|want| core::cmp::Reverse(want.len()));
    for want in order {
        for part in want.chunks(budget) {
            place(&mut groups, part, budget);
        }
    }
    groups
}

fn place(groups: &mut Vec<Vec<usize>>, part: &[usize], budget: usize) {
    let lacking = |group: &[usize]| part.iter().filter(|e| !group.contains(e)).count();
    let fits = |group: &&mut Vec<usize>| group.len() + lacking(group) <= budget;
    match groups.iter_mut().find(fits) {
        Some(group) => {
            let new: Vec<usize> = part
                .iter()
                .copied()
                .filter(|e| !group.contains(e))
                .collect();
            group.extend(new);
        }
        None => groups.push(part.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_wide_want_takes_groups_of_its_own_and_leaves_its_rest_to_others() {
        let wants = [vec![7], vec![0, 1, 2, 3, 4], vec![5, 6], vec![2]];
        assert_eq!(groups(&wants, 4), [vec![0, 1, 2, 3], vec![4, 5, 6, 7]]);
    }

    #[test]
    fn without_counters_there_are_no_groups() {
        assert!(groups(&[vec![1]], 0).is_empty());
        assert!(groups(&[], 4).is_empty());
    }

    proptest! {
        #[test]
        fn no_group_exceeds_the_budget_and_every_want_that_fits_is_together(
            wants in prop::collection::vec(prop::collection::btree_set(0usize..12, 0..8), 0..8),
            budget in 1usize..7,
        ) {
            let wants: Vec<Vec<usize>> = wants.into_iter().map(|w| w.into_iter().collect()).collect();
            let groups = groups(&wants, budget);
            for group in &groups {
                let mut unique = group.clone();
                unique.sort_unstable();
                unique.dedup();
                prop_assert!(unique.len() == group.len() && group.len() <= budget);
            }
            for want in &wants {
                let within = |group: &Vec<usize>| want.iter().all(|e| group.contains(e));
                let counted = want.iter().all(|e| groups.iter().any(|g| g.contains(e)));
                prop_assert!(counted);
                prop_assert!(want.is_empty() || want.len() > budget || groups.iter().any(within));
            }
        }
    }
}
