//! Interval of a share.

/// Value above which 2.5 percent of the standard normal distribution lie.
const Z_975: f64 = 1.959_963_984_540_054;

/// The 95 percent score interval of a share of which `hits` of `of` were seen, 0 to 1 (Wilson,
/// "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927): it
/// stays within 0 to 1 and has a width at both of them. Everything is possible without samples.
pub(super) fn interval(hits: usize, of: usize) -> [f64; 2] {
    if of == 0 {
        return [0.0, 1.0];
    }
    let (n, share) = (of as f64, hits as f64 / of as f64);
    let z2 = Z_975 * Z_975 / n;
    let middle = share + z2 / 2.0;
    let half = (z2 * (share * (1.0 - share) + z2 / 4.0)).sqrt();
    let [low, high] = [middle - half, middle + half].map(|end| end / (1.0 + z2));
    // At 0 and at 1 the share is an end; rounding must not leave it outside.
    [low.clamp(0.0, share), high.clamp(share, 1.0)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(hits: usize, of: usize, expect: [f64; 2]) {
        let got = interval(hits, of);
        let near = got.iter().zip(expect).all(|(a, b)| (a - b).abs() < 5e-4);
        assert!(near, "{got:?} is not {expect:?}");
    }

    #[test]
    fn known_intervals() {
        // Newcombe, Statistics in Medicine 17, 1998, table I, method 3: 81/263, 15/148, 0/20, 1/29.
        check(81, 263, [0.2553, 0.3662]);
        check(15, 148, [0.0624, 0.1605]);
        check(0, 20, [0.0, 0.1611]);
        check(1, 29, [0.0061, 0.1718]);
        check(20, 20, [1.0 - 0.1611, 1.0]);
        check(0, 0, [0.0, 1.0]);
    }

    #[test]
    fn the_share_is_in_its_interval() {
        for of in 1..200 {
            for hits in 0..=of {
                let [low, high] = interval(hits, of);
                let share = hits as f64 / of as f64;
                assert!(0.0 <= low && low <= share && share <= high && high <= 1.0);
            }
        }
    }
}
