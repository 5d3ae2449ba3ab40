//! Instructions per cycle of programs alone with 1 to 11 ways of the LLC.

use super::NAME;
use crate::alone::per_instruction;
use crate::check::{CheckTemplate, PublishedFigure, Tolerance, ValidationCheck};
use crate::error::ValidateError;
use crate::group::GroupInputs;
use consort_sim::chip::Chip;
use consort_sim::contention::Solver;
use consort_sim::machine::MachineSpec;
use consort_sim::program::presets;
use std::sync::Arc;

const FILE: &str = "skylake-ways.csv";
const WAYS: usize = 11;

/// An error of 8 percent on average is what the project set itself.
const ERROR: CheckTemplate<'static> = CheckTemplate {
    group: NAME,
    source: "pbbcache, cachesim simulator, metrics.csv (public repository)",
    unit: "% mean error",
    tolerance: Tolerance::absolute(0.0),
};
const MOST_PERCENT: f64 = 8.0;

/// A program, and its instructions per cycle with one way, two ways, and so on.
type LlcWaysRow = (String, [f64; WAYS]);

pub(super) fn checks(inputs: &GroupInputs<'_>) -> Result<Vec<ValidationCheck>, ValidateError> {
    let lines: Vec<LlcWaysRow> = inputs.data.parse_rows(FILE)?;
    let solvers = solvers(&inputs.data.parse_machine("skylake-sp.toml")?)?;
    let ours = inputs.context.map(&lines, |(name, _)| ipcs(&solvers, name));
    let ours: Vec<[f64; WAYS]> = ours?.into_iter().collect::<Result<_, _>>()?;
    let pairs: Vec<(&LlcWaysRow, [f64; WAYS])> = lines.iter().zip(ours).collect();
    let programs = pairs.iter().map(|(line, ours)| check_program(line, ours));
    Ok(programs.chain(check_means(&pairs)).collect())
}

/// The chip with one way of its LLC, with two, and so on. The LLC is a victim cache: what the L2
/// holds is never taken away.
fn solvers(whole: &MachineSpec) -> Result<Vec<Solver>, ValidateError> {
    let l2s = whole
        .core_types
        .values()
        .filter_map(|core| core.l2.as_ref());
    let l2_kib = l2s.map(|l2| l2.size_kib).fold(0.0, f64::max);
    let way_kib = (whole.llc.size_kib - l2_kib) / WAYS as f64;
    let with = |ways: usize| {
        let mut machine = whole.clone();
        machine.llc.size_kib = l2_kib + ways as f64 * way_kib;
        Ok(Solver::new(Arc::new(Chip::new(&machine, None)?)))
    };
    (1..=WAYS).map(with).collect()
}

fn ipcs(solvers: &[Solver], name: &str) -> Result<[f64; WAYS], ValidateError> {
    let program = presets::find(name)?;
    let mut ipcs = [0.0; WAYS];
    for (ipc, solver) in ipcs.iter_mut().zip(solvers) {
        *ipc = 1.0 / per_instruction(solver, &program, |rates| rates.cpi);
    }
    Ok(ipcs)
}

fn check_program((name, measured): &LlcWaysRow, ours: &[f64; WAYS]) -> ValidationCheck {
    let gain = |ipcs: &[f64; WAYS]| ipcs[WAYS - 1] / ipcs[0];
    let note = format!(
        "instructions/cycle with 11 ways {:.2} for {:.2}, over one way {:.3} for {:.3}",
        ours[WAYS - 1],
        measured[WAYS - 1],
        gain(ours),
        gain(measured)
    );
    let what = format!("instructions per cycle of {name} alone with 1 to {WAYS} ways of the LLC");
    let error = mean_error_percent(measured, ours);
    let check = ERROR.check(
        format!("llc-ways/{name}"),
        what,
        PublishedFigure::AtMost(MOST_PERCENT),
        error,
    );
    check.with_note(note)
}

/// Over all programs: the level, and the form that is left when each program's level is taken out.
fn check_means(pairs: &[(&LlcWaysRow, [f64; WAYS])]) -> [ValidationCheck; 2] {
    let mean = |error: &dyn Fn(&[f64; WAYS], &[f64; WAYS]) -> f64| {
        let errors = pairs
            .iter()
            .map(|((_, measured), ours)| error(measured, ours));
        errors.sum::<f64>() / pairs.len() as f64
    };
    let what = format!(
        "instructions per cycle of {} programs alone with 1 to {WAYS} ways",
        pairs.len()
    );
    let level = mean(&mean_error_percent);
    let form = mean(&|measured, ours| {
        mean_error_percent(&relative_to_all_ways(measured), &relative_to_all_ways(ours))
    });
    let most = || PublishedFigure::AtMost(MOST_PERCENT);
    let relative = format!("{what}, over those with all ways");
    [
        ERROR.check("llc-ways-mean/level", what, most(), level),
        ERROR.check("llc-ways-mean/form", relative, most(), form),
    ]
}

fn relative_to_all_ways(ipcs: &[f64; WAYS]) -> [f64; WAYS] {
    ipcs.map(|ipc| ipc / ipcs[WAYS - 1])
}

/// Mean size of the errors, percent.
fn mean_error_percent(measured: &[f64; WAYS], ours: &[f64; WAYS]) -> f64 {
    let errors = measured.iter().zip(ours).map(|(m, o)| (o / m - 1.0).abs());
    100.0 * errors.sum::<f64>() / WAYS as f64
}
