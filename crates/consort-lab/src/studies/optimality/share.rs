//! The best time-shared choice for a large core.
//!
//! Each of n threads has a speed on the large core and one on a small one, as shares of its speed
//! alone. A schedule gives thread i the large core for the share x_i of the time, Σ x_i ≤ 1, and
//! small ones are there for all others. The slowest thread's speed is s_i + x_i·(l_i − s_i); its
//! maximum over all schedules is where all that get the large core at all are equally fast: shares
//! are filled up to one level, as water is. Work over this speed is the least time in which all
//! are done, since a schedule of the shares needs no idle time (a special case of McNaughton's
//! rule, Management Science 6(1), 1959). What moving costs is left out, so it is a bound.

/// Halvings that find the level to the last bits of a number.
const HALVINGS: u32 = 60;

/// The largest speed that all threads can have at once, from their speeds on the large core and on
/// a small one; none without threads.
pub(super) fn level(large: &[f64], small: &[f64]) -> Option<f64> {
    let needed = |level: f64| -> f64 {
        let share = |(large, small): (&f64, &f64)| {
            if level <= *small {
                0.0
            } else if large > small {
                (level - small) / (large - small)
            } else {
                f64::INFINITY
            }
        };
        large.iter().zip(small).map(share).sum()
    };
    let mut low = small.iter().copied().reduce(f64::min)?;
    let mut high = large.iter().copied().fold(low, f64::max);
    for _ in 0..HALVINGS {
        let middle = f64::midpoint(low, high);
        if needed(middle) <= 1.0 {
            low = middle;
        } else {
            high = middle;
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_levels() {
        let check = |large: &[f64], small: &[f64], expect: f64| {
            let got = level(large, small).unwrap();
            assert!((got - expect).abs() < 1e-12, "{got} is not {expect}");
        };
        // Equal threads share alike: 0.5 + 0.5 / 4.
        check(&[1.0; 4], &[0.5; 4], 0.625);
        // Only the slower two need it: 0.2 + 0.8 / 2 = 0.6.
        check(&[1.0; 4], &[0.2, 0.2, 0.7, 0.9], 0.6);
        // A thread that gains nothing holds all back.
        check(&[1.0, 0.3], &[0.5, 0.3], 0.3);
        assert_eq!(level(&[], &[]), None);
    }

    proptest! {
        #[test]
        fn no_shares_make_the_slowest_faster(
            threads in prop::collection::vec((0.05f64..0.9, 0.0f64..0.5, 0.0f64..1.0), 2..6),
        ) {
            let small: Vec<f64> = threads.iter().map(|t| t.0).collect();
            let large: Vec<f64> = threads.iter().map(|t| t.0 + t.1).collect();
            let best = level(&large, &small).unwrap();
            let total: f64 = threads.iter().map(|t| t.2).sum();
            let speeds = threads.iter().map(|t| t.0 + t.1 * t.2 / total.max(1e-9));
            let slowest = speeds.fold(f64::INFINITY, f64::min);
            prop_assert!(slowest <= best + 1e-9, "{slowest} is more than {best}");
        }
    }
}
