//! Comparisons by time and throughput.

use super::quotient;

/// Speedup of policy A over B for a workload of several programs: the quotient
/// of their system throughputs. Higher is better; `None` where STP of B is not
/// positive or the quotient is not finite.
pub fn workload_speedup(stp_a: f64, stp_b: f64) -> Option<f64> {
    quotient(stp_a, stp_b)
}

/// Speedup of policy A over B for one program: B's time over A's time. Higher
/// is better; `None` where A's time is not positive or the quotient is not finite.
pub fn program_speedup(time_a_s: f64, time_b_s: f64) -> Option<f64> {
    quotient(time_b_s, time_a_s)
}

/// Time from the start to the last completion, in seconds. Lower is better;
/// `None` without programs or with a time that is not finite.
pub fn makespan_s(completions_s: &[f64]) -> Option<f64> {
    let all_known = completions_s.iter().all(|time| time.is_finite());
    let last = completions_s.iter().copied().reduce(f64::max);
    last.filter(|_| all_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_better_policy_has_a_speedup_above_one() {
        assert_eq!(workload_speedup(6.0, 4.0), Some(1.5));
        assert_eq!(program_speedup(80.0, 100.0), Some(1.25));
    }

    #[test]
    fn comparisons_with_nothing_are_undefined() {
        assert_eq!(workload_speedup(6.0, 0.0), None);
        assert_eq!(program_speedup(f64::NAN, 1.0), None);
        assert_eq!(makespan_s(&[]), None);
        assert_eq!(makespan_s(&[1.0, f64::NAN]), None);
    }

    #[test]
    fn the_last_completion_counts() {
        assert_eq!(makespan_s(&[3.0, 9.5, 4.0]), Some(9.5));
    }
}
