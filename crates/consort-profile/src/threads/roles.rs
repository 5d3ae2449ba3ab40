//! Threads by the part that they play.
//!
//! Threads that have more than half of what they execute in common play one role: of two threads'
//! shares of instructions by line of code, the smaller ones sum to more than a half. The lines are
//! hashed as those are that phases are told by, to more numbers. Clustering as for phases would
//! part threads that do the same and wait differently long, for there are few of them and a
//! criterion of likelihood takes any steady difference for one of kind.

use crate::interval::FINE;

/// Share of executed code that threads of one role have in common.
const IN_COMMON: f64 = 0.5;

/// Instructions of a thread by the hash of their line of code.
pub(super) type CodeHistogram = [u64];

/// The role of each thread: the number of the earliest one that has enough in common with it.
/// Threads that were not seen have none.
pub(super) fn assign_roles(codes: &[&CodeHistogram]) -> Vec<Option<usize>> {
    let mut found: Vec<Vec<u64>> = Vec::new();
    codes
        .iter()
        .map(|code| assign_role(code, &mut found))
        .collect()
}

fn assign_role(code: &CodeHistogram, found: &mut Vec<Vec<u64>>) -> Option<usize> {
    if code.iter().all(|&executed| executed == 0) {
        return None;
    }
    let alike = |role: &Vec<u64>| common_share(role, code) > IN_COMMON;
    if let Some(number) = found.iter().position(alike) {
        for (sum, executed) in found[number].iter_mut().zip(code) {
            *sum += executed;
        }
        return Some(number);
    }
    found.push(code.to_vec());
    Some(found.len() - 1)
}

/// Share of executed code that two have in common, 0 to 1.
fn common_share(a: &CodeHistogram, b: &CodeHistogram) -> f64 {
    debug_assert!(a.len() <= FINE && b.len() <= FINE);
    let sum = |code: &CodeHistogram| code.iter().sum::<u64>().max(1) as f64;
    let (all_a, all_b) = (sum(a), sum(b));
    let smaller = |(a, b): (&u64, &u64)| (*a as f64 / all_a).min(*b as f64 / all_b);
    a.iter().zip(b).map(smaller).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_loop_play_one_role_however_long_they_wait() {
        let codes: [&CodeHistogram; 5] = [
            &[90, 0, 10],
            &[0, 500, 0],
            &[60, 0, 40],
            &[0, 0, 0],
            &[1, 90, 9],
        ];
        let found = assign_roles(&codes);
        assert_eq!(found, [Some(0), Some(1), Some(0), None, Some(1)]);
    }

    #[test]
    fn half_in_common_is_not_enough() {
        assert_eq!(common_share(&[50, 50, 0], &[50, 0, 50]), 0.5);
        assert_eq!(
            assign_roles(&[&[50, 50, 0], &[50, 0, 50]]),
            [Some(0), Some(1)]
        );
    }
}
