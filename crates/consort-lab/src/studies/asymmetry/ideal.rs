//! Hardware round robin where moves cost nothing and threads do not slow each other down.
//!
//! Source: Markovic, "Hardware Thread Scheduling Algorithms for Single-ISA Asymmetric CMPs" (PhD
//! thesis, UPC 2015), ideal model for HRRS: T = Workload / (L + (N−1)·S) · N · Q.
//!
//! Derivation. One large and N − 1 small cores run N threads. In a round of N quanta of length Q
//! every thread has the large core once and a small one N − 1 times, so it commits
//! L + (N−1)·S instructions, where L and S are what a thread commits *in one quantum* on a large
//! and on a small core: instructions per cycle times the cycles of a quantum. A thread with
//! `Workload` instructions takes Workload / (L + (N−1)·S) rounds of N·Q each. With
//! instructions per second in place of instructions per quantum the length of the quantum
//! cancels, since both L and S have it as a factor.
//!
//! More threads than cores share the cores by time: n threads in place of N take n/N times as
//! long, since together they commit no more per second than N threads do.

/// One large and several small cores with round robin among them.
#[doc(alias = "ideal model")]
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IdealRoundRobin {
    /// Instructions per second of a thread on the large core.
    pub large_ips: f64,
    /// Instructions per second of a thread on a small core.
    pub small_ips: f64,
    /// N, the cores in all.
    pub cores: u32,
}

impl IdealRoundRobin {
    /// Instructions per second of all cores together.
    pub fn ips(&self) -> f64 {
        self.large_ips + f64::from(self.cores.saturating_sub(1)) * self.small_ips
    }

    /// Time in which each of so many equal threads, at least one per core, commits so many
    /// instructions, s.
    pub fn time_s(&self, instructions: f64, threads: u32) -> f64 {
        instructions / self.ips() * f64::from(threads)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_round_worked_by_hand() {
        let four = IdealRoundRobin {
            large_ips: 4e9,
            small_ips: 2e9,
            cores: 4,
        };
        // In four quanta of 1 ms a thread commits 4 + 3·2 million instructions.
        assert!((four.time_s(10e6, 4) - 4e-3).abs() < 1e-15);
        assert!((four.time_s(10e6, 8) - 8e-3).abs() < 1e-15);
    }

    proptest! {
        /// The formula as it is printed, with instructions per quantum: Q cancels.
        #[test]
        fn the_length_of_a_quantum_does_not_matter(
            large in 1e8f64..1e10, ratio in 1.0f64..4.0, cores in 2u32..17, quantum_s in 1e-4f64..1e-1,
        ) {
            let small = large / ratio;
            let model = IdealRoundRobin { large_ips: large, small_ips: small, cores };
            let n = f64::from(cores);
            let (l, s) = (large * quantum_s, small * quantum_s);
            let printed = 1e9 / (l + (n - 1.0) * s) * n * quantum_s;
            prop_assert!((model.time_s(1e9, cores) / printed - 1.0).abs() < 1e-12);
        }

        /// Equal cores are no better than themselves, and a faster large core is never worse.
        #[test]
        fn time_lies_between_that_of_small_and_of_large_cores_alone(
            small in 1e8f64..1e10, ratio in 1.0f64..4.0, cores in 2u32..17,
        ) {
            let model = IdealRoundRobin { large_ips: small * ratio, small_ips: small, cores };
            let time = model.time_s(1e9, cores);
            prop_assert!(time <= 1e9 / small * (1.0 + 1e-12));
            prop_assert!(time >= 1e9 / (small * ratio) * (1.0 - 1e-12));
        }
    }
}
