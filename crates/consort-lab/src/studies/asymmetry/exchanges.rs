//! Costs of exchanges every millisecond, inside an LLC domain and between two.

use super::migration::{ExchangeCost, ExchangePath};
use super::{program_cases, suite_programs};
use crate::frame::{Case, Frame};
use crate::simulate::chips::{chip, full_chip, machine_spec};
use crate::simulate::programs::find;
use crate::simulate::{ExperimentSpec, map_jobs};
use crate::study::StudyError;
use consort_experiment::ExperimentContext;
use consort_experiment::watch::CoreKind;
use consort_sim::chip::Chip;
use consort_sim::program::{CURVE_KIB, ProgramSpec};
use std::sync::Arc;

/// Exchanges from each place.
const MOVES: [u32; 2] = [20, 400];
/// Places in a program's phases.
const PLACES: usize = 4;
/// The made-up programs are this one but for their misses.
const LOADS: &str = "random-loads";
/// Misses of a made-up program per 1000 instructions without a cache.
const MPKI: f64 = 20.0;

/// Costs from every place with a shared LLC, then with private ones.
type CostsBySharing = [Vec<ExchangeCost>; 2];

/// Exchanges between a large and a small core, the program with the dearest first. The policies
/// are `shared` and `private`.
pub(in crate::studies) fn exchange_with_small(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    rank_programs(context, spec, &chip(&spec.machine)?, CoreKind::Small)
}

/// Exchanges between two large cores: the machine has a second one in each group.
pub(in crate::studies) fn exchange_with_large(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let mut machine = machine_spec(&spec.machine)?;
    let whole = full_chip(&machine)?;
    // Only out-of-order cores, the large ones, have a reorder buffer.
    let mut types = whole.core_types().iter();
    let large = types.position(|core| core.rob_entries.is_some());
    let large = large.and_then(|n| machine.core_types.keys().nth(n).cloned());
    let listed = machine.layout.llc_domains.iter_mut();
    let listed = listed.flat_map(|domain| &mut domain.cluster);
    for group in machine.layout.cluster.iter_mut().chain(listed) {
        if Some(&group.core_type) == large.as_ref() {
            group.l2_domains = 2;
        }
    }
    rank_programs(context, spec, &full_chip(&machine)?, CoreKind::Large)
}

/// Exchanges between a large and a small core of made-up programs, by the size of their data.
pub(in crate::studies) fn exchange_working_sets(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
) -> Result<Frame, StudyError> {
    let chip = chip(&spec.machine)?;
    let costs = measure_costs(context, &chip, CoreKind::Small, &working_sets()?)?;
    let case = |kib: f64| Case::with_label(&kib.to_string(), "kib", &kib.to_string());
    Ok(frame(CURVE_KIB.map(case).to_vec(), &costs))
}

fn rank_programs(
    context: &ExperimentContext<'_>,
    spec: &ExperimentSpec,
    chip: &Arc<Chip>,
    to: CoreKind,
) -> Result<Frame, StudyError> {
    let programs = suite_programs(context, spec)?;
    let costs = measure_costs(context, chip, to, &programs)?;
    let mut rows: Vec<(&Arc<ProgramSpec>, CostsBySharing)> = programs.iter().zip(costs).collect();
    let shared_cycles = |row: &(_, CostsBySharing)| {
        let shared = row.1[0].iter();
        shared.map(|cost| cost.refill_cycles).sum::<f64>() / PLACES as f64
    };
    rows.sort_by(|a, b| shared_cycles(b).total_cmp(&shared_cycles(a)));
    let cases = program_cases(rows.iter().map(|(program, _)| &program.name));
    let costs: Vec<CostsBySharing> = rows.into_iter().map(|(_, costs)| costs).collect();
    Ok(frame(cases, &costs))
}

fn frame(cases: Vec<Case>, costs: &[CostsBySharing]) -> Frame {
    let policies = ["shared", "private"].map(str::to_owned);
    let mut frame = Frame::new(cases, policies.into(), PLACES);
    let all = || costs.iter().flatten().flatten();
    let percent = all().map(|cost| 100.0 * cost.quantum_share);
    frame.set_run_values("quantum_percent", percent.collect());
    frame.set_run_values(
        "refill_cycles",
        all().map(|cost| cost.refill_cycles).collect(),
    );
    frame
}

fn measure_costs(
    context: &ExperimentContext<'_>,
    chip: &Arc<Chip>,
    to: CoreKind,
    programs: &[Arc<ProgramSpec>],
) -> Result<Vec<CostsBySharing>, StudyError> {
    let name = &chip.spec().name;
    let no_path = || StudyError::part(name, "there are no two cores to go between");
    let path = |shared| ExchangePath::from_large(chip, to, shared).ok_or_else(no_path);
    let [shared, private] = [path(true)?, path(false)?];
    let moves = context.by_scale(MOVES[0], MOVES[1]);
    map_jobs(context, programs, |program| {
        let places = (PLACES, context.seed());
        Ok([
            shared.place_costs(chip, program, moves, places)?,
            private.place_costs(chip, program, moves, places)?,
        ])
    })
}

/// A program for each capacity of the miss curves, whose data just fits there. A cache of c bytes
/// holds c/w of the w bytes that random loads go to, so that they miss 1 - c/w times as often.
fn working_sets() -> Result<Vec<Arc<ProgramSpec>>, StudyError> {
    let loads = find(LOADS)?;
    let sets = CURVE_KIB.map(|kib| {
        let mut program = ProgramSpec::clone(&loads);
        program.name = format!("{LOADS}-{kib}-kib");
        let misses = CURVE_KIB.map(|capacity| MPKI * (1.0 - capacity / kib).max(0.0));
        for phase in &mut program.phases {
            phase.data_mpki = misses.to_vec();
        }
        Arc::new(program)
    });
    Ok(sets.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_programs_miss_what_does_not_fit() {
        let sets = working_sets().unwrap();
        assert_eq!(sets.len(), CURVE_KIB.len());
        let kib64 = &sets[3].phases[0].data_mpki;
        assert_eq!((kib64[2], kib64[3]), (MPKI / 2.0, 0.0));
        let text = toml::to_string(sets[5].as_ref()).unwrap();
        assert!(consort_sim::program::parse("x.toml", &text).is_ok());
    }
}
