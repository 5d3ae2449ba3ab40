//! A tornado per conclusion.

use super::headlines::THRESHOLD;
use super::tested::{ConclusionTrials, ParameterSwing, SensitivityTrial};
use super::variation::ENDS;
use crate::study::StudyError;
use consort_data::{Axis, Figure, Plot, Tornado, TornadoRow};

/// Parameters with a bar of their own; the others have one together.
const ROWS: usize = 15;

/// The figure of one conclusion.
pub(super) fn tornado(tested: &ConclusionTrials<'_>) -> Result<Figure, StudyError> {
    let swings = tested.swings();
    let (own, others) = swings.split_at(swings.len().min(ROWS));
    let plain = tested.plain().ratio();
    let mut rows: Vec<TornadoRow> = own.iter().map(row).collect();
    if !others.is_empty() {
        rows.push(together(others, plain));
    }
    let tornado = Tornado {
        value: Axis::linear(&capital(&tested.headline.axis()), None),
        baseline: plain,
        threshold: Some(THRESHOLD),
        ends: ENDS.map(|factor| format!("{factor} times")),
        rows,
    };
    let text = "A parameter that cannot go so far goes as far as it can. The last bar adds up what \
                all other parameters take away at either end, and what they add.";
    let key = &tested.headline.key;
    let runs = tested.plain().ratios.len();
    let title = capital(&tested.headline.axis());
    Ok(Figure::new(
        key,
        &title,
        text,
        runs,
        Plot::Tornado(tornado),
    )?)
}

fn row(swing: &ParameterSwing<'_>) -> TornadoRow {
    TornadoRow {
        name: swing.parameter.name(),
        values: swing.ends.map(SensitivityTrial::ratio),
    }
}

/// Losses and gains of several parameters, each at its worse and its better end, added up.
fn together(swings: &[ParameterSwing<'_>], plain: f64) -> TornadoRow {
    let change = |swing: &ParameterSwing<'_>| swing.ends.map(|trial| trial.ratio() - plain);
    let sum = |side: fn(f64, f64) -> f64| {
        let ends = swings
            .iter()
            .map(|swing| change(swing).into_iter().fold(0.0, side));
        plain + ends.sum::<f64>()
    };
    TornadoRow {
        name: format!("{} others, added up", swings.len()),
        values: [sum(f64::min), sum(f64::max)],
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}
