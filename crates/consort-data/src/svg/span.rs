//! Span of an axis, and the positions of its ticks.

/// About how many ticks a linear axis gets.
const TICKS: f64 = 6.0;

/// A logarithmic axis of fewer decades also gets ticks at 2 and 5.
const FEW_DECADES: f64 = 2.5;

/// Difference of logarithms, or share of a value, that no drawing shows.
const HAIR: f64 = 1e-9;

/// Values below this are drawn as 0.
const LEAST: f64 = 1e-100;

/// The span of an axis. Positions are the values, or their decimal logarithms
/// on a logarithmic axis.
pub(super) struct AxisSpan {
    pub(super) low: f64,
    pub(super) high: f64,
    log: bool,
    ticks: Vec<(f64, String)>,
}

impl AxisSpan {
    /// The span of these values, out to the next ticks.
    pub(super) fn from_values(values: impl Iterator<Item = f64>, log: bool) -> Self {
        let mut whole = true;
        let usable = values.filter(|v| v.is_finite() && (!log || *v > 0.0));
        let usable = usable.inspect(|v| whole &= v.fract() == 0.0);
        let extremes = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| {
            (low.min(v), high.max(v))
        });
        let extremes = if extremes.0 <= extremes.1 {
            extremes
        } else {
            (1.0, 1.0)
        };
        if log {
            Self::log(extremes)
        } else {
            Self::linear(extremes, whole)
        }
    }

    /// Between whole numbers that are not next to each other there are no ticks at fractions.
    fn linear((low, high): (f64, f64), whole: bool) -> Self {
        let size = low.abs().max(high.abs()).max(LEAST);
        let (low, high) = if high - low > size * HAIR {
            (low, high)
        } else {
            // A single value gets a span about it.
            let reach = if low.abs() < LEAST {
                1.0
            } else {
                low.abs() * 0.1
            };
            (low - reach, low + reach)
        };
        let (step, places) = match nice_step((high - low) / TICKS) {
            (step, _) if whole && step < 1.0 && high - low >= 2.0 => (1.0, 0),
            nice => nice,
        };
        let (first, last) = ((low / step).floor(), (high / step).ceil());
        let count = (last - first) as usize;
        let tick = |index: usize| {
            let value = (first + index as f64) * step;
            (value, super::super::cell::number_text(value, places))
        };
        Self {
            low: first * step,
            high: last * step,
            log: false,
            ticks: (0..=count).map(tick).collect(),
        }
    }

    fn log((low, high): (f64, f64)) -> Self {
        let (bottom, top) = (libm::log10(low), libm::log10(high));
        let decades = bottom.floor() as i32 - 1..=top.ceil() as i32 + 1;
        let all: Vec<LogTick> = decades
            .flat_map(|decade| [1, 2, 5].map(|step| LogTick { step, decade }))
            .collect();
        // A value a hair off its own tick has that tick as its bound.
        let first = all
            .iter()
            .rposition(|tick| tick.position() <= bottom + HAIR)
            .unwrap_or(0);
        let last = all.iter().position(|tick| tick.position() >= top - HAIR);
        let last = last.unwrap_or(all.len() - 1).max(first + 1);
        let bounds = &all[first..=last];
        let few = top - bottom < FEW_DECADES;
        let shown = bounds.iter().filter(|tick| few || tick.step == 1);
        Self {
            low: all[first].position(),
            high: all[last].position(),
            log: true,
            ticks: shown.map(|tick| (tick.position(), tick.text())).collect(),
        }
    }

    /// Position of a value; `None` for a value that a logarithmic axis cannot show.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        if !self.log {
            return Some(value);
        }
        (value > 0.0).then(|| libm::log10(value))
    }

    /// Positions of the ticks.
    pub(super) fn ticks(&self) -> Vec<f64> {
        self.ticks.iter().map(|(at, _)| *at).collect()
    }

    /// The text of the tick at that position.
    pub(super) fn label(&self, at: f64) -> String {
        let found = self.ticks.iter().find(|(tick, _)| *tick == at);
        found.map_or_else(String::new, |(_, text)| text.clone())
    }

    /// The longest text of a tick.
    pub(super) fn longest_label(&self) -> &str {
        let texts = self.ticks.iter().map(|(_, text)| text.as_str());
        texts.max_by_key(|text| text.chars().count()).unwrap_or("")
    }
}

