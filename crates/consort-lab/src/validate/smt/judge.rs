//! Slowdowns of victims next to co-runners, and how well one table of them predicts another.

use consort_core::stats::{EffectCell, EffectShares, MainEffects, mean, spearman};

/// STP below which two pairings are equally good.
const EQUAL_STP: f64 = 1e-9;

/// Slowdowns of each victim next to each co-runner. The victims are co-runners, too.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SlowdownTable {
    pub(super) victims: Vec<String>,
    pub(super) co_runners: Vec<String>,
    /// By victim and co-runner; NaN for a pair that is not known.
    rows: Vec<Vec<f64>>,
}

/// Quality of predictions.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Verdict {
    /// Mean size of the relative errors.
    pub(super) error: f64,
    /// Mean of the relative errors.
    pub(super) bias: f64,
    /// Rank correlation of co-runners, mean over victims; `None` if no victim has an order.
    pub(super) rank: Option<f64>,
    /// Gain of the best pairing by the predictions over a random one, as a share of the gain of the
    /// best pairing, all by the true slowdowns; `None` if nothing can be gained.
    pub(super) gain_share: Option<f64>,
    /// True STP per pair of a random pairing of the victims.
    pub(super) random_stp: f64,
    /// True STP per pair of their best pairing.
    pub(super) best_stp: f64,
}

impl SlowdownTable {
    pub(super) fn new(victims: &[&str], co_runners: &[&str]) -> Self {
        Self {
            victims: victims.iter().map(|name| (*name).to_owned()).collect(),
            co_runners: co_runners.iter().map(|name| (*name).to_owned()).collect(),
            rows: vec![vec![f64::NAN; co_runners.len()]; victims.len()],
        }
    }

    /// A table of the same programs without slowdowns.
    pub(super) fn like(&self) -> Self {
        Self {
            rows: vec![vec![f64::NAN; self.co_runners.len()]; self.victims.len()],
            ..self.clone()
        }
    }

    /// Sets the slowdown of a pair; names that are not in the table have none.
    pub(super) fn set(&mut self, victim: &str, co_runner: &str, slowdown: f64) {
        let place = |names: &[String], name: &str| names.iter().position(|other| other == name);
        let pair = (
            place(&self.victims, victim),
            place(&self.co_runners, co_runner),
        );
        if let (Some(victim), Some(co_runner)) = pair {
            self.set_cell(victim, co_runner, slowdown);
        }
    }

    pub(super) fn set_cell(&mut self, victim: usize, co_runner: usize, slowdown: f64) {
        self.rows[victim][co_runner] = slowdown;
    }

    pub(super) fn is_complete(&self) -> bool {
        self.cells().all(|(_, _, slowdown)| slowdown.is_finite())
    }

    pub(super) fn row(&self, victim: usize) -> &[f64] {
        &self.rows[victim]
    }

    /// All pairs with their slowdowns.
    pub(super) fn cells(&self) -> impl Iterator<Item = EffectCell> {
        let rows = self.rows.iter().enumerate();
        rows.flat_map(|(victim, row)| {
            row.iter()
                .enumerate()
                .map(move |(other, s)| (victim, other, *s))
        })
    }

    fn map_cells(&self, slowdown: impl Fn(usize, usize) -> f64) -> Self {
        let mut table = self.like();
        for (victim, other, _) in self.cells() {
            table.set_cell(victim, other, slowdown(victim, other));
        }
        table
    }

    /// Shares of the variance by victim, by co-runner and by both.
    pub(super) fn shares(&self) -> EffectShares {
        let cells: Vec<EffectCell> = self.cells().collect();
        let effects = MainEffects::fit(&cells);
        effects.map_or_else(EffectShares::default, |effects| effects.shares(&cells))
    }

    /// The mean slowdown of the other victims.
    pub(super) fn constant_baseline(&self) -> Self {
        self.map_cells(|victim, _| {
            let others = self.cells().filter(|cell| cell.0 != victim);
            mean(&others.map(|cell| cell.2).collect::<Vec<_>>()).unwrap_or(1.0)
        })
    }

    /// A line through the other victims' slowdowns over their speeds alone.
    pub(super) fn speed_baseline(&self, speeds: &[f64]) -> Self {
        self.map_cells(|victim, _| {
            let others = self.cells().filter(|cell| cell.0 != victim);
            let points = others.map(|(other, _, slowdown)| (speeds[other], slowdown));
            let (slope, offset) = fit_line(&points.collect::<Vec<_>>());
            offset + slope * speeds[victim]
        })
    }

    /// The main effects of victim and co-runner without the pair itself.
    pub(super) fn effects_baseline(&self) -> Self {
        self.map_cells(|victim, other| {
            let rest = self
                .cells()
                .filter(|cell| (cell.0, cell.1) != (victim, other));
            let effects = MainEffects::fit(&rest.collect::<Vec<_>>());
            effects.map_or(1.0, |effects| effects.predict(victim, other))
        })
    }

    /// Mean size of the relative errors of predictions for a victim, and the rank correlation of its
    /// co-runners.
    pub(super) fn judge_victim(&self, ours: &Self, victim: usize) -> (f64, Option<f64>) {
        let both = ours.rows[victim].iter().zip(&self.rows[victim]);
        let pairs: Vec<(f64, f64)> = both.map(|(ours, truth)| (*ours, *truth)).collect();
        let errors = pairs.iter().map(|(ours, truth)| (ours / truth - 1.0).abs());
        let error = mean(&errors.collect::<Vec<_>>()).unwrap_or(0.0);
        (error, spearman(&pairs))
    }

