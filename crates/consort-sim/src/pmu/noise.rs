//! Read noise: every count is off by a normally distributed share of itself.

use consort_core::ThreadId;
use rand::{RngExt, SeedableRng};
use rand_pcg::Pcg64;

/// One thread's errors; a thread's depend on the seed and its id, not on other threads.
#[derive(Clone, Debug)]
pub(super) struct Noise {
    rng: Pcg64,
    deviation: f64,
    /// The second of a pair of normal deviates.
    spare: Option<f64>,
}

impl Noise {
    pub(super) fn new(seed: u64, thread: ThreadId, deviation: f64) -> Self {
        let words = [
            u64::from(thread.pid),
            u64::from(thread.tid),
            thread.start_ticks,
        ];
        let seed = words
            .iter()
            .fold(mix_bits(seed), |s, &word| mix_bits(s ^ word));
        Self {
            rng: Pcg64::seed_from_u64(seed),
            deviation,
            spare: None,
        }
    }

    /// A count as it is read.
    pub(super) fn read(&mut self, count: f64) -> f64 {
        if self.deviation == 0.0 {
            return count;
        }
        (count * (1.0 + self.deviation * self.normal())).max(0.0)
    }

    /// A standard normal deviate (Box and Muller, Annals of Mathematical Statistics 29, 1958),
    /// by functions that give the same bits on every host.
    fn normal(&mut self) -> f64 {
        if let Some(spare) = self.spare.take() {
            return spare;
        }
        let uniform: f64 = 1.0 - self.rng.random::<f64>();
        let angle = 2.0 * core::f64::consts::PI * self.rng.random::<f64>();
        let radius = (-2.0 * libm::log(uniform)).sqrt();
        self.spare = Some(radius * libm::sin(angle));
        radius * libm::cos(angle)
    }
}

/// The finaliser of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014, figure 15): ids that differ in
/// one bit give seeds that differ in half of theirs.
fn mix_bits(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn thread(tid: u32) -> ThreadId {
        ThreadId {
            pid: 1,
            tid,
            start_ticks: 0,
        }
    }

    #[test]
    fn errors_have_the_stated_deviation_and_no_bias() {
        let mut noise = Noise::new(7, thread(1), 0.02);
        let n = 200_000;
        let errors: Vec<f64> = (0..n).map(|_| noise.read(1000.0) / 1000.0 - 1.0).collect();
        let mean = errors.iter().sum::<f64>() / f64::from(n);
        let variance = errors.iter().map(|e| (e - mean) * (e - mean)).sum::<f64>() / f64::from(n);
        // Five standard errors: 0.02/√n of the mean, 0.02/√(2n) of the deviation.
        assert!(mean.abs() < 5.0 * 0.02 / 447.2, "{mean}");
        assert!((variance.sqrt() - 0.02).abs() < 5.0 * 0.02 / 632.5);
        let beyond = errors.iter().filter(|e| e.abs() > 0.04).count();
        // 4.55 percent of a normal distribution lie beyond two deviations.
        assert!((8_500..9_700).contains(&beyond), "{beyond}");
    }

    #[test]
    fn errors_differ_by_thread_and_seed() {
        let first = |seed, tid| Noise::new(seed, thread(tid), 0.1).read(1.0);
        assert_eq!(first(1, 1), first(1, 1));
        assert_ne!(first(1, 1), first(1, 2));
        assert_ne!(first(1, 1), first(2, 1));
    }

    #[test]
    fn without_noise_counts_are_exact() {
        let mut noise = Noise::new(7, thread(1), 0.0);
        assert_eq!(noise.read(1.0 / 3.0), 1.0 / 3.0);
    }
}
