//! Histograms of errors as bars of text.

use consort_experiment::train::ErrorHistogram;

/// Width of the longest bar.
const WIDTH: f64 = 40.0;

/// One line per bin, from the first to the last that is not empty.
pub(super) fn bars(title: &str, histogram: &ErrorHistogram) -> String {
    let bins: Vec<(f64, f64, u64)> = histogram.bins().collect();
    let most = bins.iter().map(|bin| bin.2).max().unwrap_or(0);
    let total: u64 = bins.iter().map(|bin| bin.2).sum();
    let first = bins.iter().position(|bin| bin.2 > 0).unwrap_or(0);
    let last = bins.iter().rposition(|bin| bin.2 > 0).unwrap_or(0);
    let lines = bins[first..=last].iter().map(|&(low, high, count)| {
        let length = WIDTH * count as f64 / most.max(1) as f64;
        let share = 100.0 * count as f64 / total.max(1) as f64;
        let bar = "#".repeat(length.ceil() as usize);
        format!("{:>15} {share:>5.1}% {bar}\n", label(low, high))
    });
    std::iter::once(format!("{title}\n")).chain(lines).collect()
}

fn label(low: f64, high: f64) -> String {
    if low.is_infinite() {
        return format!("below {high:.0}%");
    }
    if high.is_infinite() {
        return format!("{low:.0}% and more");
    }
    format!("{low:.0} to {high:.0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_bins_are_full_and_empty_ends_are_left_out() {
        let text = bars(
            "error",
            &ErrorHistogram::from_percents(&[-3.0, 1.0, 1.5, 99.0]),
        );
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "error");
        let bar = "#".repeat(40);
        assert_eq!(
            lines[1],
            format!("{:>15}  25.0% {}", "-4 to -2%", &bar[..20])
        );
        assert_eq!(lines[3], format!("{:>15}  50.0% {bar}", "0 to 2%"));
        assert!(lines.last().unwrap().contains("30% and more"));
        assert_eq!(
            bars("none", &ErrorHistogram::from_percents(&[]))
                .lines()
                .count(),
            2
        );
    }
}