    /// Judges predictions of this table.
    pub(super) fn judge(&self, ours: &Self) -> Verdict {
        let victims = 0..self.victims.len();
        let by_victim: Vec<_> = victims.map(|v| self.judge_victim(ours, v)).collect();
        let errors: Vec<f64> = by_victim.iter().map(|verdict| verdict.0).collect();
        let ranks: Vec<f64> = by_victim.iter().filter_map(|verdict| verdict.1).collect();
        let both = ours.cells().zip(self.cells());
        let signed: Vec<f64> = both.map(|(ours, truth)| ours.2 / truth.2 - 1.0).collect();
        let pairings: Vec<(f64, f64)> = { pairings(&self.partners()) }
            .iter()
            .map(|pairing| (ours.stp(pairing), self.stp(pairing)))
            .collect();
        let truths: Vec<f64> = pairings.iter().map(|pairing| pairing.1).collect();
        let random_stp = mean(&truths).unwrap_or(0.0);
        let best_stp = truths.iter().copied().fold(0.0, f64::max);
        let chosen = pairings.iter().map(|pairing| pairing.0).fold(0.0, f64::max);
        let chosen = pairings
            .iter()
            .filter(|pairing| pairing.0 > chosen - EQUAL_STP);
        let chosen = mean(&chosen.map(|pairing| pairing.1).collect::<Vec<_>>());
        let gain = best_stp - random_stp;
        Verdict {
            error: mean(&errors).unwrap_or(0.0),
            bias: mean(&signed).unwrap_or(0.0),
            rank: mean(&ranks),
            gain_share: chosen
                .filter(|_| gain > EQUAL_STP)
                .map(|stp| (stp - random_stp) / gain),
            random_stp,
            best_stp,
        }
    }

    /// Each victim with its number among the co-runners.
    fn partners(&self) -> Vec<(usize, usize)> {
        let place = |name: &String| self.co_runners.iter().position(|other| other == name);
        let victims = self.victims.iter().enumerate();
        victims
            .filter_map(|(victim, name)| Some((victim, place(name)?)))
            .collect()
    }

    /// System throughput per pair.
    fn stp(&self, pairing: &[[(usize, usize); 2]]) -> f64 {
        let pairs = pairing
            .iter()
            .map(|[a, b]| 1.0 / self.rows[a.0][b.1] + 1.0 / self.rows[b.0][a.1]);
        pairs.sum::<f64>() / pairing.len().max(1) as f64
    }
}

/// All ways to pair an even number of programs; one of an odd number stays over and is left out.
fn pairings<T: Copy>(programs: &[T]) -> Vec<Vec<[T; 2]>> {
    let Some((&first, rest)) = programs.split_first() else {
        return vec![Vec::new()];
    };
    let mut all = Vec::new();
    for at in 0..rest.len() {
        let mut others = rest.to_vec();
        let second = others.remove(at);
        for mut pairing in pairings(&others) {
            pairing.push([first, second]);
            all.push(pairing);
        }
    }
    all
}

/// Slope and offset of the line of least squares; a flat line if the points have one place.
fn fit_line(points: &[(f64, f64)]) -> (f64, f64) {
    let (xs, ys): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let (x, y) = (mean(&xs).unwrap_or(0.0), mean(&ys).unwrap_or(0.0));
    let spread: f64 = xs.iter().map(|other| (other - x).powi(2)).sum();
    let product: f64 = points
        .iter()
        .map(|point| (point.0 - x) * (point.1 - y))
        .sum();
    let slope = if spread > 0.0 { product / spread } else { 0.0 };
    (slope, y - slope * x)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];

    /// Slowdowns of four victims next to five co-runners.
    fn table(slowdown: impl Fn(usize, usize) -> f64) -> SlowdownTable {
        SlowdownTable::new(&NAMES[..4], &NAMES).map_cells(slowdown)
    }

    /// Pairs (a, b) and (c, d) do each other no harm, all others halve.
    fn friends() -> SlowdownTable {
        table(|victim, other| if victim / 2 == other / 2 { 1.0 } else { 2.0 })
    }

    #[test]
    fn truth_predicts_itself() {
        let verdict = friends().judge(&friends());
        assert_eq!((verdict.error, verdict.bias), (0.0, 0.0));
        assert_eq!((verdict.rank, verdict.gain_share), (Some(1.0), Some(1.0)));
        // One pairing of three has an STP of 2 per pair, two have 1.
        assert!((verdict.random_stp - 4.0 / 3.0).abs() < 1e-12);
        assert_eq!(verdict.best_stp, 2.0);
    }

    #[test]
    fn prediction_without_interaction_gains_nothing() {
        let verdict = friends().judge(&friends().constant_baseline());
        assert_eq!(verdict.rank, None);
        assert!(verdict.gain_share.unwrap().abs() < 1e-12);
        let opposite = table(|victim, other| if victim / 2 == other / 2 { 2.0 } else { 1.0 });
        assert!(friends().judge(&opposite).gain_share.unwrap() < 0.0);
    }

    #[test]
    fn baselines_predict_what_they_can() {
        let by_speed = table(|victim, _| 1.0 + 0.25 * victim as f64);
        let ours = by_speed.speed_baseline(&[0.0, 1.0, 2.0, 3.0]);
        assert!(by_speed.judge(&ours).error < 1e-9);
        let by_both = table(|victim, other| 1.0 + 0.25 * victim as f64 + 0.1 * other as f64);
        let verdict = by_both.judge(&by_both.effects_baseline());
        assert!(
            verdict.error < 1e-9 && verdict.rank > Some(0.99),
            "{verdict:?}"
        );
    }

    #[test]
    fn all_pairings_are_counted() {
        assert_eq!(pairings(&[1, 2, 3, 4, 5, 6, 7, 8]).len(), 105);
    }
}
