//! Use of the machine: utilisation of PUs, and time that goes to memory.

use super::quotient;

/// Processor utilisation: time that PUs were busy over time that there were
/// PUs, 0 to 1. `busy_pu_s` is summed over PUs; `None` without PUs or time.
#[doc(alias = "processor utilisation")]
pub fn utilisation(busy_pu_s: f64, pus: usize, elapsed_s: f64) -> Option<f64> {
    quotient(busy_pu_s, pus as f64 * elapsed_s)
}

/// L2 miss penalty: L2 misses times memory latency, in nanoseconds. Lower is
/// better. It ignores that misses overlap, so it ranks threads by demand and
/// does not predict time.
#[doc(alias = "L2MP")]
pub fn l2mp_ns(l2_misses: f64, memory_latency_ns: f64) -> f64 {
    l2_misses * memory_latency_ns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_the_machine_half_the_time_is_a_quarter() {
        assert_eq!(utilisation(2.0 * 5.0, 4, 10.0), Some(0.25));
        assert_eq!(utilisation(0.0, 0, 10.0), None);
        assert_eq!(utilisation(0.0, 4, 0.0), None);
    }

    #[test]
    fn each_miss_costs_one_latency() {
        assert_eq!(l2mp_ns(1e6, 80.0), 8e7);
    }
}