/// The next 1, 2 or 5 times a power of ten, and the decimals that it needs.
fn nice_step(rough: f64) -> (f64, usize) {
    let power = libm::log10(rough).floor();
    let unit = libm::pow(10.0, power);
    let steps = [1.0, 2.0, 5.0, 10.0];
    // A quotient a hair above a step is that step.
    let fitting = steps.iter().find(|step| rough <= *step * unit * 1.000_001);
    let step = fitting.copied().unwrap_or(10.0);
    let power = if step == 10.0 { power + 1.0 } else { power };
    (step * unit, (-power).max(0.0) as usize)
}

/// A tick of a logarithmic axis, at `step` times ten to the power `decade`.
struct LogTick {
    step: i32,
    decade: i32,
}

impl LogTick {
    fn position(&self) -> f64 {
        let digits = if self.step == 1 {
            0.0
        } else {
            libm::log10(f64::from(self.step))
        };
        f64::from(self.decade) + digits
    }

    /// Plain digits near 1, an exponent elsewhere.
    fn text(&self) -> String {
        let Self { step, decade } = *self;
        match decade {
            0..=4 => format!("{step}{}", "0".repeat(decade.unsigned_abs() as usize)),
            -3..=-1 => format!(
                "0.{}{step}",
                "0".repeat((-decade - 1).unsigned_abs() as usize)
            ),
            _ => format!("{step}e{decade}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(values: &[f64], log: bool, expect: &[&str]) {
        let span = AxisSpan::from_values(values.iter().copied(), log);
        let labels: Vec<String> = span.ticks().iter().map(|at| span.label(*at)).collect();
        assert_eq!(labels, expect);
    }

    #[test]
    fn ticks_are_round_numbers() {
        check(
            &[0.0, 1.1],
            false,
            &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0", "1.2"],
        );
        check(
            &[-30.0, 50.0],
            false,
            &["-40", "-20", "0", "20", "40", "60"],
        );
        check(
            &[16.0, 1024.0],
            true,
            &["10", "20", "50", "100", "200", "500", "1000", "2000"],
        );
        check(&[1.0, 1000.0], true, &["1", "10", "100", "1000"]);
        check(&[3.0], true, &["2", "5"]);
        check(&[0.02, 0.3], true, &["0.02", "0.05", "0.1", "0.2", "0.5"]);
        check(
            &[1e-5, 1e7],
            true,
            &[
                "1e-5", "1e-4", "0.001", "0.01", "0.1", "1", "10", "100", "1000", "10000", "1e5",
                "1e6", "1e7",
            ],
        );
        check(&[1.0, 2.0, 3.0], false, &["1", "2", "3"]);
        check(
            &[0.0, 1.0],
            false,
            &["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"],
        );
        check(&[], false, &["0.90", "0.95", "1.00", "1.05", "1.10"]);
    }

    #[test]
    fn a_logarithmic_axis_has_no_place_for_nothing() {
        let span = AxisSpan::from_values([1.0, 10.0].into_iter(), true);
        assert_eq!((span.position(0.0), span.position(10.0)), (None, Some(1.0)));
    }

    proptest! {
        #[test]
        fn every_value_is_inside(values in prop::collection::vec(-1e12f64..1e12, 1..20)) {
            let span = AxisSpan::from_values(values.iter().copied(), false);
            let slack = (span.high - span.low) * 1e-9;
            for value in values {
                prop_assert!(span.low <= value + slack && value - slack <= span.high);
            }
            let ticks = span.ticks().len();
            prop_assert!((2..=14).contains(&ticks), "{} ticks", ticks);
        }

        #[test]
        fn equal_values_of_any_size_get_a_span(value in prop_oneof![-1e100..1e100, -1e-290..1e-290]) {
            let span = AxisSpan::from_values([value, value].into_iter(), false);
            prop_assert!(span.low <= value && value <= span.high && span.low < span.high);
            prop_assert!((2..=14).contains(&span.ticks().len()));
        }

        #[test]
        fn every_positive_value_is_inside(values in prop::collection::vec(1e-12f64..1e12, 1..20)) {
            let span = AxisSpan::from_values(values.iter().copied(), true);
            for value in values {
                let at = span.position(value).unwrap();
                prop_assert!(span.low <= at + HAIR && at - HAIR <= span.high);
            }
        }
    }
}
